"""A small model of the protocol for tests of the agent: its own tokenizer, chat template, answers and oddities."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from arena.agent import View
from arena.game import Game
from arena.model import Completion, ContextOverflow, Feature, Message, Model, ModelError, ModelInfo, Request, Scores

START, END, ODD = 1_200_000, 1_200_001, 1_200_002
"""Tokens that open and end a turn, and one that no text has."""
ALL: tuple[Feature, ...] = ("tokens", "logprobs", "score", "regex", "n")
Answer = str | Completion


class ToyModel(Model):
    """Tokens are code points; a text that holds `<|im_end|>` has the special token there, as with real tokenizers.

    `answers` are given in turn (a Completion as it is), then the last again. Oddities: `system`: the template takes a
    system's message; `rewrites`: it writes an answer otherwise once a tool's result follows; `reports`: what the server
    tells of the prompt it read; `ends`: answers end with the end-of-turn token; `likes`: scores of actions.
    """

    def __init__(self, *answers: Answer, features: tuple[Feature, ...] = ALL, context: int = 0, **odd: Any) -> None:
        self.name, self.features, self.context = "toy", frozenset(features), context
        self.answers = list(answers)
        self.system = odd.pop("system", True)
        self.rewrites = odd.pop("rewrites", False)
        self.reports: Callable[[tuple[int, ...]], tuple[int, ...]] | None = odd.pop("reports", None)
        self.ends = odd.pop("ends", True)
        self.likes: Mapping[str, float] = odd.pop("likes", {})
        self.requests: list[Request] = []
        self.scored: list[tuple[Sequence[int], Sequence[Sequence[int]]]] = []
        self.priorities: list[int | None] = []
        self.rendered = self.asked = self.encoded = 0
        self.closed = False
        assert not odd, odd

    async def info(self) -> ModelInfo:
        self.asked += 1
        features = tuple(sorted(self.features))
        return ModelInfo("toy", "Toy 1", "http://toy", self.context, "w0", "tok", "tem", features)

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        assert bool(request.messages) is not bool(request.prompt_ids)
        self.requests.append(request)
        prompt = request.prompt_ids or await self.render(request.messages, request.tools)
        if self.context and len(prompt) + request.sampling.max_tokens > self.context:
            raise ContextOverflow(f"{len(prompt)} tokens are too many")
        return tuple([self._completion(prompt) for _ in range(request.n)])

    def _completion(self, prompt: tuple[int, ...]) -> Completion:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        told = self.reports(prompt) if self.reports else ()
        if isinstance(answer, Completion):
            return msgspec.structs.replace(answer, prompt_ids=told)
        if "tokens" not in self.features:
            return Completion(answer)
        ids = (*map(ord, answer), END) if self.ends else tuple(map(ord, answer))
        return Completion(answer, ids=ids, logprobs=(-0.5,) * len(ids), prompt_ids=told, usage={"seconds": 0.1})

    async def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, reply: bool = True
    ) -> tuple[int, ...]:
        self.rendered += 1
        if not self.system and messages[0].role == "system":
            raise ModelError("System role not supported")
        results = any(message.role == "tool" for message in messages)
        ids = list(encode(f"tools {len(tools)}\n")) if tools else []
        for message in messages:
            again = self.rewrites and results and message.role == "assistant"
            calls = "".join([f"<call>{call['function']['name']}" for call in message.tool_calls])
            ids += [START, *encode(f"{message.role}{'*' * again}\n{message.content}{calls}")]
            ids.append(END)
        return (*ids, START, *encode("assistant\n")) if reply else tuple(ids)

    async def encode(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        self.encoded += len(texts)
        return tuple([encode(text) for text in texts])

    async def score(
        self,
        prompt_ids: Sequence[int],
        answers: Sequence[Sequence[int]],
        affinity: str = "",
        priority: int | None = None,
    ) -> Scores:
        self.scored.append((prompt_ids, answers))
        self.priorities.append(priority)
        rows = tuple([self._scores(decode(answer)) for answer in answers])
        read = sum(len(prompt_ids) + len(answer) for answer in answers)
        return Scores(rows, {"prompt_tokens": read, "cached_tokens": 0, "seconds": 0.1})

    def _scores(self, text: str) -> tuple[float, ...]:
        """What is liked at the last token, the end of the turn; all before it equally."""
        action = text.removesuffix("<|im_end|>")
        return (*(-0.25,) * len(action), self.likes.get(action, -9.0))

    async def close(self) -> None:
        self.closed = True


def encode(text: str) -> tuple[int, ...]:
    """Code points; special tokens written in the text count as such."""
    out: list[int] = []
    for at, part in enumerate(text.split("<|im_end|>")):
        out += [END] * (at > 0)
        for number, piece in enumerate(part.split("<|im_start|>")):
            out += [START] * (number > 0)
            out += map(ord, piece)
    return tuple(out)


def decode(ids: Sequence[int]) -> str:
    """The text of tokens, special ones spelled out."""
    special = {START: "<|im_start|>", END: "<|im_end|>", ODD: "<odd>"}
    return "".join([special.get(token) or chr(token) for token in ids])


def view(game: Game, player: int = 0, *, legal: bool = True, note: str = "", since: int = 0, ply: int = 0) -> View:
    """What a seat sees of the position, its memory empty."""
    shown = game.legal_actions(player) if legal else None
    return View(player, game.observation(player), shown, {}, note, ply, game, 7, since)
