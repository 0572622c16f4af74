"""Episodes whose calls are made up, with all the turns that a conversation of tokens can take; and what they must give.

A token is a code point of the text it stands for, so that what was said can be read off the ids.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from hypothesis import strategies as st

from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import AgentInfo, Call
from arena.agents.conversation import shared
from arena.episode import Attempt, Episode, Seat, Turn, validate
from arena.referee import Verdict

END = 0x1F


class Asked(NamedTuple):
    """One answer in a conversation to be made, and what comes before it."""

    said: str = "x"
    told: str = "q"
    """What is put between the last answer and this."""
    breaks: bool = False
    """The prompt is written anew."""
    samples: int = 0
    """Votes that were not chosen, before it."""
    kept: int = -1
    """The most tokens the record says are shared (fewer than there are is right, too); -1: all."""
    retry: bool = False
    """It was no legal action: the turn goes on."""
    versions: int = 0
    """Spans of weights that are told."""
    more: Mapping[str, Any] = MappingProxyType({})
    """Fields of the call."""


class Expected(NamedTuple):
    """What was really asked and said, call by call."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    logprobs: tuple[float, ...]


WORDS = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=5)
ASKED = st.builds(
    Asked,
    said=WORDS,
    told=WORDS,
    breaks=st.booleans(),
    samples=st.integers(0, 3),
    kept=st.integers(-1, 9),
    retry=st.booleans(),
    versions=st.integers(0, 3),
    more=st.just({}),
)
CONVERSATIONS = st.lists(ASKED, min_size=1, max_size=7)


def ids(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def text(tokens: Iterable[int]) -> str:
    return "".join(map(chr, tokens))


def logprobs_of(tokens: Iterable[int], at: int) -> tuple[float, ...]:
    """Numbers that float32 holds exactly, others for every call."""
    return tuple([-(at + 1) / 8 - token / 1024 for token in tokens])


def attempts_of(asked: list[Asked], seat: int = 0) -> tuple[list[tuple[Attempt, bool]], list[Expected]]:
    """The attempts of a conversation, each with whether the turn ends with it; and what was asked and said."""
    whole, before = ids(f"rules {seat} "), ids("")
    made, expected = list[tuple[Attempt, bool]](), list[Expected]()
    for at, one in enumerate(asked):
        prompt = ids(f"anew {at} {one.told}") if one.breaks else whole + ids(one.told)
        calls, answer = list[Call](), (*ids(one.said), END)
        for said in [*[(*ids(f"vote{n}"), END) for n in range(one.samples)], answer]:
            extends = shared(before, prompt)
            extends = extends if one.kept < 0 else min(extends, one.kept)
            rest, last = prompt[extends:], len(calls) == one.samples
            known = logprobs_of(said, at)
            call = Call(
                "generate" if last else "sample",
                one.told if not calls else "",
                text(said[:-1]),
                extends,
                rest,
                said,
                known,
                "raw",
                "stop",
                weight_versions=tuple([(n * len(said) // one.versions, f"{at}{n}") for n in range(one.versions)]),
            )
            calls.append(call if not last else Call(**{**_fields(call), **one.more}))
            before = prompt + said
        whole = prompt + answer
        verdict: Verdict = "illegal" if one.retry else "legal"
        made.append((Attempt(one.said, verdict, calls=tuple(calls), latency=0.5), not one.retry))
        expected.append(Expected(prompt, answer, logprobs_of(answer, at)))
    return made, expected


def _fields(call: Call) -> dict[str, Any]:
    return {name: getattr(call, name) for name in call.__struct_fields__}


def turns_of(attempts: list[tuple[Attempt, bool]], seat: int) -> list[Turn]:
    turns, held = list[Turn](), list[Attempt]()
    for attempt, over in attempts:
        held.append(attempt)
        if over:
            turns.append(
                Turn(len(turns) * 2 + seat, seat, "position", held[-1].raw, tuple(held), reward=len(turns) / 4)
            )
            held = []
    if held:
        turns.append(Turn(len(turns) * 2 + seat, seat, "position", "forced", tuple(held), reward=-0.5))
    return turns


def episode_of(*seats: list[Asked], **more: Any) -> tuple[Episode, list[list[Expected]]]:
    """A record of these conversations, one for each seat, and what was asked and said in each."""
    made = [attempts_of(asked, seat) for seat, asked in enumerate(seats)]
    turns = [turn for seat, (attempts, _) in enumerate(made) for turn in turns_of(attempts, seat)]
    turns.sort(key=lambda turn: (turn.ply, turn.seat))
    earned = tuple([sum(turn.reward for turn in turns if turn.seat == seat) for seat in range(len(seats))])
    fields: dict[str, Any] = {
        "id": "e0",
        "env": "TicTacToe-v0",
        "seed": 1,
        "outcome": "terminated",
        "returns": earned,
        "seats": tuple([Seat(f"llm:{at}", ("X", "O")[at % 2], policy=AgentInfo("m")) for at in range(len(seats))]),
        "turns": turns,
        "final": ("",) * len(seats),
    }
    episode = Episode(**fields | more)
    validate(episode)
    return episode, [expected for _, expected in made]


def trajectory_of(*asked: Asked, advantage: float | None = None, **more: Any) -> Trajectory:
    """Of seat 0 of a record with these answers."""
    return Trajectory(episode_of(list(asked), [Asked()], **more)[0], 0, advantage)


def breaks_in(expected: list[Expected]) -> int:
    """How many prompts do not extend what was there."""
    return sum(b.prompt[: len(a.prompt) + len(a.answer)] != a.prompt + a.answer for a, b in pairwise(expected))
