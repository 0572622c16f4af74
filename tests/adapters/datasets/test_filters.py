"""Filters: each lets through what it says, all together what all say, and what nothing passed is named."""

from typing import Any

import pytest

from arena.adapters.datasets.filters import Filters, Ratings, Sieve, label_of, outcome_of
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import AgentInfo, Call
from arena.episode import Attempt, Episode, Seat, Turn
from arena.game import replace
from arena.match import play_sync
from arena.referee import Referee
from tests.adapters.datasets.toys import games

SEATS = (Seat("ann", "X", policy=AgentInfo(trainable=False)), Seat("bob", "O"), Seat("eve", "O"))


def made(returns: tuple[float, ...] = (1.0, -1.0), **more: Any) -> Episode:
    """An episode of these returns, in which a model was asked at seats 0 and 1."""
    final, answer = ("",) * len(returns), (Attempt("a", calls=(Call("chat"),)),)
    turns = [Turn(0, seat, "", "a", answer) for seat in range(min(2, len(returns)))]
    return replace(Episode("e", "Nim-v3", 0, "terminated", returns, SEATS[: len(returns)], turns, final=final), **more)


def passing(filters: Filters, episode: Episode, ratings: Any = None) -> list[int]:
    """The seats that pass."""
    sieve = Sieve(filters, ratings)
    seats = [Trajectory(episode, player) for player in range(len(episode.seats))]
    return [seat.player for seat in seats if sieve.belongs(seat) and sieve.chosen(seat)]


@pytest.mark.parametrize(
    ("asked", "episode", "seats"),
    [
        ({}, made(), [0, 1]),
        ({"games": ("Nim-v3",)}, made(), [0, 1]),
        ({"games": ("Nim",)}, made(), [0, 1]),
        ({"games": ("arena/Nim-v3", "Chess")}, made(), [0, 1]),
        ({"games": ("Nim-v2", "Ni", "")}, made(), []),
        ({"games": ("Nim-v3 (heaps=3, name=x)",)}, made(options={"name": "x", "heaps": 3}), [0, 1]),
        ({"games": ("Nim-v3 (heaps=4)",)}, made(options={"heaps": 3}), []),
        ({"agents": ("bob", "eve")}, made((0.0, 0.0, 1.0)), [1, 2]),
        ({"agents": ("bo",)}, made(), []),
        ({"seats": (0, 2)}, made((0.0, 0.0, 1.0)), [0, 2]),
        ({"roles": ("O",)}, made((0.0, 0.0, 1.0)), [1, 2]),
        ({"trainable": True}, made(), [1]),  # ann may not be trained
        ({"trainable": True}, made((0.0, 0.0, 1.0)), [1]),  # eve's is no model
        ({"outcomes": ("win",)}, made(), [0]),
        ({"outcomes": ("loss",)}, made(), [1]),
        ({"outcomes": ("draw",)}, made(), []),
        ({"outcomes": ("draw",)}, made((0.0, 0.0)), [0, 1]),
        ({"outcomes": ("win", "loss")}, made((3.0, 2.0, 3.0)), [0, 1, 2]),
        ({"outcomes": ("win",)}, made((3.0, 2.0, 3.0)), [0, 2]),
        ({"outcomes": ("win",)}, made((0.5,)), [0]),
        ({"outcomes": ("win", "draw")}, made((0.0,)), []),
        ({"truncated": True}, made(), []),
        ({"truncated": False}, made(), [0, 1]),
        ({"truncated": True}, made(outcome="truncated", reason="long"), [0, 1]),
        ({"truncated": False}, made(outcome="truncated", reason="long"), []),
        ({"min_reward": 1.0}, made(), [0]),
        ({"min_reward": -1.0}, made(), [0, 1]),
        ({"min_reward": 0.0}, made((-0.5, 0.0, 2.0)), [1, 2]),
        ({"legal": True}, made(forfeits=(1,)), [0]),
        ({"outcomes": ("win",), "roles": ("O",)}, made(), []),
        ({"outcomes": ("win",), "roles": ("X",), "agents": ("ann",)}, made(), [0]),
    ],
)
def test_what_passes(asked: dict[str, Any], episode: Episode, seats: list[int]) -> None:
    assert passing(Filters(**asked), episode) == seats


def test_legal_is_of_every_reply() -> None:
    answers = play_sync("TicTacToe", ["scripted:nonsense", "first"], 0, None, Referee(illegal="random"))
    assert passing(Filters(legal=True), answers) == [1]
    assert passing(Filters(legal=True), play_sync("TicTacToe", ["first", "first"])) == [0, 1]


RATINGS = {("Nim-v3", "ann"): 1200.0, ("Nim-v3", "bob"): 1000.0, ("Nim-v3 (heaps=2)", "eve"): 900.0}


@pytest.mark.parametrize(
    ("asked", "episode", "seats"),
    [
        ({"min_rating": 1100}, made(), [1]),
        ({"max_rating": 1100}, made(), [0]),
        ({"min_rating": 1000, "max_rating": 1200}, made(), [0, 1]),
        ({"min_rating": 1200.5}, made(), []),
        ({"min_rating": 0}, made((0.0, 0.0, 1.0)), [2]),  # eve is not rated in this game
        ({"max_rating": 1100}, made((0.0, 0.0, 1.0)), []),  # every opponent, not one of them
        ({"min_rating": 0}, made((1.0,)), []),
    ],
)
def test_the_rating_of_the_opponents(asked: dict[str, Any], episode: Episode, seats: list[int]) -> None:
    assert passing(Filters(**asked), episode, RATINGS) == seats


def test_ratings_must_be_there() -> None:
    none: list[Ratings | None] = [None, {}]
    for ratings in none:
        with pytest.raises(ValueError, match="a filter by rating needs ratings"):
            Sieve(Filters(min_rating=0), ratings)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"outcomes": ("won",)}, "outcome 'won': allowed are win, draw, loss"),
        ({"seats": (0, -1)}, "seat -1: allowed are numbers from 0"),
        ({"max_rows": 0}, "max_rows=0: allowed are numbers from 1"),
    ],
)
def test_refusals(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Filters(**asked)


def asked(filters: Filters, episodes: list[Episode]) -> Sieve:
    sieve = Sieve(filters)
    for episode in episodes:
        for player in range(len(episode.seats)):
            if sieve.belongs(seat := Trajectory(episode, player)):
                sieve.chosen(seat)
    return sieve


def test_counts() -> None:
    sieve = asked(
        Filters(agents=("bob",), seats=(1,), outcomes=("win",)), [made(), made((0.0, 1.0)), made((0.0, 0.0, 1.0))]
    )
    assert (sieve.seen, sieve.belonging) == (7, 3)
    assert sieve.passed == {"agent": 3, "seat": 3, "outcome": 1}
    assert sieve.left_out == {"agent": 4, "outcome": 2}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (Filters(seats=(5,), trainable=True), r"no seat of 4 passed: nothing passed the filters seat \(of 4\)$"),
        (Filters(seats=(5,), min_reward=9), r"filters seat \(of 4\), reward \(of 0\)$"),
        (Filters(seats=(0,), min_reward=9, legal=True), r"nothing passed the filters reward \(of 2\)$"),
        (Filters(seats=(0,), roles=("O",)), "no seat of 4 passed all filters, though each let some pass"),
        (Filters(agents=("bop",)), "unknown agent of these episodes 'bop'. Did you mean 'bob'.* Allowed: ann, bob"),
        (Filters(games=("Nom-v3",)), "unknown game of these episodes 'Nom-v3'. Did you mean 'Nim-v3'"),
        (Filters(roles=("x",)), "unknown role of these episodes 'x'. Did you mean 'X'"),
    ],
)
def test_filters_that_nothing_passed_say_so(filters: Filters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        raise asked(filters, [made(), made((0.0, 1.0))]).nothing()


def test_no_episodes() -> None:
    assert "no finished episode was read" in str(Sieve(Filters()).nothing())


def test_labels_and_results_of_real_matches() -> None:
    assert {label_of(episode) for episode in games(1)} == {"KuhnPoker-v0"}
    assert label_of(play_sync("KuhnPoker", ["first"] * 3, 0, {"players": 3})) == "KuhnPoker-v0 (players=3)"
    for episode in games(8):
        assert sorted(outcome_of(Trajectory(episode, player)) for player in (0, 1)) == ["loss", "win"]
    void = replace(made(), outcome="void", returns=None, reason="x")
    with pytest.raises(ValueError, match="is void"):
        outcome_of(Trajectory(void, 0))
