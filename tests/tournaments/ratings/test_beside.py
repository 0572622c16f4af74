"""What is told beside the ratings, against cases worked out by hand and plain re-computations."""

import numpy as np
import pytest
from numpy.typing import NDArray

from arena.tournaments.ratings import Results, rate
from arena.tournaments.ratings.beside import Beside, _members, beside, cycle_share
from tests.tournaments.ratings.test_pairs import simulated

Floats = NDArray[np.float64]
Row = tuple[str, str, str, str, object]
BEATS = (("rock", "scissors"), ("scissors", "paper"), ("paper", "rock"))


def duel(a: str, b: str, wins: int, draws: int, losses: int) -> list[Row]:
    """Games of two, as many in each seat as can be."""
    outcomes = ["first"] * wins + ["draw"] * draws + ["second"] * losses
    turned = {"first": "second", "draw": "draw", "second": "first"}
    rows: list[Row] = []
    for k, outcome in enumerate(outcomes):
        rows.append(("g", a, b, outcome, (a, b, k)) if k % 2 else ("g", b, a, turned[outcome], (a, b, k)))
    return rows


def told(rows: list[Row]) -> Beside:
    results = Results.of(rows)
    return beside(results, rate(results))


def rock_paper_scissors(copies: int = 1, games: int = 4000) -> Results:
    """Rock, scissors and paper win nine of ten in turn, and six of ten against a weak fourth; rocks draw level."""
    rocks = [f"rock{k}" if k else "rock" for k in range(copies)]
    kinds = {"rock": rocks, "scissors": ["scissors"], "paper": ["paper"]}
    rows: list[Row] = []
    for a, b in BEATS:
        for one in kinds[a]:
            for other in kinds[b]:
                rows += duel(one, other, games * 9 // 10, 0, games // 10)
    for one in (*rocks, "scissors", "paper"):
        rows += duel(one, "weak", games * 6 // 10, 0, games * 4 // 10)
    for k, one in enumerate(rocks):
        for other in rocks[:k]:
            rows += duel(one, other, games // 2, 0, games // 2)
    return Results.of(rows, ["rock", "paper", "scissors", "weak"])


def test_ratings_turn_on_copies_and_nash_averaging_does_not() -> None:
    """The published case: +18, +18, +18, -53 Elo become +185 for paper and -165 for scissors."""
    alone, copied = rock_paper_scissors(), rock_paper_scissors(6, 400)
    before, after = rate(alone), rate(copied)
    assert before.elo - 1000 == pytest.approx([18, 18, 18, -53], abs=0.5)
    assert after.elo[1:4] - 1000 == pytest.approx([185, -165, -66], abs=3.0), "the prior weighs a little with 400 games"
    one, six = beside(alone, before), beside(copied, after)
    assert one.nash == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-3)
    assert one.skill == pytest.approx([0.5, 0.5, 0.5, 0.4], abs=1e-3)
    assert six.nash[[0, 4, 5, 6, 7, 8]].sum() == pytest.approx(1 / 3, abs=2e-3)
    assert six.nash[1:4] == pytest.approx([1 / 3, 1 / 3, 0], abs=2e-3)
    assert six.skill[:4] == pytest.approx([0.5, 0.5, 0.5, 0.4], abs=2e-3)
    assert one.lottery == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-9)


def test_the_clone_test_says_what_copies_would_do() -> None:
    """It is the refit with five more of an agent, all results again, worked out without them."""
    results = rock_paper_scissors(1, 400)
    moved = beside(results, rate(results)).clones
    copied = rate(rock_paper_scissors(6, 400)).elo[[1, 2, 3]] - rate(results).elo[[1, 2, 3]]
    assert moved[0] == pytest.approx(np.abs(copied - copied.mean()).max(), rel=0.01)
    assert moved[0] > 170
    assert moved[:3] == pytest.approx([moved[0]] * 3, abs=0.01), "the circle looks alike from each"
    assert moved[3] < 0.1, "to the weak all lose alike: more of it tells nothing"


def test_a_circle_is_all_cycle_and_a_ladder_none() -> None:
    circle = told([row for pair in BEATS for row in duel(*pair, 30, 0, 10)])
    assert circle.cycle == pytest.approx(1.0, abs=1e-6)
    assert circle.cycle_noise < 0.5
    # Odds of a over b are 2, of b over c 2, of a over c 4.
    ladder = told([*duel("a", "b", 2000, 0, 1000), *duel("b", "c", 2000, 0, 1000), *duel("a", "c", 2400, 0, 600)])
    assert ladder.cycle < 1e-4
    assert ladder.residuals[0].z == pytest.approx(0, abs=0.3)


def test_draws_are_no_cycles() -> None:
    """Davidson's own expectations, draws and all, are explained by its strengths."""
    a, b, tie = 0.8, 0.4, np.exp(0.5)

    def expected(d: float) -> list[int]:
        up, down = np.exp(d / 2), np.exp(-d / 2)
        total = up + down + tie
        return [round(10_000 * part / total) for part in (up, tie, down)]

    ladder = told([*duel("x", "y", *expected(a)), *duel("y", "z", *expected(b)), *duel("x", "z", *expected(a + b))])
    assert ladder.cycle < 1e-5


def test_cycle_share_against_least_squares() -> None:
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(7, 1)
    met = rng.random(len(a)) < 0.6
    a, b = a[met].astype(np.int64), b[met].astype(np.int64)
    flow, games = rng.normal(size=len(a)), rng.integers(1, 40, len(a)).astype(np.float64)
    gradient = np.zeros((len(a), 7))
    gradient[np.arange(len(a)), a], gradient[np.arange(len(a)), b] = 1, -1
    root = np.sqrt(games)
    potential = np.linalg.lstsq(gradient * root[:, None], flow * root, rcond=None)[0]
    rest = flow - gradient @ potential
    expected = (games * rest**2).sum() / (games * flow**2).sum()
    assert cycle_share(7, a, b, flow, games) == pytest.approx([expected])
    assert cycle_share(7, a, b, np.stack([flow, 3 * flow]), games) == pytest.approx([expected] * 2)
    assert cycle_share(7, a, b, gradient @ rng.normal(size=7), games) == pytest.approx([0.0], abs=1e-12)
    assert cycle_share(7, a, b, 0 * flow, games).tolist() == [0.0]


@pytest.mark.parametrize("luck", [0.0, 400.0])
def test_chance_alone_gives_what_is_foretold(luck: float) -> None:
    """Games that go by strengths: cycles are noise, and residuals are standard normal, whatever luck a seed brings."""
    shares, noises, squares = [], [], []
    for seed in range(30):
        rng = np.random.default_rng([seed, int(luck)])
        results = simulated(rng, rng.normal(0, 200, 8), 3000, luck=luck)
        seen = beside(results, rate(results), most=99)
        shares.append(seen.cycle)
        noises.append(seen.cycle_noise)
        squares += [residual.z**2 for residual in seen.residuals]
    assert np.mean(shares) / np.mean(noises) == pytest.approx(1.0, abs=0.25)
    assert np.mean(squares) == pytest.approx(1.0, abs=0.15)  # 840 of them: its own error is 0.05


def test_a_surprising_pair_is_found() -> None:
    rng = np.random.default_rng(7)
    results = simulated(rng, rng.normal(0, 150, 8), 4000)
    changed = results.outcome.copy()
    pair = np.flatnonzero(
        (np.minimum(results.first, results.second) == 2) & (np.maximum(results.first, results.second) == 5)
    )
    changed[pair] = np.where(results.first[pair] == 2, 0, 2)
    odd = results._replace(outcome=changed)
    found = beside(odd, rate(odd), most=3).residuals
    assert len(found) == 3
    assert (found[0].first, found[0].second, found[0].games) == (2, 5, len(pair))
    assert found[0].seen == 1.0
    assert 0.05 < found[0].expected < 0.95
    assert found[0].z > 5 > abs(found[1].z)


def test_seats_are_taken_out() -> None:
    """White wins nearly always; ann had white throughout against bob, and nobody is better than another."""
    rows: list[Row] = [("g", "ann", "bob", "second" if k % 10 == 0 else "first", k) for k in range(200)]
    for k in range(200):
        rows.append(
            ("g", *(("ann", "cat") if k % 2 else ("cat", "ann")), "second" if k % 20 < 2 else "first", ("c", k))
        )
        rows.append(
            ("g", *(("bob", "cat") if k % 2 else ("cat", "bob")), "second" if k % 20 < 2 else "first", ("d", k))
        )
    seen = told(rows)
    assert seen.skill == pytest.approx([0.5] * 3, abs=0.01)
    assert max(abs(residual.z) for residual in seen.residuals) < 1


def weighed(results: Results, times: int) -> Results:
    """The same clusters once, standing for as many."""
    size = len(results.outcome)
    return results._replace(times=np.full(size, float(times)))


def repeated(results: Results, times: int) -> Results:
    """The same clusters again and again, under new numbers."""
    most = int(results.cluster.max()) + 1
    game, first, second, outcome = [np.tile(column, times) for column in results[2:6]]
    cluster = np.concatenate([results.cluster + k * most for k in range(times)])
    return Results(results.players, results.games, game, first, second, outcome, cluster)


def test_a_table_of_counts_gives_what_single_games_give() -> None:
    rng = np.random.default_rng(3)
    results = simulated(rng, rng.normal(0, 200, 5), 300, luck=300)
    counted, single = weighed(results, 4), repeated(results, 4)
    one, other = beside(counted, rate(counted, "fisher")), beside(single, rate(single, "fisher"))
    assert one.nash == pytest.approx(other.nash, abs=1e-9)
    assert one.cycle == pytest.approx(other.cycle, abs=1e-9)
    assert one.cycle_noise == pytest.approx(other.cycle_noise, abs=1e-9)
    assert one.clones == pytest.approx(other.clones, abs=1e-6)
    assert np.array(one.residuals) == pytest.approx(np.array(other.residuals), abs=1e-6)


HOSTILE: dict[str, list[Row]] = {
    "one game": [("g", "a", "b", "first", 0)],
    "all draws": [*duel("a", "b", 0, 9, 0), *duel("b", "c", 0, 9, 0)],
    "undefeated": [*duel("a", "b", 500, 0, 0), *duel("b", "c", 500, 0, 0)],
    "two groups": [*duel("a", "b", 5, 2, 3), *duel("c", "d", 9, 0, 0)],
    "a million of one pair": duel("a", "b", 3, 1, 1),
    "one cluster": [("g", "a", "b", "first", 0), ("g", "b", "c", "first", 0), ("g", "c", "a", "draw", 0)] * 30,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_was_played_all_numbers_are_numbers(name: str) -> None:
    results = Results.of(HOSTILE[name], ["idle"] if name == "one game" else [])
    if name == "a million of one pair":
        results = weighed(results, 200_000)
    seen = beside(results, rate(results))
    for column in (seen.nash, seen.skill, seen.lottery, seen.clones, np.array(seen.residuals)):
        assert np.isfinite(column).all()
    assert np.isfinite([seen.cycle, seen.cycle_noise]).all()
    assert seen.nash.sum() == pytest.approx(1)
    assert seen.lottery.sum() == pytest.approx(1)
    assert 0 <= seen.cycle <= 1
    assert 0 <= seen.cycle_noise <= 1
    assert max(abs(residual.z) for residual in seen.residuals) < 10


@pytest.mark.filterwarnings("error")
def test_anchors_that_no_result_can_bear_leave_numbers() -> None:
    """A sure winner by its anchor who lost: every score stays between 0 and 1, and the surprise is finite."""
    results = Results.of(duel("a", "b", 1, 1, 5))
    ratings = rate(results, anchors={"a": 100_000.0, "b": -100_000.0})
    seen = beside(results, ratings)
    for column in (seen.nash, seen.skill, seen.lottery, seen.clones, np.array(seen.residuals)):
        assert np.isfinite(column).all()
    assert np.isfinite([seen.cycle, seen.cycle_noise]).all()
    assert 0 <= seen.cycle <= 1
    assert seen.nash == pytest.approx([1, 0])


def test_two_players_surprise_nobody() -> None:
    """A pair that made the ratings alone cannot differ from them."""
    seen = told(duel("a", "b", 70, 10, 20))
    assert [round(residual.z, 6) for residual in seen.residuals] == [0.0]
    assert seen.cycle == pytest.approx(0, abs=1e-12)
    assert seen.clones.tolist() == [0.0, 0.0]


def test_groups_apart_are_even_and_never_moved_by_each_other() -> None:
    seen = told([*duel("a", "b", 10, 0, 10), *duel("c", "d", 10, 0, 10)])
    assert seen.nash == pytest.approx([0.25] * 4, abs=1e-6)
    assert seen.clones.tolist() == [0.0] * 4


def test_fifty_players_of_random_games() -> None:
    rng = np.random.default_rng(11)
    results = simulated(rng, rng.normal(0, 200, 50), 5000)
    seen = beside(results, rate(results))
    assert int(np.argmax(seen.nash)) == int(np.argmax(seen.skill))
    assert len(seen.residuals) == 20
    strength = rate(results).elo
    assert np.corrcoef(strength, seen.skill)[0, 1] > 0.5


def test_a_design_effect_knows_a_cluster_of_several_pairs_by_sorting_or_not() -> None:
    pair = np.array([0, 1, 0, 2, 1, 0])
    for cluster in (np.array([5, 5, 5, 0, 0, 7]), np.array([5, 5, 5, 0, 0, 7]) * 10**9):
        member = _members(pair, cluster)
        rows = list(zip(pair, cluster, strict=True))
        for k, one in enumerate(member):
            assert [one == other for other in member] == [rows[k] == row for row in rows]
