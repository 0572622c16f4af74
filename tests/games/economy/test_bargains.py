"""The instances, counted another way: a filter over every pool and every pair of value functions."""

from collections import Counter
from itertools import product
from random import Random

import pytest

from arena.games.economy.bargains import POOLS, TOTAL, instances, partners, splits, valuations, worth
from arena.games.economy.negotiation import Negotiation


def published(pool: tuple[int, ...], mine: tuple[int, ...], theirs: tuple[int, ...]) -> bool:
    """Lewis et al. 2017, section 2.2, sentence by sentence."""
    items = [(m, t) for count, m, t in zip(pool, mine, theirs, strict=True) for _ in range(count)]
    return (
        5 <= len(items) <= 7
        and min(pool) >= 1
        and sum(m for m, _ in items) == sum(t for _, t in items) == 10
        and all(m > 0 or t > 0 for m, t in items)
        and any(m > 0 and t > 0 for m, t in items)
    )


def test_every_instance_meets_the_published_constraints() -> None:
    assert len(instances()) == len(set(instances())) == 5793
    assert all(published(*instance) for instance in instances())


@pytest.mark.parametrize("pool", [(1, 1, 3), (2, 2, 3), (1, 5, 1)])
def test_no_instance_of_a_pool_is_missing(pool: tuple[int, int, int]) -> None:
    values = list(product(range(11), repeat=3))
    worthy = [v for v in values if sum(a * b for a, b in zip(pool, v, strict=True)) == 10]
    expected = {(pool, m, t) for m in worthy for t in worthy if published(pool, m, t)}
    assert {i for i in instances() if i[0] == pool} == expected


def test_pools_and_splits() -> None:
    assert len(POOLS) == 31
    for pool in POOLS:
        a, b, c = pool
        assert len(set(splits(pool))) == (a + 1) * (b + 1) * (c + 1)
        assert splits(pool)[0] == (0, 0, 0)
        assert splits(pool)[-1] == pool
        assert all(worth(v, pool) == TOTAL for v in valuations(pool))


def test_partners_are_mutual() -> None:
    for pool, mine, theirs in instances():
        assert mine in partners(pool, theirs)


def test_each_instance_is_dealt_with_the_same_chance() -> None:
    rng, draws = Random(1), 30_000
    counts = Counter(game.pool for game in (Negotiation.initial(rng) for _ in range(draws)))
    for pool in POOLS:
        expected = draws * sum(i[0] == pool for i in instances()) / len(instances())
        assert abs(counts[pool] - expected) < 5 * expected**0.5


@pytest.mark.oracle
def test_openspiels_instances_are_among_ours() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game("bargaining")
    ours = set(instances())
    for number in range(1000):
        state = game.new_initial_state()
        state.apply_action(number)
        instance = state.instance()
        assert (tuple(instance.pool), tuple(instance.values[0]), tuple(instance.values[1])) in ours
