"""Totals of conduct, void attempts and latencies, and what was spent."""

import random
from pathlib import Path

import msgspec
import pytest

from arena.episode import Episode
from arena.match import play_sync
from arena.tournaments.conduct import Conduct, conduct_of
from arena.tournaments.config import parse
from arena.tournaments.readings import AgentCount, EntryCount, Latency
from arena.tournaments.schedule import fixtures
from arena.tournaments.store import Store


def test_totals_are_what_the_episodes_hold(tmp_path: Path) -> None:
    asked = {"games": ["TicTacToe", "KuhnPoker"], "agents": ["modelled", "first"], "referee": {"retries": 1}}
    tournament = parse({**asked, "blocks": 2})
    with Store.resume(tmp_path, tournament) as store:
        for fixture in fixtures(tournament):
            env = tournament.games[fixture.entry].id
            seated = [tournament.agents[agent].make() for agent in fixture.agents]
            store.add(fixture, play_sync(env, seated, fixture.seed, None, tournament.referee))
        episodes, counted = list(store.episodes()), store.totals()
        for entry, game in store.entries().items():
            for agent, name in enumerate(["modelled", "first"]):
                mine = [episode for episode in episodes if episode.env == game.id]
                seats = [[seat.agent for seat in episode.seats].index(name) for episode in mine]
                conducts = [conduct_of(episode, seat) for episode, seat in zip(mine, seats, strict=True)]
                found = counted.agents[entry, agent]
                assert found.conduct == sum(conducts, Conduct())
                assert (found.games, found.voids, found.wasted) == (len(mine), 0, Conduct())
                times = [time for episode, seat in zip(mine, seats, strict=True) for time in latencies(episode, seat)]
                assert sum(found.latency.counts.values()) == len(times)
                times.sort()
                for share, quantile in ((0.5, found.latency.p50), (0.95, found.latency.p95)):
                    exact = times[max(int(-(-share * len(times) // 1)) - 1, 0)]
                    assert quantile == pytest.approx(exact, rel=0.03)
        spent = sum([conduct_of(e, seat) for e in episodes for seat in range(2)], Conduct())
        assert store.spent() == (8, spent.prompt_tokens + spent.completion_tokens, spent.cost)
        assert store.spent().dollars > 0


def latencies(episode: Episode, seat: int) -> list[float]:
    return [attempt.latency for turn in episode.turns if turn.seat == seat for attempt in turn.attempts]


def test_void_attempts_are_counted_apart_and_spent(tmp_path: Path) -> None:
    tournament = parse({"games": ["TicTacToe"], "agents": ["modelled", "first"], "blocks": 1})
    one, other = fixtures(tournament)
    seated = [tournament.agents[agent].make() for agent in one.agents]
    episode = play_sync("TicTacToe-v0", seated, 0, None, msgspec.structs.replace(tournament.referee, retries=1))
    void = msgspec.structs.replace(episode, outcome="void", returns=None, reason="lost")
    with Store.resume(tmp_path, tournament) as store:
        store.add_void(one, void)
        store.add_void(one, void)
        counted = store.totals()
        twice = conduct_of(void, 0) + conduct_of(void, 0)
        assert counted.entries == {1: EntryCount(voids=2)}
        assert counted.agents[1, 0] == AgentCount(voids=2, wasted=twice)
        assert store.spent() == (0, twice.prompt_tokens + twice.completion_tokens, twice.cost)
        assert twice.cost > 0
        store.add(one, episode)
        store.add(other, msgspec.structs.replace(episode, outcome="truncated", reason="long"))
        assert store.totals().entries == {1: EntryCount(games=2, truncated=1, voids=2)}
        assert store.spent().games == 2


def test_truncated_games_that_are_dropped_are_spent_all_the_same(tmp_path: Path) -> None:
    tournament = parse({"games": ["TicTacToe"], "agents": ["modelled", "first"], "blocks": 1, "truncated": "drop"})
    one, _ = fixtures(tournament)
    seated = [tournament.agents[agent].make() for agent in one.agents]
    episode = play_sync("TicTacToe-v0", seated, 0, None, tournament.referee)
    with Store.resume(tmp_path, tournament) as store:
        store.add(one, msgspec.structs.replace(episode, outcome="truncated", reason="long"))
        assert store.totals().entries == {1: EntryCount(dropped=1)}
        assert {count.games for count in store.totals().agents.values()} <= {0}
        assert store.spent().tokens == conduct_of(episode, 0).prompt_tokens + conduct_of(episode, 0).completion_tokens


def test_an_agent_in_two_seats_has_two_seats_of_one_game(tmp_path: Path) -> None:
    tournament = parse({"games": ["KuhnPoker?players=3"], "agents": ["random", "first"], "blocks": 1})
    fixture = next(fixtures(tournament))
    episode = play_sync("KuhnPoker-v0", ["random"] * 3, 0, {"players": 3})
    with Store.resume(tmp_path, tournament) as store:
        store.add_void(fixture, msgspec.structs.replace(episode, outcome="void", returns=None, reason="lost"))
        store.add(fixture, episode)
        counted = store.totals()
        twice = max(set(fixture.agents), key=fixture.agents.count)
        assert (counted.agents[1, twice].games, counted.agents[1, twice].voids) == (2, 1)
        assert counted.entries[1] == EntryCount(games=1, voids=1)


@pytest.mark.parametrize("scale", [1e-6, 0.01, 3.0, 1e4])
def test_quantiles_are_right_to_a_bin(scale: float) -> None:
    rng = random.Random(5)
    times = sorted(scale * rng.lognormvariate(0, 1) for _ in range(1000))
    counts: dict[int, int] = {}
    for seconds in times:
        counts[Latency.bin(seconds)] = counts.get(Latency.bin(seconds), 0) + 1
    both = Latency(counts)
    assert both.p50 == pytest.approx(times[499], rel=0.025)
    assert both.p95 == pytest.approx(times[949], rel=0.025)
    assert both.plus(both).p50 == both.p50
    assert both.plus(Latency({})).counts == both.counts


def test_latencies_at_the_edges() -> None:
    assert Latency({}).p50 is None
    assert Latency.bin(0.0) == Latency.bin(1e-30)
    assert Latency.bin(float("inf")) == Latency.bin(1e12)
    assert Latency({3: 1}).quantile(0.0) == Latency({3: 1}).quantile(1.0)
