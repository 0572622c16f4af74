"""The plan of `examples.train_llm`: whose deals are whose, what the model is told, and whom it meets."""

import doctest
from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest

from arena.agent import View
from arena.agents.prompting import Prompter
from arena.match import play_sync
from arena.registry import AgentSpec, make_game
from examples.train_llm import __main__ as command
from examples.train_llm import intervals, plan
from examples.train_llm.opponents import Remembering, pool


@pytest.mark.parametrize("module", [plan, intervals], ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_hold(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]  # a module
    assert found.attempted
    assert not found.failed


def test_no_two_purposes_and_no_two_runs_share_a_deal() -> None:
    most = 1 << 24
    ranges = [plan.seeds(purpose, run, most) for purpose in get_args(plan.Purpose) for run in (0, 1, 2, 901)]
    for one, other in combinations(ranges, 2):
        assert one[-1] < other[0] or other[-1] < one[0]
    assert max(each[-1] for each in ranges) < 1 << 62


def test_more_deals_than_a_purpose_has_are_refused() -> None:
    with pytest.raises(ValueError, match="allowed are 1 to"):
        plan.seeds("curve", 0, (1 << 24) + 1)


def test_a_checkpoint_is_asked_as_the_plan_says() -> None:
    spec = AgentSpec.parse(plan.spec(Path("a/model")))
    assert (spec.name, spec.target) == ("local", "a/model")
    assert dict(spec.options) == {
        "answer": "plain",
        "template": plan.PROMPTING.template,
        "max_tokens": plan.SAMPLING.max_tokens,
        "temperature": 1.0,
    }


def test_what_the_model_is_told() -> None:
    game = make_game(plan.GAME, 0)
    for action in "519":
        game = game.apply({game.to_act()[0]: action})
    view = View(1, game.observation(1), game.legal_actions(1), {}, "", 3, game)
    prompter = Prompter(plan.PROMPTING)
    assert prompter.system(view) == "You are O. Write a free square."
    assert prompter.turn(view) == "O:\nO1 2 3\n4 X5 6\n7 8 X9"
    view.note = "[Not accepted.]"
    assert prompter.note(view) == "[Not accepted.]"


def test_minimax_that_remembers_never_loses_and_varies() -> None:
    agent = Remembering()
    games = [play_sync(plan.GAME, [agent, "random"] if seed % 2 else ["random", agent], seed) for seed in range(200)]
    earned = [(game.returns or ())[(seed + 1) % 2] for seed, game in enumerate(games)]
    assert min(earned) == 0
    assert sum(reward > 0 for reward in earned) > 150
    assert len({game.turns[0].action for game in games[1::2]}) > 3


def test_minimax_that_remembers_draws_with_minimax() -> None:
    agent = Remembering(draws=2)
    games = [play_sync(plan.GAME, [agent, "minimax"] if seed % 2 else ["minimax", agent], seed) for seed in range(6)]
    assert {game.returns for game in games} == {(0.0, 0.0)}


def test_it_must_have_something_to_draw_from() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Remembering(draws=0)


def test_practice_is_against_one_that_errs_and_one_that_does_not() -> None:
    random, search, perfect = pool()
    assert (random, search) == ("random", "mcts?simulations=10")
    assert isinstance(perfect, Remembering)


@pytest.mark.parametrize(
    ("arguments", "rates"),
    [
        ([], (3e-3, 2e-3)),
        (["--model", "some/folder"], (3e-5, 2e-6)),
        (["--model", "some/folder", "--grpo-rate", "1e-5"], (3e-5, 1e-5)),
        (["--sft-rate", "0.01", "--size", "quick"], (1e-2, 2e-3)),
    ],
)
def test_a_checkpoint_learns_more_slowly_unless_told(arguments: list[str], rates: tuple[float, float]) -> None:
    found = command.read(arguments)
    assert (found.size.sft_rate, found.size.grpo_rate) == pytest.approx(rates)


def test_what_is_not_said_is_the_reported_run() -> None:
    assert command.read([]) == (Path("runs/train-llm"), (4, 5, 6), plan.SIZES["full"], "")


@pytest.mark.parametrize("seeds", ["", "1,1", "-1", "x", str(1 << 31)])
def test_seeds_that_are_none_are_refused(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        command.read([f"--seeds={seeds}"])
    assert error.value.code == 2
    assert "--seeds" in capsys.readouterr().err
