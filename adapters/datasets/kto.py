"""KTO: answers with a label each, as TRL's KTOTrainer reads them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.adapters.datasets.chat import Exchange
from arena.adapters.datasets.columns import check_choice
from arena.adapters.datasets.format import Row
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.datasets.worded import Worded

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KTO"]


class KTO(Worded):
    """A row for each answer: `prompt`, `completion` and `label`, False for every answer that was not legal.

    Kahneman-Tversky optimisation: Ethayarajh et al., arXiv 2402.01306.

    Options:
        by: what makes the answers of a seat good: won (nobody earned more, somebody less), mean (it earned more than
            the mean of the table), threshold (more than `threshold`) or advantage (the export's is above 0)
        threshold: see `by`
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

    name = "kto"
    consumer = "TRL 1.16 KTOTrainer"
    checked = "loaded with datasets 5.2.0, trained on with trl 1.16.0"
    learned = frozenset(("prompt", "completion", "label", "tools"))

    def __init__(
        self,
        by: str = "threshold",
        threshold: float = 0.0,
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
        check_choice("by", by, "won", "mean", "threshold", "advantage")
        told = {"style": style, "window": window, "answer": answer, "show_legal": show_legal}
        super().__init__(anew, system, legal_limit=legal_limit, tools=tools, template=template, **told)
        self.by, self.threshold = by, threshold

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for trajectory in unit:
            good = self._good(trajectory)
            yield from [self._row(trajectory, each, good) for each in self.exchanges(trajectory) if each.own]

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        more = [pa.field("label", pa.bool_()), pa.field("verdict", pa.string()), pa.field("ply", pa.int32())]
        return pa.schema([*self.columns("prompt", "completion"), *more])

    def _good(self, trajectory: Trajectory) -> bool:
        """Whether legal answers of the seat were good ones."""
        where, returns = f"episode {trajectory.episode.id}, seat {trajectory.player}", trajectory.episode.returns
        if returns is None:
            raise Lacking(f"episode {trajectory.episode.id} is void: it has no returns")
        own = returns[trajectory.player]
        if self.by == "threshold":
            return own > self.threshold
        if self.by == "advantage":
            if trajectory.advantage is None:
                raise Lacking(f"{where}: no advantage was worked out (choose one for the export, or another `by`)")
            return trajectory.advantage > 0
        if len(returns) == 1:
            raise Lacking(f"{where}: it sat alone, there is nobody to compare it with (by=threshold)")
        return own == max(returns) > min(returns) if self.by == "won" else own * len(returns) > sum(returns)

    def _row(self, trajectory: Trajectory, exchange: Exchange, good: bool) -> Row:
        return {
            "prompt": self.said(exchange.prompt),
            "completion": self.said((exchange.answer,)),
            **self.about(trajectory, exchange.tools),
            "label": good and exchange.legal,
            "verdict": exchange.attempt.verdict,
            "ply": exchange.turn.ply,
        }
