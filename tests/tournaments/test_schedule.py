import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.tournaments.config import Tournament, parse
from arena.tournaments.schedule import Fixture, _games_of_block, count, fixtures, lineups, rotations, seats_of

AGENTS = ["random", "first", "mcts?simulations=1", "mcts?simulations=2", "mcts?simulations=3"]


def made(game: str, agents: int, blocks: int = 3, **more: Any) -> Tournament:
    return parse({"games": [game], "agents": AGENTS[:agents], "blocks": blocks, **more})


def test_two_seats_are_a_round_robin_in_both_orders() -> None:
    games = list(fixtures(made("TicTacToe", 3, seed=10)))
    assert len(games) == 3 * 3 * 2
    assert Counter(game.agents for game in games) == dict.fromkeys([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)], 3)
    assert {game.seed for game in games} == {10, 11, 12}


def test_a_block_is_one_seed_and_one_pair() -> None:
    blocks: dict[str, list[Fixture]] = {}
    for game in fixtures(made("TicTacToe", 3)):
        blocks.setdefault(game.block, []).append(game)
    assert len(blocks) == 9
    for first, second in blocks.values():
        assert first.seed == second.seed
        assert first.agents == second.agents[::-1]


def test_a_task_is_done_by_every_agent_alone_on_the_same_seeds() -> None:
    games = list(fixtures(made("Arithmetic", 3, 2)))
    assert [(game.seed, game.agents) for game in games] == [(seed, (agent,)) for seed in (0, 1) for agent in range(3)]


@given(st.integers(2, 9), st.integers(3, 8), st.integers(0, 5))
def test_tables_of_many_seats(agents: int, seats: int, start: int) -> None:
    everywhere: Counter[int] = Counter()
    for block in range(start * agents, (start + 1) * agents):
        tables = lineups(agents, seats, block, seed=block)
        assert len(tables) == -(-agents // seats)
        for table in tables:
            held = Counter(table)
            assert len(table) == seats
            assert max(held.values()) == -(-seats // agents)
            everywhere.update(table)
        if agents <= seats or block == start * agents:
            assert {agent for table in tables for agent in table} == set(range(min(agents, len(tables) * seats)))
    assert len(set(everywhere.values())) == 1, "over as many blocks as agents all play equally often"


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7).map(tuple))
def test_rotations_put_everybody_everywhere_once(table: tuple[int, ...]) -> None:
    turned = rotations(table)
    assert len(set(turned)) == len(turned)
    assert turned[0] == table
    for seat in range(len(table)):
        held = Counter(order[seat] for order in turned)
        assert {agent: times * len(table) for agent, times in held.items()} == {
            agent: times * len(turned) for agent, times in Counter(table).items()
        }


@pytest.mark.parametrize(
    ("game", "agents", "expected"),
    [
        ("TicTacToe", 2, 2),
        ("TicTacToe", 5, 20),
        ("Wordle", 4, 4),
        ("LiarsDice?players=3", 3, 3),
        ("LiarsDice?players=3", 5, 6),
        ("LiarsDice?players=4", 2, 2),
        ("SecretMafia?players=6", 4, 6),
    ],
)
def test_counts(game: str, agents: int, expected: int) -> None:
    for repetitions in (1, 3):
        asked = made(game, agents, 4, repetitions=repetitions)
        assert count(asked) == [4 * expected * repetitions]
        games = list(fixtures(asked))
        assert len({game.id for game in games}) == len(games) == 4 * expected * repetitions


@pytest.mark.parametrize("seats", range(1, 9))
def test_counts_are_those_of_the_line_ups(seats: int) -> None:
    for agents in range(1 + (seats == 2), 14):
        for block in range(3):
            made = sum(len(rotations(table)) for table in lineups(agents, seats, block, block))
            assert _games_of_block(agents, seats) == made


def test_counting_takes_no_time() -> None:
    asked = made("TicTacToe", 2, blocks=10**9, repetitions=10**6)
    assert count(asked) == [2 * 10**15]
    assert _games_of_block(10**6, 2) == 10**6 * (10**6 - 1)


def test_games_take_turns_and_may_have_blocks_of_their_own() -> None:
    asked = parse(
        {"games": [{"id": "TicTacToe", "blocks": 1}, "KuhnPoker"], "agents": ["random", "first"], "blocks": 2}
    )
    assert [(game.entry, game.seed) for game in fixtures(asked)] == [(0, 0)] * 2 + [(1, 0)] * 2 + [(1, 1)] * 2
    assert count(asked) == [2, 4]


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 5},
        {"agents": ["first", "mcts?simulations=1"]},
        {"games": ["KuhnPoker?bet=2"]},
        {"max_turns": 5},
        {"turn_seconds": 5},
        {"referee": {"retries": 1}},
    ],
)
def test_what_changes_a_game_changes_its_id(change: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"games": ["KuhnPoker"], "agents": ["random", "first"], "blocks": 2}
    ids = {game.id for game in fixtures(parse(plain))}
    assert not ids & {game.id for game in fixtures(parse({**plain, **change}))}


@pytest.mark.parametrize("change", [{"blocks": 3}, {"concurrency": 1, "workers": 3, "deadline": 9}, {"name": "x"}])
def test_what_does_not_change_a_game_keeps_its_id(change: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"games": ["KuhnPoker"], "agents": ["random", "first"], "blocks": 2}
    ids = {game.id for game in fixtures(parse(plain))}
    assert ids <= {game.id for game in fixtures(parse({**plain, **change}))}


def test_ids_are_the_same_in_every_process() -> None:
    code = (
        "from arena.tournaments.config import parse; from arena.tournaments.schedule import fixtures\n"
        "asked = parse({'games': ['KuhnPoker', 'LiarsDice?players=3'], 'agents': ['random', 'first', 'mcts']})\n"
        "print([game.id for game in fixtures(asked)])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_the_house_keeps_its_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    from arena.games.cards.kuhn import KuhnPoker

    monkeypatch.setattr(KuhnPoker, "house", (1,))
    asked = made("KuhnPoker", 2, 2)
    assert seats_of(asked.games[0]) == (2, (0,))
    assert [game.agents for game in fixtures(asked)] == [(0,), (1,)] * 2
