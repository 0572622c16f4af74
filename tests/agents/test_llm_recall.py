"""A conversation is taken up from a record: played on from any ply, the same model is asked the same tokens."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pytest

from arena.agent import Agent
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.episode import Episode, prompts, validate
from arena.match import play
from arena.model import Completion, Request, Sampling
from arena.referee import Referee
from arena.registry import make_agent
from arena.replaying import replay
from tests.adapters.models.matches import over_http
from tests.agents.seated import MODES, RETRY, calls
from tests.agents.toy_model import ToyModel, decode
from tests.fakes.engine import Asked
from tests.fakes.server import FakeSGLang
from tests.players import essence, plies

GREEDY = Sampling(max_tokens=50, temperature=0.0)
ROUNDS = {"rounds": 6}
SPELT = 0xE123
"""A code point that is in no text."""
LEGAL = re.compile(r"Legal actions: ([^\n]+)")


def greedy(prompt: str, index: int = 0) -> str:
    """What a model at temperature 0 says: it depends on the prompt alone; sometimes thoughts, sometimes nonsense."""
    number = crc32(f"{prompt} {index}".encode("utf-8", "replace"))
    listed = LEGAL.findall(prompt.replace("<|im_end|>", "\n"))
    legal = listed[-1].split(", ") if listed else ["nothing"]
    said = f"<answer>{legal[number // 7 % len(legal)]}</answer>"
    return [said, said, said, f"<think>hm, {number}</think>{said}", f"I know {number % 100}: {said}", "well"][
        number % 6
    ]


class Greedy(ToyModel):
    """Says what follows from the prompt; `spells`: a token of its own in each answer, that no text is tokenized to."""

    spells = 0

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        prompt = request.prompt_ids or await self.render(request.messages, request.tools)
        told = decode(prompt)
        if request.constraint is not None:
            legal = [re.sub(r"\\(.)", r"\1", part) for part in request.constraint.text.strip("()").split("|")]
            self.answers = [legal[crc32(told.encode()) % len(legal)]]
        else:
            self.answers = [greedy(told, index) for index in range(request.n)]
            self.answers += self.answers[-1:]
        made = await super().complete(request)
        if not self.spells or not made[0].ids:
            return made
        ids = [(self.spells, *answer.ids) for answer in made]
        return tuple(
            [
                Completion(answer.text, ids=spelt, logprobs=(-0.5,) * len(spelt), usage=answer.usage)
                for answer, spelt in zip(made, ids, strict=True)
            ]
        )

    def _scores(self, text: str) -> tuple[float, ...]:
        return tuple(
            [-(crc32(f"{text} {at}".encode()) % 97) / 10 for at in range(len(text.removesuffix("<|im_end|>")) + 1)]
        )


def seats(model: ToyModel, sampling: Sampling = GREEDY, **options: Any) -> list[Agent]:
    """Two agents of one model."""
    return [LLMAgent(model, Prompting(**options), sampling) for _ in range(2)]


def whole(agents: Sequence[Agent | str], game: str = "TicTacToe-v0", referee: Referee = RETRY, **more: Any) -> Episode:
    episode = asyncio.run(play(game, agents, more.pop("seed", 1), more.pop("options", {}), referee, **more))
    validate(episode)
    if episode.outcome != "void":
        replay(episode)
    return episode


def on(start: Episode, agents: Sequence[Agent | str], ply: int, **more: Any) -> Episode:
    return whole(agents, start.env, start.referee, seed=start.seed, options=start.options, start=start, ply=ply, **more)


def asked_from(start: Episode, ply: int) -> list[tuple[int, ...]]:
    """The prompts of seat 0 from a ply on."""
    late = [t.ply >= ply for t in start.turns if t.seat == 0 for attempt in t.attempts for _ in attempt.calls]
    return [prompt for prompt, counts in zip(prompts(calls(start)), late, strict=True) if counts]


OPTIONS: dict[str, dict[str, Any]] = {
    "chat": {},
    "snapshot": {"style": "snapshot"},
    "window": {"style": "window", "window": 1},
    "thoughts kept": {"thinking": "keep"},
    "thoughts stripped": {"thinking": "strip"},
    "votes": {"decode": "vote", "votes": 3},
    "constrained": {"decode": "constrained"},
    "scored": {"decode": "score"},
    "list not shown": {"show_legal": False},
    "bracket": {"answer": "bracket"},
}


GAMES = {
    "TicTacToe-v0": 2,
    "LiarsDice-v0": 2,
    "IteratedPrisonersDilemma-v0": 2,
    "SecretMafia-v0": 7,
}
"""With their seats. The last but one has two that act at once, the last open text, secrets and many who act at once."""
CASES = [
    (mode, options, game)
    for mode in MODES
    for options, how in OPTIONS.items()
    for game in (GAMES if options in ("chat", "votes") else ["LiarsDice-v0"])
    if mode == "tokens" or how.get("decode", "vote") == "vote"
]


def table(mode: str, seats: int = 2, sampling: Sampling = GREEDY, **options: Any) -> tuple[Greedy, list[Agent]]:
    """A model, and two agents of it for all seats."""
    model = Greedy("")
    model.features = MODES[mode]
    agents: list[Agent] = [LLMAgent(model, Prompting(**options), sampling) for _ in range(2)]
    return model, (agents * seats)[:seats]


@pytest.mark.parametrize(("mode", "options", "game"), CASES)
def test_played_on_from_any_ply_a_match_is_the_one_that_was_played_whole(mode: str, options: str, game: str) -> None:
    model, agents = table(mode, GAMES[game], **OPTIONS[options])
    start = whole(agents, game)
    assert start.outcome == "terminated", start.reason
    asked = [(request.messages, request.prompt_ids) for request in model.requests]
    scored = list(model.scored)
    for ply in sorted({1, plies(start) // 2, plies(start) - 1}):
        model, agents = table(mode, GAMES[game], **OPTIONS[options])
        assert essence(on(start, agents, ply)) == essence(start)
        again = [(request.messages, request.prompt_ids) for request in model.requests]
        assert again or model.scored or mode == "messages"
        assert again == asked[len(asked) - len(again) :]
        assert model.scored == scored[len(scored) - len(model.scored) :]


@pytest.mark.parametrize("style", ["chat", "window"])
def test_what_was_sampled_is_never_tokenized_again(style: str) -> None:
    """Every answer holds a token that no text is tokenized to: it is there in every later prompt."""

    def spelling() -> list[Agent]:
        model, agents = table("tokens", style=style, window=9)
        model.spells = SPELT
        return agents

    start = whole(spelling(), "IteratedPrisonersDilemma-v0", options=ROUNDS)
    assert len(asked_from(start, 0)) >= 6
    for ply in range(1, plies(start)):
        again = on(start, spelling(), ply)
        assert essence(again) == essence(start)
        new = asked_from(again, ply)
        before = sum(len(turn.attempts) for turn in again.turns if turn.ply < ply and turn.seat == 0)
        assert new[0].count(SPELT) == before > 0


@pytest.mark.parametrize("context", [1000, 1100, 1300])
def test_what_did_not_fit_is_left_out_again(context: int) -> None:
    def small() -> list[Agent]:
        model, agents = table("tokens")
        model.context = context
        return agents

    start = whole(small(), "IteratedPrisonersDilemma-v0", options={"rounds": 12})
    assert any("the context was full" in gap for gap in start.gaps)
    for ply in range(2, plies(start), 3):
        assert essence(on(start, small(), ply)) == essence(start)


@pytest.mark.parametrize(
    "options", ["", "&style=window&window=2", "&decode=vote&votes=3", "&decode=constrained", "&decode=score"]
)
def test_over_http_the_same_tokens_are_asked(options: str) -> None:
    """The server spells a third of what it says in other tokens than a tokenizer would."""

    async def work(server: FakeSGLang) -> None:
        def agents() -> list[Agent]:
            return [make_agent(f"sglang:{server.url}?temperature=0{options}") for _ in range(2)]

        def asked() -> list[Any]:
            bodies = [each.body["input_ids"] for each in server.requests if each.route == "/generate"]
            server.requests.clear()
            return bodies

        start = await play("LiarsDice-v0", agents(), 3, {}, RETRY)
        prompts_whole = asked()
        assert plies(start) > 3
        for ply in (1, 2, plies(start) - 1):
            again = await play("LiarsDice-v0", agents(), 3, start=start, ply=ply)
            assert bare(again) == bare(start)
            new = asked()
            assert 0 < len(new) < len(prompts_whole)
            if "vote" not in options and "score" not in options:
                assert new == prompts_whole[-len(new) :]

    def deterministic(prompt: str, asked: Asked) -> str:
        return str(asked.constraint.pick(asked.random)) if asked.constraint else greedy(prompt, asked.index)

    over_http(work, FakeSGLang(deterministic, drift=0.3))


def bare(episode: Episode) -> dict[str, Any]:
    """The essence but for what a server's clock and cache say."""
    kept = essence(episode)
    for turn in kept["turns"]:
        for attempt in turn["attempts"]:
            for call in attempt.get("calls", ()):
                call.pop("usage", None)
    return kept
