"""What is refused before anything is played."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

import pytest

from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompter, Prompting
from arena.game import LiveGame
from arena.model import Message, Sampling
from arena.referee import Referee
from arena.registry import make_game
from tests.agents.seated import RETRY, agent
from tests.agents.toy_model import ToyModel, view


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"max_tokens": 0}, "max_tokens=0: allowed are 1 and more"),
        ({"temperature": -1.0}, "temperature=-1.0: allowed are 0 and more"),
        ({"temperature": float("nan")}, "temperature=nan: allowed"),
        ({"top_p": 0.0}, "top_p=0.0: allowed are above 0, up to 1"),
        ({"top_k": 0}, "top_k=0: allowed are 1 and more, or -1"),
        ({"min_p": 2.0}, "min_p=2.0: allowed are 0 to 1"),
    ],
)
def test_wrong_sampling_is_refused(sampling: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        agent(ToyModel(""), Sampling(**sampling))


def prepared(who: LLMAgent, game: str = "TicTacToe-v0", referee: Referee = RETRY) -> None:
    asyncio.run(who.prepare(make_game(game), referee))


HIDDEN = Referee(show_legal=False)
REFUSED: Sequence[tuple[dict[str, Any], dict[str, Any], str, Referee, str]] = [
    ({"decode": "constrained"}, {}, "Arithmetic-v0", RETRY, "decode=constrained cannot play Arithmetic: at ply 0"),
    (
        {"decode": "score"},
        {},
        "SecretMafia-v0",
        RETRY,
        "decode=score cannot play SecretMafia: at ply 1 there is no list",
    ),
    (
        {"decode": "constrained"},
        {},
        "Chess-v0",
        HIDDEN,
        "needs the list of legal actions, the referee has show_legal=Fal",
    ),
    (
        {"decode": "constrained"},
        {"features": ("n",)},
        "Chess-v0",
        RETRY,
        "needs the feature regex of toy at http://toy",
    ),
    ({"decode": "score"}, {"features": ("tokens",)}, "Chess-v0", RETRY, "needs the feature score"),
    ({"decode": "score"}, {"features": ("score",)}, "Chess-v0", RETRY, "needs the feature tokens"),
    (
        {"answer": "boxed"},
        {},
        "Chess-v0",
        Referee(marks=("answer",)),
        "answer=boxed: the referee does not read that mark",
    ),
    ({}, {"context": 500}, "Chess-v0", RETRY, r"has \d+ tokens, its answer up to 50: more than the context of toy"),
    (
        {},
        {"context": 60, "features": ("n",)},
        "Chess-v0",
        RETRY,
        r"has about \d+ tokens \(estimated from its characters",
    ),
    ({"tools": "hermes"}, {}, "Chess-v0", RETRY, "tools=hermes: Chess is no tool task"),
    ({"tools": "openai"}, {}, "CalculatorTask-v0", RETRY, "tools=openai needs the feature tools"),
]


@pytest.mark.parametrize(("options", "odd", "game", "referee", "message"), REFUSED)
def test_preflight_refuses_in_one_line(
    options: dict[str, Any], odd: dict[str, Any], game: str, referee: Referee, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        prepared(agent(ToyModel("5", **odd), **options), game, referee)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{}, {"decode": "constrained"}, {"decode": "score"}, {"decode": "vote"}])
@pytest.mark.parametrize("game", ["Chess-v0", "LiarsDice-v0", "KuhnPoker-v0"])
def test_preflight_passes_what_can_be_played(options: dict[str, Any], game: str) -> None:
    model = ToyModel("5", context=10_000)
    prepared(agent(model, **options), game)
    assert not model.requests
    assert model.asked == 1


def test_preflight_lets_open_text_use_any_mark_and_bound_answers_none() -> None:
    with pytest.raises(ValueError, match="answer=boxed: the referee does not read that mark"):
        prepared(agent(ToyModel("5"), answer="boxed"), "Chess-v0", Referee(marks=("answer",)))
    prepared(agent(ToyModel("5"), answer="boxed"), "Arithmetic-v0", Referee(marks=("answer",)))
    prepared(agent(ToyModel("5"), answer="boxed", decode="score"), "Chess-v0", Referee(marks=("answer",)))


def test_a_scored_answer_needs_no_room() -> None:
    context = len(asyncio.run(first_prompt())) + 10
    prepared(agent(ToyModel("5", context=context), decode="score"))
    with pytest.raises(ValueError, match="more than the context"):
        prepared(agent(ToyModel("5", context=context), decode="constrained"))


async def first_prompt() -> tuple[int, ...]:
    prompter, seen = Prompter(Prompting(decode="score")), view(make_game("TicTacToe-v0"))
    return await ToyModel("").render([Message("system", prompter.system(seen)), Message("user", prompter.turn(seen))])


def test_a_live_game_is_not_moved() -> None:
    game = Door()
    asyncio.run(agent(ToyModel("5"), decode="constrained").prepare(game, RETRY))
    assert Door.moved == 0


class Door(LiveGame):
    """Opens at once, and for good."""

    moved: ClassVar[int] = 0
    players = 1

    @classmethod
    def initial(cls, rng: Random) -> "Door":
        return cls()

    def to_act(self) -> tuple[int, ...]:
        return (0,)

    def rules(self, player: int) -> str:
        return "Write open."

    def observation(self, player: int) -> str:
        return "A door."

    def legal_actions(self, player: int) -> tuple[str, ...]:
        return ("open",)

    def apply(self, actions: Mapping[int, str]) -> "Door":
        type(self).moved += 1
        return self

    def returns(self) -> tuple[float, ...]:
        return (0.0,)

    def close(self) -> None:
        """Nothing is held."""
