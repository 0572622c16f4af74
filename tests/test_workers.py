import asyncio
import os
import signal
import time
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from arena.match import play, play_sync
from arena.workers import Workers


def pid() -> int:
    time.sleep(0.05)
    return os.getpid()


def die() -> None:
    os._exit(1)


def interrupted_alive() -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return os.getpid()


def test_work_is_done_elsewhere() -> None:
    with Workers(2) as workers:
        pids = {future.result() for future in [workers.submit(pid) for _ in range(20)]}
        assert os.getpid() not in pids
        assert 1 <= len(pids) <= 2


def test_as_many_as_cores_by_default() -> None:
    with Workers() as workers:
        assert workers.count == os.cpu_count()


def test_ctrl_c_is_the_parents_business() -> None:
    with Workers(1) as workers:
        first = workers.submit(interrupted_alive).result()
        assert workers.submit(interrupted_alive).result() == first


def test_a_dead_worker_is_replaced() -> None:
    with Workers(1) as workers:
        for _ in range(2):
            with pytest.raises(BrokenProcessPool):
                workers.submit(die).result()
            assert workers.submit(pid).result() != os.getpid()


def test_shutdown_without_waiting_ends_what_runs() -> None:
    workers = Workers(1)
    workers.submit(pid).result()
    futures: list[Future[Any]] = [workers.submit(time.sleep, 3600) for _ in range(3)]
    started = time.monotonic()
    workers.shutdown(wait=False)
    for future in futures:
        with pytest.raises((BrokenProcessPool, CancelledError)):
            future.result(timeout=30)
    assert time.monotonic() - started < 30


def test_a_search_plays_the_same_in_a_worker() -> None:
    agents = ["mcts?simulations=15", "random"]
    here = play_sync("KuhnPoker-v0", agents, seed=3)
    with Workers(2) as workers:
        there = asyncio.run(play("KuhnPoker-v0", agents, seed=3, pool=workers))
    assert [turn.hash for turn in there.turns] == [turn.hash for turn in here.turns]
    assert there.returns == here.returns
