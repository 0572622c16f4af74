"""The kit passes games that keep the rules, and every check of it can fail."""

import random
import subprocess
import sys
from random import Random
from time import process_time
from typing import Self

import pytest

from arena.game import Game, LiveGame
from arena.games.board.tictactoe import TicTacToe
from arena.testing import CHECKS, ConformanceError, check_game, random_playthrough
from tests.broken_games import BROKEN
from tests.broken_games.play import NoDeal, NoFinalView
from tests.broken_games.register import Live
from tests.broken_games.shown import WholeReturns
from tests.broken_games.values import AllAlike, OnlyItself
from tests.toy_games import Bazaar, Take

GOOD = (TicTacToe, Take, Bazaar)


class Server(Live):
    """A live game that keeps the rules."""

    def close(self) -> None:
        CLOSED.append(self.stones)


CLOSED: list[int] = []


@pytest.mark.parametrize("game", GOOD)
def test_good_games_pass(game: type[Game]) -> None:
    check_game(game, subprocess=True)


@pytest.mark.parametrize("game", GOOD)
def test_a_small_game_takes_less_than_two_cpu_seconds(game: type[Game]) -> None:
    start = process_time()
    check_game(game)
    assert process_time() - start < 2


@pytest.mark.parametrize(("check", "game", "saying"), BROKEN, ids=[f"{c}-{g.__name__}" for c, g, _ in BROKEN])
def test_every_check_can_fail(check: str, game: type[Game], saying: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_game(game, checks=[check])
    assert caught.value.check == check
    assert saying in str(caught.value)


def test_every_check_has_its_broken_game_and_states_its_rule() -> None:
    assert {check for check, _, _ in BROKEN} == set(CHECKS)
    assert all(check.__doc__ and check.__name__ == name for name, check in CHECKS.items())


def test_broken_games_are_found_by_default() -> None:
    for check, game, _ in BROKEN[::9]:
        if check not in ("hash_seed", "linear_time"):
            with pytest.raises(ConformanceError):
                check_game(game, seeds=range(2))


def test_all_findings_are_reported_with_their_place() -> None:
    class Both(WholeReturns, NoFinalView):
        """Breaks two rules."""

    with pytest.raises(ConformanceError) as caught:
        check_game(Both, {"most": 4})
    assert {"defined", "returns"} <= {failure.check for failure in caught.value.failures}
    first = str(caught.value).splitlines()[1]
    assert "seed 0, after " in first
    assert first.endswith("with {'most': 4}")


def test_it_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="OnlyItself breaks"):
        check_game(OnlyItself)


def test_nothing_else_is_asked_of_a_game_without_a_deal() -> None:
    with pytest.raises(ConformanceError) as caught:
        check_game(NoDeal)
    assert [failure.check for failure in caught.value.failures] == ["plays"]


def test_abstract_games_are_findings_not_crashes() -> None:
    class Unwritten(Game):
        players = 2

        @classmethod
        def initial(cls, rng: Random) -> Self:
            return cls()

    with pytest.raises(ConformanceError, match=r"plays: no first position .*abstract"):
        check_game(Unwritten)  # type: ignore[type-abstract]  # that is what is tested


def test_several_sets_of_options() -> None:
    check_game(Take, [{"most": 3}, {"most": 9, "takes": [1, 3]}])
    with pytest.raises(ConformanceError, match="'most': 0") as caught:
        check_game(Take, [{"most": 3}, {"most": 0}])
    assert [dict(failure.options) for failure in caught.value.failures] == [{"most": 0}]


def test_unknown_checks_options_and_games() -> None:
    with pytest.raises(ValueError, match="unknown checks \\['purty'\\]: allowed are options, "):
        check_game(Take, checks=["purty"])
    with pytest.raises(ConformanceError, match="unexpected keyword argument 'colour'"):
        check_game(Take, {"colour": "red"})
    with pytest.raises(TypeError, match="takes a subclass of"):
        check_game(Take.initial(Random(0)))  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(ValueError, match="seeds is empty"):
        check_game(Take, seeds=())


def test_live_games_are_played_once_and_closed() -> None:
    CLOSED.clear()
    check_game(Server)
    assert CLOSED.count(0) >= 5
    assert issubclass(Server, LiveGame)


def test_long_games_are_cut() -> None:
    check_game(Bazaar, {"rounds": 9}, max_plies=2)


def test_local_classes_cannot_be_played_elsewhere() -> None:
    class Local(Take):
        """Not importable."""

    with pytest.raises(ConformanceError, match=r"hash_seed: .*move it to the top of a module"):
        check_game(Local, checks=["hash_seed"])


def test_random_playthrough_is_reproducible_and_ends() -> None:
    first = list(random_playthrough(Take, {"most": 9}, seed=3))
    assert first == list(random_playthrough(Take, {"most": 9}, seed=3))
    assert first[0] == Take.initial(Random(3), most=9)
    assert first[-1].to_act() == ()
    assert len(list(random_playthrough(Bazaar, max_plies=1))) == 2


def test_a_live_playthrough_is_closed_when_left() -> None:
    CLOSED.clear()
    play = random_playthrough(Server, {"most": 40}, seed=5)
    next(play)
    play.close()  # type: ignore[attr-defined]  # generators can be closed
    assert len(CLOSED) == 1


def test_the_kit_leaves_global_chance_alone() -> None:
    state = random.getstate()
    check_game(Bazaar)
    assert random.getstate() == state


def test_importing_the_kit_imports_no_numpy() -> None:
    code = "import sys, arena; sys.modules.pop('numpy', None); import arena.testing; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_equal_positions_that_differ_are_named() -> None:
    with pytest.raises(ConformanceError, match="equality: two positions that look different"):
        check_game(AllAlike)
