"""The spool: what goes in comes out, unit by unit."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.adapters.datasets.credit import Credit
from arena.adapters.datasets.exporting import export
from arena.adapters.datasets.spool import Spool
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from tests.adapters.datasets.toys import Groups, games

EPISODES = [episode for sample in range(3) for episode in games(4, sample=sample)]
CHOICES = st.lists(
    st.tuples(st.sampled_from(EPISODES), st.lists(st.sampled_from([None, True, False]), min_size=2, max_size=2)),
    max_size=12,
)


def filled(chosen: list[tuple[Episode, list[bool | None]]]) -> Spool:
    """Episodes with, of each seat, None: it does not belong, or whether it is chosen."""
    spool = Spool(Path(":memory:"))
    for number, (episode, seats) in enumerate(chosen):
        belonging = [(Trajectory(episode, seat), passed) for seat, passed in enumerate(seats) if passed is not None]
        spool.add(number, episode, belonging)
    return spool


@given(CHOICES)
def test_units_hold_the_chosen_in_the_order_of_the_source(chosen: list[tuple[Episode, list[bool | None]]]) -> None:
    with filled(chosen) as spool:
        expected = [(episode, seat) for episode, seats in chosen for seat, passed in enumerate(seats) if passed]
        assert len(spool) == len(expected)
        single = list(spool.units("seat"))
        assert [(one.episode, one.player) for (one,) in single] == expected
        tables = [[one.player for one in unit] for unit in spool.units("episode")]
        assert tables == [own for _, seats in chosen if (own := [at for at, passed in enumerate(seats) if passed])]
        groups = list(spool.units("group"))
        assert sorted(one.id for unit in groups for one in unit) == sorted(one.id for (one,) in single)
        assert all(len({one.group_id for one in unit}) == 1 for unit in groups)
        assert len({unit[0].group_id for unit in groups}) == len(groups)
        firsts = [[one.group_id for (one,) in single].index(unit[0].group_id) for unit in groups]
        numbers = [at for at, (_, seats) in enumerate(chosen) for passed in seats if passed]
        assert [numbers[first] for first in firsts] == sorted(numbers[first] for first in firsts)


@given(CHOICES)
def test_advantages_belong_to_their_seats(chosen: list[tuple[Episode, list[bool | None]]]) -> None:
    with filled(chosen) as spool:
        spool.credit(Credit("group"))
        belonging = [
            Trajectory(episode, seat)
            for episode, seats in chosen
            for seat, passed in enumerate(seats)
            if passed is not None
        ]
        for (one,) in spool.units("seat"):
            rewards = [other.reward for other in belonging if other.group_id == one.group_id]
            assert one.advantage is not None
            assert abs(one.advantage - (one.reward - sum(rewards) / len(rewards))) < 1e-9
        groups = {one.group_id for one in belonging}
        assert spool.single()[0] == len(groups)


def test_none_is_asked_for() -> None:
    with filled([(EPISODES[0], [True, True])]) as spool:
        spool.credit(Credit())
        assert [one.advantage for unit in spool.units("episode") for one in unit] == [None, None]


def test_digests_are_told_apart_by_kind() -> None:
    with Spool(Path(":memory:")) as spool:
        low, high = -(1 << 63), (1 << 63) - 1
        assert [spool.fresh("row", digest) for digest in (low, high, low, 0)] == [True, True, False, True]
        assert spool.fresh("train", low)
        assert (spool.count("row"), spool.count("train"), spool.count("other")) == (3, 1, 0)


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """As on a disk that has room for so many bytes."""
    resource: Any = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_without_room_is_an_error_of_the_system(tmp_path: Path) -> None:
    long = (msgspec.structs.replace(EPISODES[0], id=Random(seed).randbytes(1 << 18).hex()) for seed in range(60))
    with files_of_at_most(1 << 20), pytest.raises(OSError, match="the export keeps episodes") as failed:
        export(long, Groups(), tmp_path / "out", kind="jsonl")
    assert Path(str(failed.value.filename)).name == "spool.db"
    assert not list(tmp_path.iterdir())


def filled_up(path: Path) -> None:
    with Spool(path) as spool:
        spool._db.execute("PRAGMA max_page_count = 16")
        for digest in range(100_000):
            spool.fresh("row", digest)


def test_a_full_disk_is_told_as_one(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk is full") as failed:
        filled_up(tmp_path / "spool.db")
    assert failed.value.errno == errno.ENOSPC


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="unable to open"):
        Spool(tmp_path / "none" / "spool.db")
