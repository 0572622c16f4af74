from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import minimize

from arena.tournaments.ratings import CENTER, Ratings
from arena.tournaments.ratings.davidson import ELO, Belief
from arena.tournaments.ratings.rasch import Answers, _derivatives, _laid, scores
from arena.tournaments.ratings.tasks import FEW_COMMON, TaskPrior, TaskResults, fit_tasks, rate_tasks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = tuple[str, str, object, float]

FLAT = TaskPrior(strength=3000, difficulty=3000)


def names(n: int) -> tuple[str, ...]:
    return tuple([f"p{k}" for k in range(n)])


def table(scored: Floats, family: Ints | None = None, trials: float | None = None) -> TaskResults:
    """From scores, shape (agents, tasks); NaN where there is no answer."""
    agent, task = np.nonzero(~np.isnan(scored))
    family = np.zeros(scored.shape[1], dtype=np.int64) if family is None else family
    games = tuple([f"g{k}" for k in range(int(family.max()) + 1)])
    weight = None if trials is None else np.full(len(agent), trials)
    tasks = tuple(range(scored.shape[1]))
    return TaskResults(names(len(scored)), games, tasks, family, agent, task, scored[agent, task], weight)


def simulated(rng: np.random.Generator, strength: Floats, difficulty: Floats, trials: int = 1) -> Floats:
    """Scores of all agents on all tasks."""
    p = 1 / (1 + np.exp(-(strength[:, None] - difficulty) / ELO))
    return np.asarray(rng.binomial(trials, p) / trials, dtype=np.float64)


def test_agrees_with_bfgs() -> None:
    """The marginal posterior by its definition, difficulties integrated by quadrature."""
    rng = np.random.default_rng(0)
    scored = simulated(rng, np.array([0.0, 150.0, -200.0]), rng.normal(50, 250, 25))
    prior = TaskPrior()

    def marginal(seen: Floats, x: Floats) -> float:
        def joint(b: float) -> float:
            told = float((seen * (x[:3] - b) - np.logaddexp(0, x[:3] - b)).sum())
            return float(np.exp(told - 0.5 * ((b - x[3]) / np.exp(x[4])) ** 2 - x[4]) / np.sqrt(2 * np.pi))

        return float(np.log(quad(joint, x[3] - 12 * np.exp(x[4]), x[3] + 12 * np.exp(x[4]), epsabs=1e-12)[0]))

    kinds, counts = np.unique(scored.T, axis=0, return_counts=True)

    def loss(x: Floats) -> float:
        total = float((x[:3] ** 2).sum()) / 2 / (prior.strength / ELO) ** 2
        total += float(x[3] ** 2) / 2 / (prior.difficulty / ELO) ** 2
        total += float((x[4] - np.log(prior.spread / ELO)) ** 2) / 2 / prior.log_spread**2
        return float(total - sum(n * marginal(seen, x) for seen, n in zip(kinds, counts, strict=True)))

    found = minimize(loss, np.array([0.0, 0.0, 0.0, 0.0, 0.5]), method="BFGS", options={"gtol": 1e-6}).x
    rated = rate_tasks(table(scored))
    assert rated.elo - CENTER == pytest.approx(ELO * (found[:3] - found[:3].mean()), abs=0.01)
    assert rated.seats["g0"]["average task"][0] == pytest.approx(ELO * (found[3] - found[:3].mean()), abs=0.01)


def test_derivatives_are_the_loss_s() -> None:
    rng = np.random.default_rng(3)
    solved = rng.integers(0, 3, (7, 4)).astype(np.float64)
    answers = Answers(
        solved,
        solved + rng.integers(0, 2, (7, 4)).astype(np.float64),
        np.arange(7) % 2,
        rng.integers(1, 4, 7).astype(np.float64),
        2,
    )
    held = Belief(np.zeros(8), np.full(8, 3.0))
    x = rng.normal(0, 0.5, 8)
    nodes, _ = _laid(answers, x, np.zeros(7))
    _, gradient, hessian = _derivatives(answers, x, nodes, held)
    for k, way in enumerate(1e-5 * np.eye(8)):
        (up, ahead, _), (down, _, _) = [_derivatives(answers, x + s * way, nodes, held) for s in (1, -1)]
        assert gradient[k] == pytest.approx((up - down) / 2e-5, abs=1e-5)
        assert hessian[k] == pytest.approx((ahead - gradient) / 1e-5, abs=1e-3)
    assert gradient == pytest.approx(3.0 * x - answers.tasks @ scores(answers, x), abs=1e-5)


def test_two_agents_are_not_stretched() -> None:
    """With strengths and all difficulties fitted together the gap of two is twice what it is, however many tasks."""
    gaps = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rated = rate_tasks(table(simulated(rng, np.array([0.0, 150.0]), rng.normal(0, 300, 4000))), prior=FLAT)
        gaps.append(rated.difference("p1", "p0")[0])
    assert np.mean(gaps) == pytest.approx(150, abs=15)


def test_conditional_likelihood_says_the_same() -> None:
    """Of two agents who share tasks, only those that one solves tell, and the odds among them are the strengths' own
    (Rasch 1960): no difficulty is in them."""
    rng = np.random.default_rng(1)
    scored = simulated(rng, np.array([0.0, 150.0]), rng.normal(0, 300, 6000))
    only = [float(((scored[k] == 1) & (scored[1 - k] == 0)).sum()) for k in (0, 1)]
    rated = rate_tasks(table(scored), prior=FLAT)
    assert rated.difference("p1", "p0")[0] == pytest.approx(ELO * np.log(only[1] / only[0]), abs=1)


def test_trials_are_repeated_answers() -> None:
    rng = np.random.default_rng(4)
    scored = simulated(rng, rng.normal(0, 200, 5), rng.normal(0, 200, 40), trials=4)
    whole = rate_tasks(table(scored, trials=4.0))
    rows: list[Row] = []
    for agent, task in np.ndindex(*scored.shape):
        wins = round(4 * float(scored[agent, task]))
        rows += [("g0", f"p{agent}", task, float(k < wins)) for k in range(4)]
    single = rate_tasks(TaskResults.of(rows, names(5)))
    assert single.elo == pytest.approx(whole.elo, abs=1e-6)
    assert single.half == pytest.approx(whole.half, abs=1e-6)
    assert single.wins.tolist() == whole.wins.tolist()
    assert single.played.tolist() == [160] * 5


def test_order_and_names_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    scored = simulated(rng, rng.normal(0, 200, 6), rng.normal(0, 200, 60))
    new, shuffled = rng.permutation(6), rng.permutation(60)
    plain, renamed = rate_tasks(table(scored)), rate_tasks(table(scored[new][:, shuffled]))
    assert renamed.elo == pytest.approx(plain.elo[new], abs=1e-6)
    assert renamed.half == pytest.approx(plain.half[new], abs=1e-6)


def test_families_have_difficulties_of_their_own() -> None:
    rng = np.random.default_rng(6)
    difficulty = np.concatenate([rng.normal(-300, 50, 300), rng.normal(400, 300, 300)])
    strength = np.linspace(-200, 200, 8)
    results = table(simulated(rng, strength, difficulty), np.repeat([0, 1], 300))
    fitted, rated = fit_tasks(results), rate_tasks(results)
    easy, hard = [rated.seats[game]["average task"] for game in ("g0", "g1")]
    assert easy[0] == pytest.approx(-300, abs=40)
    assert hard[0] == pytest.approx(400, abs=60)
    assert np.exp(fitted.fit.parameters[-2:]) * ELO == pytest.approx([50, 300], abs=50)
    assert rated.elo - CENTER == pytest.approx(strength, abs=50)
    off = (ELO * fitted.difficulty - difficulty - ELO * fitted.fit.parameters[:8].mean()) / (ELO * fitted.deviation)
    assert np.mean(np.abs(off) < 2) > 0.9


def test_a_task_nobody_met_is_its_family_s_average() -> None:
    results = table(np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    wider = results._replace(tasks=(*results.tasks, "new"), family=np.zeros(4, dtype=np.int64))
    fitted = fit_tasks(wider)
    assert fitted.difficulty[3] == pytest.approx(fitted.fit.parameters[2], abs=1e-6)
    assert rate_tasks(wider).elo == pytest.approx(rate_tasks(results).elo, abs=1e-3)


def bands(rng: np.random.Generator, agents: int, common: int) -> Floats:
    """Every agent meets some tasks that all meet, and as many as make 60 of 300 others."""
    scored = simulated(rng, rng.normal(0, 200, agents), rng.normal(0, 300, 300 + common))
    seen = np.zeros(scored.shape, dtype=np.bool_)
    seen[:, 300:] = True
    for k in range(agents):
        seen[k, rng.permutation(300)[: 60 - common]] = True
    return np.where(seen, scored, np.nan)


@pytest.mark.parametrize(("common", "flagged"), [(0, True), (20, True), (40, False), (60, False)])
def test_thin_overlap_is_flagged(common: int, flagged: bool) -> None:
    rated = rate_tasks(table(bands(np.random.default_rng(0), 12, common)))
    assert all((FEW_COMMON in words) is flagged for words in rated.flags)


def test_thin_overlap_is_flagged_on_whom_it_concerns() -> None:
    rng = np.random.default_rng(2)
    scored = np.full((6, 120), np.nan)
    scored[:5, :60] = simulated(rng, np.zeros(5), np.zeros(60))
    scored[5, 55:] = rng.integers(0, 2, 65)
    rated = rate_tasks(table(scored))
    assert [FEW_COMMON in words for words in rated.flags] == [False] * 5 + [True]
    fewer = np.where(np.arange(120) < 20, scored, np.nan)[:5]
    some = scored[:5].copy()
    some[4] = fewer[4]  # one who did less of the same is not to blame
    assert not any(FEW_COMMON in words for words in rate_tasks(table(some)).flags)
    assert rate_tasks(table(some)).half[4] > rate_tasks(table(some)).half[0]


HOSTILE: dict[str, Floats] = {
    "one answer": np.array([[1.0]]),
    "one agent": np.array([[1.0, 0.0, 1.0]]),
    "one task": np.array([[1.0], [0.0], [0.5]]),
    "all solved": np.ones((4, 60)),
    "none solved": np.zeros((4, 60)),
    "undefeated": np.vstack([np.ones(80), np.arange(80) % 2, np.zeros(80)]),
    "fractions": np.tile(np.linspace(0, 1, 50), (3, 1)),
    "disconnected": np.where(np.kron(np.eye(2), np.ones((2, 30))) > 0, np.tile([0.0, 1.0], (4, 30)), np.nan),
    "the same task often": np.tile([[1.0], [0.0]], (1, 3000)),
    "guttman": np.tril(np.ones((60, 60))),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("method", ["auto", "fisher", "clustered"])
@pytest.mark.parametrize("trials", [None, 1e4])
def test_hostile_results_give_finite_numbers(name: str, method: Any, trials: float | None) -> None:
    rated = rate_tasks(table(HOSTILE[name], trials=trials), method)
    seats = np.array([worth for game in rated.seats.values() for worth in game.values()])
    for numbers in (rated.elo, rated.half, rated.covariance, seats, rated.standing.beats):
        assert np.isfinite(numbers).all()
    assert (rated.half > 0).all() or len(rated.players) == 1, "no certainty from nothing"
    assert np.abs(rated.elo - CENTER).max() < 6000 or name == "guttman"  # sixty steps of infinite odds


def rated(name: str) -> Ratings:
    return rate_tasks(table(HOSTILE[name]))


def test_flags() -> None:
    assert rated("undefeated").flags == (("all solved",), (), ("none solved",))
    assert set(rated("all solved").flags) == {("all solved",)}
    assert all("separate group" in words for words in rated("disconnected").flags)
    assert len(set(rated("disconnected").groups)) == 2
    later = TaskResults.of([("g", "a", k, float(k % 2)) for k in range(12)], players=["new", "a"])
    assert rate_tasks(later).flags == (("no games",), ())


def test_all_solved_is_above_and_no_more_certain() -> None:
    result = rated("undefeated")
    assert result.elo.tolist() == sorted(result.elo, reverse=True)
    assert result.half[0] > result.half[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": np.array([1.5, 0.0])}, "a score is outside 0 to 1"),
        ({"score": np.array([np.nan, 0.0])}, "a score is outside 0 to 1"),
        ({"score": np.array([1.0])}, "columns differ in length"),
        ({"trials": np.array([1.0, 0.0])}, "trials must be above 0"),
        ({"trials": np.array([1.0])}, "columns differ in length"),
        ({"agent": np.array([0, 2])}, "a number of agent is outside 0 to 1"),
        ({"task": np.array([0, 3])}, "a number of task is outside 0 to 0"),
        ({"family": np.array([0, 0])}, "1 tasks and 2 families"),
    ],
)
def test_bad_columns(change: dict[str, Any], message: str) -> None:
    good = TaskResults.of([("g", "a", "t", 1.0), ("g", "b", "t", 0.0)])
    with pytest.raises(ValueError, match=message):
        rate_tasks(good._replace(**change))


def test_nothing_and_unknown_methods() -> None:
    with pytest.raises(ValueError, match="nobody played"):
        rate_tasks(TaskResults.of([], players=["a"]))
    unknown: Any = "guess"
    with pytest.raises(ValueError, match="method 'guess': allowed are"):
        rate_tasks(table(np.ones((2, 2))), unknown)


def covered(simulations: int, agents: int, tasks: int, spread: float = 250.0, kind: str = "normal") -> float:
    """The share of true ratings inside their 95 % intervals, all agents on the same tasks."""
    rating: list[bool] = []
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        strength, difficulty = rng.normal(0, 200, agents), rng.normal(0, spread, tasks)
        if kind == "two kinds":
            difficulty = rng.choice([-350.0, 350.0], tasks) + rng.normal(0, 50, tasks)
        result = rate_tasks(table(simulated(rng, strength, difficulty)))
        rating += (np.abs(result.elo - CENTER - (strength - strength.mean())) <= result.half).tolist()
    return float(np.mean(rating))


SCENARIOS: dict[str, Sequence[Any]] = {
    "plain": (8, 200),
    "few tasks": (8, 25),
    "many agents": (30, 100),
    "two agents": (2, 300),
    "two kinds of tasks": (8, 300, 0.0, "two kinds"),
}


def test_intervals_hold_what_they_say_roughly() -> None:
    assert 0.88 < covered(25, 8, 100) < 0.995


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_intervals_hold_what_they_say(scenario: str, scale: int) -> None:
    share = covered(100 * scale, *SCENARIOS[scenario])
    print(f"{scenario}: ratings {share:.3f}")
    assert 0.915 <= share <= 0.985
