"""SFT: conversations, or prompts with completions, as TRL's SFTTrainer reads them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.adapters.datasets.chat import Dialogue, Exchange
from arena.adapters.datasets.columns import check_choice
from arena.adapters.datasets.format import Row
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.datasets.worded import Worded

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SFT"]


class SFT(Worded):
    """Rows of supervised fine-tuning.

    turns=each: `prompt` and `completion`, a row for each answer: the trainer puts no loss on prompts, whatever the chat
    template, and every answer stands after the very messages it was given after. turns=last: only the last answer.
    turns=all: `messages`, a row for each conversation: the trainer puts its loss on every token unless
    `assistant_only_loss=True` is set, which needs a template that marks what the assistant says
    (`{% generation %}`; TRL brings such ones for known models); templates that leave earlier thoughts out show
    the model another past than it had.

    Options:
        turns: each, last or all: a row for each answer, for the last one, or for each conversation
        legal_only: wrong answers are not taught: each and last leave them out as completions, all leaves out
            conversations that hold one
        style: chat, snapshot or window: how an agent that is no language model is told of the past
        window: exchanges that style=window keeps
        answer: the form in which such an agent answers: answer, boxed, final, bracket or plain
        show_legal: whether such an agent is told the legal actions
        legal_limit: how many of them at most, 0: all
        tools: for tool tasks: a format of calls ("openai"), so that calls of such agents are `tool_calls`
        template: a folder with a system.j2 or turn.j2 of your own
        anew: write what language models were told and did in the same way, not as they were told and said it
        system: whether the rules are a system's message; else they open the first of the user's
    """

    name = "sft"
    consumer = "TRL 1.16 SFTTrainer"
    checked = "loaded with datasets 5.2.0, trained on with trl 1.16.0"
    learned = frozenset(("prompt", "completion", "messages", "tools"))

    def __init__(
        self,
        turns: str = "each",
        legal_only: bool = True,
        style: str = "chat",
        window: int = 4,
        answer: str = "answer",
        show_legal: bool = True,
        legal_limit: int = 0,
        tools: str = "",
        template: str = "",
        anew: bool = False,
        system: bool = True,
    ) -> None:
        check_choice("turns", turns, "each", "last", "all")
        told = {"style": style, "window": window, "answer": answer, "show_legal": show_legal}
        super().__init__(anew, system, legal_limit=legal_limit, tools=tools, template=template, **told)
        self.turns, self.legal_only = turns, legal_only

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for trajectory in unit:
            if self.turns == "all":
                yield from [self._whole(trajectory, each) for each in self.dialogues(trajectory) if self._taught(each)]
                continue
            found = [each for each in self.exchanges(trajectory) if each.own and (each.legal or not self.legal_only)]
            yield from [self._one(trajectory, each) for each in (found if self.turns == "each" else found[-1:])]

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        if self.turns == "all":
            return pa.schema(self.columns("messages"))
        return pa.schema([*self.columns("prompt", "completion"), pa.field("ply", pa.int32())])

    def _taught(self, dialogue: Dialogue) -> bool:
        return not self.legal_only or all(answer.exchange.legal for answer in dialogue.answers)

    def _whole(self, trajectory: Trajectory, dialogue: Dialogue) -> Row:
        if not all(answer.exchange.own for answer in dialogue.answers):
            raise Lacking(
                f"episode {trajectory.episode.id}, seat {trajectory.player}: it was played on from another's middle, "
                "what was said before is not its own (turns=each leaves it out)"
            )
        return {"messages": self.said(dialogue.messages), **self.about(trajectory, dialogue.tools)}

    def _one(self, trajectory: Trajectory, exchange: Exchange) -> Row:
        return {
            "prompt": self.said(exchange.prompt),
            "completion": self.said((exchange.answer,)),
            **self.about(trajectory, exchange.tools),
            "ply": exchange.turn.ply,
        }
