"""A collection goes on after whatever has ended it: nothing is lost, nothing is played or written twice."""

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.agent import Agent, AgentError, Reply, View
from arena.episode import Episode, EpisodeError, read
from arena.rollouts.collecting import Group, collect, collect_sync
from arena.rollouts.kept import Kept
from arena.rollouts.progress import Progress
from tests.players import essence, sane
from tests.repository import ROOT
from tests.rollouts.killed import SAMPLES, SEEDS, collected
from tests.toy_games import Bazaar, Take


class Counts(Agent):
    """Random play; counts the matches it has begun, and fails where it is told to."""

    name = "counts"

    def __init__(self, broken: bool = False) -> None:
        self.begun, self.broken = 0, broken

    def act(self, view: View) -> Reply:
        self.begun += view.ply < 2
        if self.broken:
            raise AgentError("down")
        return Reply(view.sample_action())


def run(path: Path, agent: Agent, seeds: Any = range(4), samples: int = 3, **how: Any) -> list[Group]:
    return collect_sync("KuhnPoker-v0", [agent, "random"], seeds, samples, out=path, **how)


def sure(groups: list[Group]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(group.key, [essence(episode) for episode in group.episodes]) for group in groups]


def written(path: Path) -> list[tuple[str, int]]:
    return [(episode.group_id, episode.sample) for episode in read(path)]


def test_what_is_there_is_not_played_again(tmp_path: Path) -> None:
    path, seen = tmp_path / "new" / "step.jsonl", list[Progress]()
    first = run(path, Counts(), rotate=True)
    size = path.stat().st_size
    agent = Counts()
    again = run(path, agent, rotate=True, progress=seen.append)
    assert agent.begun == 0
    assert sure(again) == sure(first)
    assert [[e.id for e in group.episodes] for group in again] == [[e.id for e in group.episodes] for group in first]
    assert path.stat().st_size == size
    assert seen[-1] == Progress(episodes=24, groups=8, kept=24, total=24)


def test_more_samples_and_seeds_are_added_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    run(path, Counts(), range(2), 2)
    agent = Counts()
    groups = run(path, agent, range(3), 3)
    assert agent.begun == 9 - 4
    assert [len(group.episodes) for group in groups] == [3, 3, 3]
    assert Counter(written(path)) == Counter((group.key, n) for group in groups for n in range(3))


def test_a_line_that_was_torn_anywhere_is_played_again(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    first = run(whole, Counts(), range(2), 2)
    lines = whole.read_bytes().splitlines(keepends=True)
    start = sum(map(len, lines[:-1]))
    for cut in (start + 1, start + len(lines[-1]) // 2, start + len(lines[-1]) - 1, start):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(whole.read_bytes()[:cut])
        agent = Counts()
        assert sure(run(path, agent, range(2), 2)) == sure(first)
        assert agent.begun == 1
        assert Counter(written(path)) == Counter(written(whole))


def test_a_line_that_is_no_episode_is_told_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    run(path, Counts(), range(1), 2)
    path.write_bytes(path.read_bytes() + b"nonsense\n")
    with pytest.raises(EpisodeError, match=r"step.jsonl:3: not an episode"):
        run(path, Counts())
    assert path.read_bytes().endswith(b"nonsense\n")  # nothing of it is touched


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("turns", "x", r"not an episode: Expected `array`, got `str` - at `\$.turns`"),
        ("final", [], "what was shown at the end is kept"),
        ("returns", [1], "every seat is paid unless it is void"),
    ],
)
def test_an_episode_that_was_altered_is_told_by_its_line(name: str, value: Any, why: str, tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    groups = run(path, Counts(), range(2), 2, concurrency=1)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = msgspec.json.encode(msgspec.json.decode(lines[2]) | {name: value}) + b"\n"
    path.write_bytes(b"".join(lines))
    agent = Counts()
    with pytest.raises(EpisodeError, match=rf"step.jsonl:3: group {groups[1].key}, sample 0: .*{why}"):
        run(path, agent, range(2), 2, concurrency=1)
    assert agent.begun == 0
    assert path.read_bytes() == b"".join(lines)


def test_a_line_that_is_nested_without_end_is_told_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    path.write_bytes(b'{"x":' + b"[" * 100_000 + b"\n")
    with pytest.raises(EpisodeError, match=r"step.jsonl:1: not an episode"):
        run(path, Counts())


@pytest.mark.parametrize("game", [Bazaar, Take])
def test_games_that_are_not_registered_go_on_too(game: Any, tmp_path: Path) -> None:
    path, seats = tmp_path / "step.jsonl", ["random"] * game.players
    first = collect_sync(game, seats, range(2), out=path)
    assert [group.void for group in first] == [[], []]
    assert collect_sync(game, seats, range(2), out=path) == first


@pytest.mark.parametrize("limit", [{"max_turns": 1}, {"turn_seconds": 60}])
def test_what_was_played_under_other_limits_is_played_anew(limit: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    limited = run(path, Counts(), **limit)
    agent = Counts()
    free = run(path, agent)
    assert agent.begun == 12
    assert {episode.outcome for group in free for episode in group.episodes} == {"terminated"}
    assert {group.key for group in limited}.isdisjoint(group.key for group in free)
    for how, before in (({}, free), (limit, limited), ({name: limit[name] + 1 for name in limit}, None)):
        agent = Counts()
        again = run(path, agent, **how)
        assert agent.begun == (0 if before else 12)
        assert before is None or sure(again) == sure(before)


def test_a_deadline_changes_no_finished_match(tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    first = run(path, Counts(), deadline=600)
    agent = Counts()
    assert sure(run(path, agent)) == sure(first)
    assert agent.begun == 0


def test_void_matches_are_told_in_the_file_and_played_again_in_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    (down,) = run(path, Counts(broken=True), range(1), 3, void_retries=1)
    assert [episode.outcome for episode in read(path)] == ["void"] * 3
    assert len(down.void) == 3
    (up,) = run(path, Counts(), range(1), 3)
    assert [sane(episode).sample for episode in up.episodes] == [0, 1, 2]
    assert up.void == []
    assert up.key == down.key
    agent = Counts()
    run(path, agent, range(1), 3)
    assert agent.begun == 0


def test_a_file_may_hold_several_collections(tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    run(path, Counts(), range(2))
    collect_sync("TicTacToe-v0", ["random", "first"], range(2), out=path)
    agent = Counts()
    assert len(run(path, agent, range(2))) == 2
    assert agent.begun == 0
    assert Counter(episode.env for episode in read(path)) == {"KuhnPoker-v0": 6, "TicTacToe-v0": 2}


def test_one_run_writes_a_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    held = Kept(path)
    with pytest.raises(ValueError, match="another run is writing this file"):
        run(path, Counts())
    held.close()
    assert len(run(path, Counts())) == 4


@pytest.mark.parametrize("name", ["step.jsonl.zst", "step.parquet", "step"])
def test_other_kinds_of_file_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"allowed are files that end in \.jsonl"):
        run(tmp_path / name, Counts())
    assert not (tmp_path / name).exists()


def test_episodes_are_in_the_file_before_their_group_is_complete(tmp_path: Path) -> None:
    path, seen = tmp_path / "step.jsonl", list[int]()
    run(path, Counts(), progress=lambda now: seen.append(path.read_bytes().count(b"\n")))
    assert seen == list(range(1, 13))


def test_a_cancelled_run_goes_on(tmp_path: Path) -> None:
    path = str(tmp_path / "step.jsonl")

    async def cancelled() -> None:
        task = asyncio.create_task(collected(path))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    before = written(Path(path))
    assert 0 < len(before) < SEEDS * SAMPLES * 2
    complete(asyncio.run(collected(path)), Path(path))


def complete(groups: list[Group], path: Path) -> None:
    """Every episode is there once, in the file and in its group, and replays."""
    assert len(groups) == SEEDS * 2
    wanted = Counter((group.key, sample) for group in groups for sample in range(SAMPLES))
    assert Counter(written(path)) == wanted
    assert max(wanted.values()) == 1
    episodes: list[Episode] = [episode for group in groups for episode in group.episodes]
    assert len({sane(episode).id for episode in episodes}) == SEEDS * SAMPLES * 2
    assert {episode.id for episode in read(path)} == {episode.id for episode in episodes}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_goes_on_without_loss_or_repetition(how: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "step.jsonl"
    for least in (20, 60):
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.rollouts.killed", path], cwd=ROOT, stderr=subprocess.PIPE
        )
        while not path.exists() or path.read_bytes().count(b"\n") < least:
            assert worker.poll() is None, worker.stderr and worker.stderr.read()
            time.sleep(0.005)
        worker.send_signal(how)
        _, said = worker.communicate(timeout=60)
        assert worker.returncode == -how or b"KeyboardInterrupt" in said
        lines = path.read_bytes().split(b"\n")[:-1]
        assert least <= len(lines) < SEEDS * SAMPLES * 2
    before = {episode.id for episode in read(path)} if how == signal.SIGINT else set()
    groups = asyncio.run(collected(str(path)))
    complete(groups, path)
    assert before <= {episode.id for episode in read(path)}


def test_a_file_of_any_length_is_read_as_it_is_wanted(tmp_path: Path) -> None:
    """What is complete in the file is not all read before anybody takes it."""
    path, seen = tmp_path / "step.jsonl", list[Progress]()
    run(path, Counts(), range(300), 2)

    async def go() -> None:
        groups = collect(
            "KuhnPoker-v0", [Counts(), "random"], range(300), 2, out=path, concurrency=4, progress=seen.append
        )
        await anext(groups)
        await asyncio.sleep(0.05)
        assert seen[-1].kept <= 2 * 4 + 2 + 2
        await groups.aclose()

    asyncio.run(go())
