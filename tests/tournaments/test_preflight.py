"""Before anything is scheduled, every agent shows that it can play."""

import asyncio
import time
from pathlib import Path

import pytest

from arena.tournaments.config import parse
from arena.tournaments.preflight import probe
from arena.tournaments.runner import Refused, run
from arena.tournaments.store import Store
from arena.workers import Workers
from tests.tournaments.players import Counted, Flaky
from tests.tournaments.test_runner import PLAIN, play, rows


def test_preflight_refuses_who_cannot_play(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="agent 'minimax' cannot play KuhnPoker-v0: ValueError: minimax cannot play"):
        play(tmp_path, agents=["minimax", "first"])
    assert rows(tmp_path) == []


def test_preflight_passes_on_what_an_agent_says_beforehand(tmp_path: Path) -> None:
    said = "agent 'choosy' cannot play Arithmetic-v0: there is no list of legal actions; leave this game out"
    with pytest.raises(Refused, match=said):
        play(tmp_path, games=["TicTacToe", "Arithmetic"], agents=["choosy", "first"])
    assert play(tmp_path, games=["TicTacToe"], agents=["choosy", "first"]).left == 0


def test_preflight_tells_whatever_fails_beforehand(tmp_path: Path) -> None:
    said = r"agent 'failing\?where=prepare' cannot play TicTacToe-v0: ConnectionError: nobody is there"
    with pytest.raises(Refused, match=said):
        play(tmp_path, agents=["failing?where=prepare", "first"])
    assert rows(tmp_path) == []


def test_a_store_is_opened_once_all_have_shown_that_they_can_play(tmp_path: Path) -> None:
    asked, wrong = parse(PLAIN), parse({**PLAIN, "agents": ["minimax", "first"]})
    with pytest.raises(Refused):
        run(wrong, lambda: Store.resume(tmp_path / "wrong", wrong))
    tally = run(asked, lambda: Store.resume(tmp_path / "right", asked))
    assert (tally.finished, tally.left) == (12, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["right"]
    assert len(rows(tmp_path / "right")) == 12


def test_a_stop_during_preflight_opens_no_store(tmp_path: Path) -> None:
    asked = parse({**PLAIN, "agents": ["slow", "first"]})
    tally = run(asked, lambda: Store.resume(tmp_path / "x", asked), lambda tally: setattr(tally, "stopped", True))
    assert (tally.finished, tally.left) == (0, 12)
    assert list(tmp_path.iterdir()) == []


def test_preflight_forgives_a_hiccup_and_is_left_out_when_all_is_played(tmp_path: Path) -> None:
    play(tmp_path, games=["TicTacToe"], agents=["flaky?times=2", "first"])
    asked = Flaky.asked
    play(tmp_path, games=["TicTacToe"], agents=["flaky?times=2", "first"])
    assert Flaky.asked == asked


@pytest.mark.parametrize("game", ["SecretMafia", "TicTacToe", "RockPaperScissors", "Arithmetic", "LiarsDice?players=4"])
def test_preflight_asks_one_seat(game: str) -> None:
    asked = parse({"games": [game], "agents": ["random", "first"], "blocks": 1, "referee": {"retries": 3}})
    with Workers(1) as pool:
        asyncio.run(probe(asked, asked.games[0], Counted(), pool))
    assert Counted.asked == 1


def test_a_stop_during_preflight_plays_nothing(tmp_path: Path) -> None:
    asked = parse(PLAIN)
    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store, lambda tally: setattr(tally, "stopped", True))
    assert (tally.finished, tally.left) == (0, 12)


def test_preflight_asks_all_agents_at_once(tmp_path: Path) -> None:
    agents = [{"spec": "slow?seconds=0.3", "name": f"slow {number}"} for number in range(10)]
    asked = parse({"games": ["TicTacToe"], "agents": agents, "blocks": 1})
    started = time.monotonic()
    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store, lambda tally: setattr(tally, "stopped", time.monotonic() > started + 0.1), tick=0.05)
    assert tally.finished <= 32
    assert time.monotonic() - started < 10 * 0.3
