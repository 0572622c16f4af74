"""What is counted while games are stored is what a look at all of them finds."""

import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from arena.episode import Episode
from arena.match import play_sync
from arena.tournaments.conduct import Conduct
from arena.tournaments.config import Tournament, parse
from arena.tournaments.readings import PairCounts, Timeline
from arena.tournaments.scanning import counting
from arena.tournaments.schedule import Fixture, fixtures
from arena.tournaments.store import Store
from tests.tournaments import scanning

AGENTS = ["random", "first", "mcts?simulations=1"]
VALUES = [(1.0, -1.0), (-1.0, 1.0), (0.0, 0.0), (0.5, 0.5), (0.25, 0.5)]


@cache
def base(game: str) -> Episode:
    seats = {"TicTacToe-v0": 2, "KuhnPoker-v0": 2, "Arithmetic-v0": 1}[game]
    return play_sync(game, ["random"] * seats)


def drawn(rng: random.Random, fixture: Fixture, game: str) -> Episode:
    """An episode that might have been, with few ways to go, so that some are alike."""
    episode = base(game)
    last = msgspec.structs.replace(episode.turns[-1], hash=f"{rng.randrange(3):032x}")
    cut, seats = rng.random() < 0.2, len(episode.seats)
    return msgspec.structs.replace(
        episode,
        seed=fixture.seed,
        turns=[*episode.turns[:-1], last],
        returns=rng.choice(VALUES)[:seats],
        forfeits=tuple([seat for seat in range(seats) if rng.random() < 0.15]),
        outcome="truncated" if cut else "terminated",
        reason="long" if cut else "",
        ended=float(rng.randrange(1000)),
    )


def asked(rng: random.Random, repetitions: int, truncated: str, blocks: int = 4) -> Tournament:
    games = ["TicTacToe", "KuhnPoker", "Arithmetic"]
    return parse(
        {"games": games, "agents": AGENTS, "blocks": blocks, "repetitions": repetitions, "truncated": truncated}
    )


def fill(place: Any, tournament: Tournament, rng: random.Random, share: float) -> None:
    """A random part of the games, in any order, by two writers and in batches of any size."""
    games = [fixture for fixture in fixtures(tournament) if rng.random() < share]
    rng.shuffle(games)
    with Store.resume(place, tournament) as one, Store.resume(place, tournament) as other:
        while games:
            some = [games.pop() for _ in range(min(len(games), rng.choice([1, 1, 2, 7])))]
            batch = [(fixture, drawn(rng, fixture, tournament.games[fixture.entry].id)) for fixture in some]
            rng.choice([one, other]).add_all(batch)
            if rng.random() < 0.1:
                void = msgspec.structs.replace(batch[0][1], outcome="void", returns=None, reason="lost")
                other.add_void(batch[0][0], void)


def clusters(counts: PairCounts) -> Counter[Any]:
    """How often there is a block with these games, each (first, second, outcome, weight)."""
    rows: dict[int, list[Any]] = {}
    for row in zip(*[column.tolist() for column in counts[:6]], strict=True):
        first, second, outcome, cluster, times, weight = row
        rows.setdefault(cluster, []).append((first, second, outcome, round(weight, 12), times))
    found: Counter[Any] = Counter()
    for games in rows.values():
        (times,) = {game[-1] for game in games}
        found[tuple(sorted(game[:-1] for game in games))] += round(times)
    return found


def in_order(timeline: Timeline) -> list[Any]:
    """The blocks by their end, those that ended together in any order, their games too."""
    blocks: dict[int, list[Any]] = {}
    for ended, *game, block in zip(*[column.tolist() for column in timeline], strict=True):
        blocks.setdefault(block, [ended]).append(tuple(game))
    return sorted([games[0], sorted(games[1:])] for games in blocks.values())


def compare(place: Any) -> int:
    """Both ways equal; how many games count."""
    with Store.open(place) as store:
        counted, scanned = store.totals(), scanning.totals(store)
        assert counted.entries == scanned.entries
        assert counted.agents.keys() == scanned.agents.keys()
        for key, count in counted.agents.items():
            other = scanned.agents[key]
            assert count._replace(latency=other.latency, wasted=other.wasted) == other
        for entry, seats in store.seats().items():
            if seats == 2:
                one, whole = store.pairs(entry), scanning.pairs(counting(store, entry))
                assert clusters(one) == clusters(whole)
                assert (one.games, one.again, one.alike) == (whole.games, whole.again, whole.alike)
                assert in_order(store.timeline(entry)) == in_order(scanning.timeline(store, entry))
        assert store.spent().games == len(store.finished())
        return sum(entry.games for entry in counted.entries.values())


@pytest.mark.parametrize("seed", range(12))
def test_counted_is_scanned(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    repetitions, truncated = rng.choice([1, 2, 4]), rng.choice(["score", "drop"])
    fill(tmp_path, asked(rng, repetitions, truncated), rng, rng.choice([0.3, 0.8, 1.0]))
    before = compare(tmp_path)
    more = asked(rng, repetitions + rng.randrange(3), truncated, blocks=5)
    with Store.resume(tmp_path, more) as store:
        there = store.finished()
    fill(tmp_path, more, rng, 1.0)
    assert compare(tmp_path) > before
    with Store.open(tmp_path) as store:
        assert store.finished() > there


def test_finished_blocks_are_one_row_for_all_that_came_out_so(tmp_path: Path) -> None:
    tournament = parse({"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 300})
    with Store.resume(tmp_path, tournament) as store:
        rng = random.Random(5)
        store.add_all([(fixture, drawn(rng, fixture, "TicTacToe-v0")) for fixture in fixtures(tournament)])
        counts = store.pairs(1)
        assert counts.games == 600
        assert len(counts.first) <= 2 * 9, "nine ways for two games to end"
        assert counts.times[np.unique(counts.cluster, return_index=True)[1]].sum() == 300


def test_an_unfinished_block_is_kept_singly_until_it_is_whole(tmp_path: Path) -> None:
    tournament = parse({"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 1})
    one, other = fixtures(tournament)
    with Store.resume(tmp_path, tournament) as store:
        win = msgspec.structs.replace(base("TicTacToe-v0"), returns=(1.0, -1.0), forfeits=(), outcome="terminated")
        store.add(one, win)
        assert patterns(store) == ([], [("[[1,2,0,1]]", False)])
        assert [column.tolist() for column in store.pairs(1)[:5]] == [[0], [1], [0], [0], [1.0]]
        store.add(other, win)
        whole = "[[1,2,0,1],[2,1,0,1]]"
        assert patterns(store) == ([(whole, 1)], [(whole, True)])
        assert not store.add(other, win)
        assert patterns(store) == ([(whole, 1)], [(whole, True)]), "a game is counted once"
    grown = msgspec.structs.replace(tournament, repetitions=2)
    with Store.resume(tmp_path, grown) as store:
        store.add(list(fixtures(grown))[2], win)
        assert patterns(store) == ([(whole, 0)], [("[[1,2,0,2],[2,1,0,1]]", False)])
        counts = store.pairs(1)
        assert (counts.games, counts.again, counts.cluster.tolist()) == (3, 1, [0, 0, 0])
        assert counts.weight.tolist() == [0.5, 0.5, 1.0]


def patterns(store: Store) -> tuple[list[Any], list[Any]]:
    with store.engine.connect() as connection:
        counted = connection.exec_driver_sql("SELECT pattern, sum(blocks) FROM patterns GROUP BY pattern").all()
        blocks = connection.exec_driver_sql("SELECT pattern, counted FROM blocks").all()
    return [tuple(row) for row in counted], [(row[0], bool(row[1])) for row in blocks]


def test_seatings_that_are_all_alike(tmp_path: Path) -> None:
    tournament = parse({"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 4})
    same = msgspec.structs.replace(base("TicTacToe-v0"), forfeits=())
    with Store.resume(tmp_path, tournament) as store:
        for fixture in fixtures(tournament):
            forfeits = (0,) if (fixture.rotation, fixture.seed) == (1, 2) else ()
            store.add(fixture, msgspec.structs.replace(same, forfeits=forfeits))
        assert store.pairs(1).alike == [(0, 1)]
    compare(tmp_path)


def test_nothing_played(tmp_path: Path) -> None:
    tournament = parse({"games": ["TicTacToe", "Arithmetic"], "agents": ["random", "first"], "blocks": 4})
    with Store.resume(tmp_path, tournament) as store:
        counts = store.pairs(1)
        assert [len(column) for column in counts[:6]] == [0] * 6
        assert counts[6:] == (0, 0, [])
        assert [len(column) for column in store.timeline(1)] == [0] * 5
        assert store.totals().agents == {}
        assert store.spent() == (0, 0, 0.0)
        assert store.results() == ([], 1)
        assert len(store.answers(2).agent) == 0
        with pytest.raises(ValueError, match="entry 1 has 2 seats, answers come from one"):
            store.answers(1)


def test_games_of_many_seats_are_read_singly(tmp_path: Path) -> None:
    tournament = parse({"games": ["KuhnPoker?players=3", "SecretMafia?players=6&rounds=0"], "agents": AGENTS})
    *_, mafia = fixtures(tournament)
    kuhn = next(fixtures(tournament))
    with Store.resume(tmp_path, tournament) as store:
        episode = play_sync("SecretMafia-v0", ["random"] * 6, mafia.seed, {"players": 6, "rounds": 0})
        store.add(mafia, episode)
        store.add(kuhn, play_sync("KuhnPoker-v0", ["random"] * 3, kuhn.seed, {"players": 3}))
        games = store.ranked(2)
        assert games.teams is not None
        roles = [seat.role for seat in episode.seats]
        assert games.roles == [tuple(roles)]
        assert games.teams.tolist() == [[int(role == "Mafia") for role in roles]]
        assert games.returns.tolist() == [list(episode.returns or ())]
        assert games.seed.tolist() == [mafia.seed]
        assert (store.ranked(1).teams, store.ranked(1).roles) == (None, [()])
        assert store.totals().agents[2, 0].games == 2, "a seat each"
        assert store.totals().entries[2].games == 1


def test_answers(tmp_path: Path) -> None:
    tournament = parse({"games": ["Arithmetic"], "agents": AGENTS[:2], "blocks": 3})
    with Store.resume(tmp_path, tournament) as store:
        for fixture in fixtures(tournament):
            episode = play_sync("Arithmetic-v0", ["random"], fixture.seed)
            store.add(fixture, msgspec.structs.replace(episode, returns=(float(fixture.agents[0]),)))
        answers = store.answers(1)
        assert sorted(zip(answers.agent.tolist(), answers.seed.tolist(), answers.value.tolist(), strict=True)) == [
            (agent, seed, float(agent)) for agent in (0, 1) for seed in range(3)
        ]
        assert store.totals().agents[1, 1].conduct == Conduct(turns=3, replies=3) or answers.forfeit.any()
