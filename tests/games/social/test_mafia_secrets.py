"""What a seat knows in Mafia: `determinize` against an enumeration of every deal and night, and twins to the end."""

from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.chance import Chance
from arena.game import replace
from arena.games.social.hidden import Facts, goes_on
from arena.games.social.mafia import SecretMafia
from tests.games.open_table import playthrough, sampled, view

M, DOC, DET, V = "Mafia", "Doctor", "Detective", "Villager"
TABLES = st.fixed_dictionaries(
    {
        "players": st.integers(6, 12),
        "rounds": st.integers(0, 2),
        "mafia": st.integers(0, 2),
        "reveal_roles": st.booleans(),
    }
)


def positions(game: SecretMafia, rng: Random) -> Iterator[SecretMafia]:
    for now in playthrough(game, rng):
        assert isinstance(now, SecretMafia)
        yield now


@settings(deadline=None)
@given(TABLES, st.integers(0, 10**6))
def test_determinize_keeps_what_each_seat_knows(table: dict[str, Any], seed: int) -> None:
    rng = Random(seed)
    for game in positions(SecretMafia.initial(rng, **table), rng):
        for p in range(game.players):
            other = game.determinize(p, rng)
            assert view(other, p) == view(game, p)
            assert Counter(other.roles) == Counter(game.roles)
            assert other.chance != game.chance
            assert (p in other.to_act()) == (p in game.to_act())
            assert_consistent(other)


def assert_consistent(game: SecretMafia) -> None:
    """The nights of a drawn history have the outcomes that were told, and only those acted who could."""
    for night in game.nights:
        doctor = game.roles.index(DOC)
        for p, named in enumerate(night.named):
            assert (named == -2) == (p not in night.living or game.roles[p] == V)
            assert named < 0 or (named in night.living and named != p)
            assert named < 0 or game.roles[p] != M or game.roles[named] != M
        wanted, protected = night.wanted(game.roles), night.named[doctor]
        if night.victim >= 0:
            assert night.victim in wanted
            assert night.victim != protected
        else:
            assert not wanted or protected in wanted


@settings(deadline=None, max_examples=50)
@given(TABLES, st.integers(0, 10**6))
def test_determinize_can_be_repeated_for_other_seats(table: dict[str, Any], seed: int) -> None:
    rng = Random(seed)
    for game in positions(SecretMafia.initial(rng, **table), rng):
        p, q = rng.sample(range(game.players), 2)
        once = game.determinize(p, rng)
        twice = once.determinize(q, rng)
        assert view(twice, q) == view(once, q)
        assert_consistent(twice)


@settings(deadline=None, max_examples=60)
@given(TABLES, st.integers(0, 10**6))
def test_a_drawn_position_plays_on(table: dict[str, Any], seed: int) -> None:
    rng = Random(seed)
    path = list(positions(SecretMafia.initial(rng, **table), rng))
    game = rng.choice(path)
    p = rng.randrange(game.players)
    *_, end = positions(game.determinize(p, rng), rng)
    assert end.won
    assert end.events(p)[: len(game.events(p))] == game.events(p)


# The truth by enumeration: which deals can have led to what a seat saw?


def nights(game: SecretMafia) -> Iterator[SecretMafia]:
    """Every way the night can be spent; ties of the Mafia fall in every way."""
    acting = game.to_act()
    for actions in product(*[game.legal_actions(p) or () for p in acting]):
        for key in range(4 if game.mafia > 1 else 1):
            yield replace(game, chance=Chance(key)).apply(dict(zip(acting, actions, strict=True)))


def possible(game: SecretMafia, seat: int, views: list[tuple[object, ...]], votes: list[dict[int, str]]) -> bool:
    """Whether some nights show the seat what it saw: one view after every joint move, the public votes given.

    One fitting night is enough: what others did in it has no bearing on what can happen after.
    """
    ballots = iter(votes)
    for seen in views:
        afters = nights(game) if game.phase == "night" else iter([game.apply(next(ballots))])
        fitting = next((after for after in afters if view(after, seat) == seen), None)
        if fitting is None:
            return False
        game = fitting
    return True


@pytest.mark.parametrize("reveal", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_deals_drawn_are_exactly_those_that_can_be(seed: int, reveal: bool) -> None:
    rng, roles = Random(seed), (M, DOC, DET, V, V, V)
    game = SecretMafia.dealt(roles, Chance(seed), 0, reveal, 10)
    moves: list[dict[int, str]] = []
    path = [game]
    while not game.won and len(moves) < 3:
        moves.append(sampled(game, rng))
        game = game.apply(moves[-1])
        path.append(game)
    if game.won:
        game = path[-2]
        moves, path = moves[:-1], path[:-1]
    votes = [move for move, before in zip(moves, path, strict=False) if before.phase == "vote"]
    for seat in range(6):
        views = [view(now, seat) for now in path]
        allowed = {
            deal
            for deal in set(permutations(roles))
            if view(first := SecretMafia.dealt(deal, Chance(seed), 0, reveal, 10), seat) == views[0]
            and possible(first, seat, views[1:], votes)
        }
        draws = 60 * len(allowed)
        drawn = Counter(game.determinize(seat, rng).roles for _ in range(draws))
        assert set(drawn) == allowed
        assert all(20 <= count <= 110 for count in drawn.values())


def test_a_mafia_knows_that_whom_they_wanted_in_vain_is_not_the_doctor() -> None:
    game = SecretMafia.dealt((M, M, DOC, DET, V, V, V), Chance(0), 0, True, 10)
    saved = game.apply({0: "kill 4", 1: "kill 4", 2: "protect 4", 3: "investigate 0"})
    doctors = Counter(saved.determinize(0, Random(seed)).roles.index(DOC) for seed in range(200))
    assert set(doctors) == {2, 3, 5, 6}
    views = [view(saved, 0)]
    for doctor in range(2, 7):
        roles = [M, M, V, V, V, V, V]
        roles[doctor], roles[2 if doctor > 2 else 3] = DOC, DET
        first = SecretMafia.dealt(tuple(roles), Chance(0), 0, True, 10)
        assert possible(first, 0, views, []) == (doctor in doctors)


def test_hidden_dead_are_not_so_many_mafia_that_the_game_would_be_over() -> None:
    assert goes_on((M, DOC, DET, V, V, V), (3, 4))
    assert not goes_on((M, DOC, DET, V, V, V), (3, 0))
    assert not goes_on((M, M, DOC, DET, V, V), (3, 4))
    game = SecretMafia.dealt((M, DOC, DET, V, V, V, V), Chance(0), 0, False, 10)
    game = game.apply({0: "kill nobody", 1: "protect nobody", 2: "investigate nobody"})
    game = game.apply({p: "vote 6" if p != 6 else "vote nobody" for p in range(7)})
    mafia = {game.determinize(5, Random(seed)).roles.index(M) for seed in range(100)}
    assert mafia == {0, 1, 2, 3, 4}


def test_facts() -> None:
    game = SecretMafia.dealt((M, M, DOC, DET, V, V, V), Chance(0), 0, True, 10)
    game = game.apply({0: "kill 4", 1: "kill 4", 2: "protect 5", 3: "investigate 1"})
    known = [Facts.of(p, game.roles, game.nights, game.fallen) for p in range(7)]
    assert known[0] == Facts({0: M, 1: M, 4: V}, frozenset({0, 1}), frozenset({2, 3, 4, 5, 6}))
    assert known[3] == Facts({3: DET, 4: V}, frozenset({1}), frozenset({3, 4}))
    assert known[5] == Facts({5: V, 4: V}, frozenset(), frozenset({4, 5}))


# Twins: two deals that agree with what a seat knows, played on with the same public outcomes.


def twin_night(game: SecretMafia, other: SecretMafia, seat: int, rng: Random) -> tuple[dict[int, str], dict[int, str]]:
    """Night actions for both with one outcome: the seat does the same, its fellow Mafia too, the others fit in."""
    pairs = {p: {game.roles[p], other.roles[p]} for p in game.living if p != seat}
    safe = [p for p, pair in pairs.items() if M not in pair and (len(pair) == 1 or not game.reveal)]
    victim = rng.choice([*safe, "nobody"])
    alike = [p for p, pair in pairs.items() if DET not in pair and (len(pair) == 1 or M not in pair)]
    look = rng.choice([*alike, "nobody"])
    named = {M: f"kill {victim}", DOC: "protect nobody", DET: f"investigate {look}"}
    return ({p: named[game.roles[p]] for p in game.to_act()}, {p: named[other.roles[p]] for p in other.to_act()})


def twin_vote(game: SecretMafia, other: SecretMafia, rng: Random) -> dict[int, str]:
    """One vote for both; who is out has the same role in both, if roles are shown."""
    out = rng.choice(game.living)
    if game.reveal and game.roles[out] != other.roles[out]:
        return dict.fromkeys(game.living, "vote nobody")
    return {p: "vote nobody" if p == out else f"vote {out}" for p in game.living}


@settings(deadline=None)
@given(TABLES, st.integers(0, 10**6))
def test_two_deals_that_agree_look_alike_while_neither_is_over(table: dict[str, Any], seed: int) -> None:
    rng = Random(seed)
    start = rng.choice([now for now in positions(SecretMafia.initial(rng, **table), rng) if not now.won])
    seat = rng.randrange(start.players)
    game, other = start.determinize(seat, rng), start.determinize(seat, rng)
    while not (game.won or other.won):
        assert view(game, seat) == view(other, seat)
        assert game.phase == other.phase
        if game.phase == "night":
            mine, theirs = twin_night(game, other, seat, rng)
        elif game.phase == "vote":
            mine = theirs = twin_vote(game, other, rng)
        else:
            mine = theirs = sampled(game, rng)
        game, other = game.apply(mine), other.apply(theirs)
