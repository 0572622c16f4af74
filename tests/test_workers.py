import asyncio
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import pytest

from arena.agent import Agent, Reply, View
from arena.match import play, play_sync
from arena.workers import WorkerDied, Workers, _context, _how, _Process, _serve

T = TypeVar("T")


def pid() -> int:
    time.sleep(0.05)
    return os.getpid()


def die(code: int = 1) -> NoReturn:
    os._exit(code)


def interrupted_alive() -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return os.getpid()


class Unpicklable(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def fail(kind: str) -> NoReturn:
    if kind == "exit":
        sys.exit(3)
    if kind == "odd":
        raise Unpicklable("it is ", "odd")
    if kind == "stop":
        raise StopIteration(5)
    raise LookupError(kind)


def untold() -> object:
    return lambda: None


class Heavy:
    """Takes its time to be read in a new process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (time.sleep, (0.3,))


def ignore(*_: object) -> int:
    return os.getpid()


async def call(workers: Workers, function: Any, *args: object) -> Any:
    return await (await workers.prepare(function, *args)).run()


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 60))


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_work_is_done_elsewhere_by_as_many_as_asked() -> None:
    with Workers(2) as workers:

        async def many() -> set[int]:
            return set(await asyncio.gather(*(call(workers, pid) for _ in range(20))))

        pids = asyncio.run(many())
        assert os.getpid() not in pids
        assert len(pids) == 2
        assert asyncio.run(many()) == pids, "they go on in another event loop"
    assert not any(map(alive, pids))


def test_as_many_as_cores_by_default() -> None:
    with Workers() as workers:
        assert workers.count == os.cpu_count()
    with pytest.raises(ValueError, match="count=-1: allowed are 0"):
        Workers(-1)


def test_ctrl_c_is_the_parents_business() -> None:
    with Workers(1) as workers:
        first = asyncio.run(call(workers, interrupted_alive))
        assert asyncio.run(call(workers, interrupted_alive)) == first


@pytest.mark.parametrize(("code", "said"), [(1, "exit code 1"), (0, "exit code 0")])
def test_a_worker_that_dies_is_replaced(code: int, said: str) -> None:
    with Workers(1) as workers:
        for _ in range(2):
            with pytest.raises(WorkerDied, match=rf"ended before it answered \({said}\)"):
                asyncio.run(call(workers, die, code))
            assert asyncio.run(call(workers, pid)) != os.getpid()


def test_a_killed_worker_ends_its_own_call_only() -> None:
    async def work(workers: Workers) -> list[Any]:
        victim: int = await call(workers, pid)
        calls = [asyncio.create_task(call(workers, time.sleep, 0.5)) for _ in range(6)]
        await asyncio.sleep(0.2)
        os.kill(victim, signal.SIGKILL)
        ended: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
        return ended

    with Workers(3) as workers:
        results = asyncio.run(work(workers))
    died = [result for result in results if result is not None]
    assert [str(error) for error in died] == ["a worker process ended before it answered (SIGKILL, out of memory?)"]


def test_a_worker_that_dies_idle_is_missed_by_nobody() -> None:
    with Workers(1) as workers:
        os.kill(first := asyncio.run(call(workers, pid)), signal.SIGKILL)
        time.sleep(0.2)
        assert asyncio.run(call(workers, pid)) not in (first, os.getpid())


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("plain", LookupError, "plain"),
        ("exit", RuntimeError, "SystemExit: 3"),
        ("odd", RuntimeError, "Unpicklable: it is odd"),
        ("stop", RuntimeError, "StopIteration: 5"),
    ],
)
def test_what_a_call_raises_is_raised_here_and_the_worker_lives(kind: str, error: type[Exception], said: str) -> None:
    with Workers(1) as workers:
        first = asyncio.run(call(workers, pid))
        with pytest.raises(error, match=said):
            asyncio.run(call(workers, fail, kind))
        assert asyncio.run(call(workers, pid)) == first


def test_errors_say_where_they_come_from() -> None:
    with Workers(1) as workers, pytest.raises(LookupError) as caught:
        asyncio.run(call(workers, fail, "plain"))
    assert "in fail\n    raise LookupError(kind)" in caught.value.__notes__[0]


def test_what_cannot_travel_is_an_error_and_no_more() -> None:
    with Workers(1) as workers:
        with pytest.raises(Exception, match=r"pickle|local object"):
            asyncio.run(call(workers, lambda: None))
        with pytest.raises(Exception, match=r"pickle|local object"):
            asyncio.run(call(workers, untold))
        assert asyncio.run(call(workers, pid)) != os.getpid()


def test_a_cancelled_call_ends_its_process() -> None:
    async def work(workers: Workers) -> tuple[int, int]:
        first = await call(workers, pid)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await call(workers, time.sleep, 3600)
        return first, await call(workers, pid)

    with Workers(1) as workers:
        started = time.monotonic()
        first, second = asyncio.run(work(workers))
        assert first != second
        assert not alive(first)
    assert time.monotonic() - started < 20


def test_the_wait_for_a_worker_is_not_the_calls_own() -> None:
    async def work(workers: Workers) -> list[float]:
        async def timed() -> float:
            ready = await workers.prepare(time.sleep, 0.1)
            started = time.monotonic()
            await ready.run()
            return time.monotonic() - started

        return await asyncio.gather(*(timed() for _ in range(6)))

    with Workers(1) as workers:
        assert max(asyncio.run(work(workers))) < 0.4


def test_a_new_process_imports_before_the_call() -> None:
    async def work(workers: Workers) -> float:
        ready = await workers.prepare(ignore, Heavy())
        started = time.monotonic()
        await ready.run()
        return time.monotonic() - started

    with Workers(1) as workers:
        begun = time.monotonic()
        asyncio.run(work(workers))
        assert time.monotonic() - begun > 0.6, "read once when the process starts, once for the call"


class Unreadable:
    """Can be sent, and not be read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (fail, ("unreadable",))


def test_a_call_that_cannot_be_read_is_an_error_and_no_more() -> None:
    with Workers(1) as workers:
        for _ in range(2):  # in a new process, which is given up, and in one that runs
            with pytest.raises(LookupError, match="unreadable"):
                asyncio.run(call(workers, ignore, Unreadable()))
            assert asyncio.run(call(workers, pid)) != os.getpid()


def test_who_gives_up_while_a_process_starts_leaves_none_behind() -> None:
    async def work(workers: Workers) -> int:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.005):
                    await workers.prepare(ignore, Heavy())
        return int(await call(workers, pid))

    with Workers(1) as workers:
        last = run(work(workers))
        time.sleep(0.5)
        assert [child.pid for child in multiprocessing.active_children() if child.name == "arena-worker"] == [last]


def test_who_is_handed_a_worker_and_cancelled_hands_it_on() -> None:
    async def work(workers: Workers) -> int:
        held = await workers.prepare(pid)
        waiting = asyncio.create_task(workers.prepare(pid))
        await asyncio.sleep(0.05)
        await held.run()  # it ends by handing the worker over, and `waiting` has not run since
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return int(await call(workers, pid))

    with Workers(1) as workers:
        assert run(work(workers)) != os.getpid()


def served(*calls: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """What a process answers, played here in a thread."""
    near, far = multiprocessing.Pipe()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("signal.signal", ignore)  # a thread may not
        thread = threading.Thread(target=_serve, args=(far,))
        thread.start()
        answers = []
        for function, *args in calls:
            near.send_bytes(pickle.dumps((function, tuple(args))))
            answers.append(pickle.loads(near.recv_bytes()))
        near.close()
        thread.join(10)
    assert not thread.is_alive(), "it ends with its parent's pipe"
    return answers


def test_what_a_process_answers() -> None:
    answers = served((pid,), (pid,), (fail, "plain"), (fail, "exit"), (fail, "odd"), (untold,))
    assert answers[:2] == [(True, None), (True, os.getpid())], "the first is read only"
    told = [(fine, type(error), str(error)) for fine, error in answers[2:5]]
    assert told == [
        (False, LookupError, "plain"),
        (False, RuntimeError, "SystemExit: 3"),
        (False, RuntimeError, "Unpicklable: it is odd"),
    ]
    assert not answers[5][0]
    assert "local object" in str(answers[5][1])


def test_how_a_process_ended() -> None:
    assert _how(-signal.SIGKILL) == "SIGKILL, out of memory?"
    assert _how(-signal.SIGSEGV) == "SIGSEGV"
    assert (_how(3), _how(None)) == ("exit code 3", "exit code None")


def test_what_was_never_started_cannot_be_asked() -> None:
    with pytest.raises(WorkerDied, match="never started"):
        _Process(_context()).ask(b"")


def test_without_a_fork_server_processes_are_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with Workers(1) as workers:
        assert workers._context.get_start_method() == "spawn"
        assert asyncio.run(call(workers, pid)) != os.getpid()


def test_who_gives_up_waiting_takes_no_worker_along() -> None:
    async def work(workers: Workers) -> int:
        busy = asyncio.create_task(call(workers, time.sleep, 0.3))
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(call(workers, pid)) for _ in range(5)]
        await asyncio.sleep(0.05)
        for task in waiting[:4]:
            task.cancel()
        await busy
        waiting[4].cancel()  # a worker has been handed to it, and it has not run yet
        await asyncio.gather(*waiting, return_exceptions=True)
        return int(await call(workers, pid))

    with Workers(1) as workers:
        assert run(work(workers)) != os.getpid()


def test_close_ends_what_runs_and_what_waits() -> None:
    async def work(workers: Workers) -> list[Any]:
        calls = [asyncio.create_task(call(workers, time.sleep, 3600)) for _ in range(3)]
        await asyncio.sleep(0.5)
        workers.close()
        ended: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
        return ended

    workers = Workers(1)
    results = run(work(workers))
    assert [type(result) for result in results] == [WorkerDied] * 3
    with pytest.raises(WorkerDied, match="the pool of workers is closed"):
        asyncio.run(call(workers, pid))


def test_a_search_plays_the_same_in_a_worker() -> None:
    agents = ["mcts?simulations=15", "random"]
    here = play_sync("KuhnPoker-v0", agents, seed=3)
    with Workers(2) as workers:
        there = asyncio.run(play("KuhnPoker-v0", agents, seed=3, pool=workers))
    assert [turn.hash for turn in there.turns] == [turn.hash for turn in here.turns]
    assert there.returns == here.returns


class Thinks(Agent):
    """A search of a fixed length."""

    blocking = True

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def act(self, view: View) -> Reply:
        time.sleep(self.seconds)
        return Reply((view.legal_actions or ("",))[0])


def test_only_the_search_that_overruns_forfeits() -> None:
    async def work(workers: Workers) -> list[tuple[int, ...]]:
        quick, slow = Thinks(0.01), Thinks(30)
        seated = [[quick, slow], [slow, quick], [quick, quick], [quick, quick], [quick, slow], [quick, quick]]
        games = [play("TicTacToe-v0", agents, pool=workers, turn_seconds=0.8) for agents in seated]
        return [episode.forfeits for episode in await asyncio.gather(*games)]

    with Workers(1) as workers:
        assert run(work(workers)) == [(1,), (0,), (), (), (1,), ()]


def test_what_is_recorded_as_thought_is_not_the_queue() -> None:
    async def work(workers: Workers) -> list[float]:
        games = [play("TicTacToe-v0", [Thinks(0.05)] * 2, pool=workers, max_turns=2) for _ in range(8)]
        episodes = await asyncio.gather(*games)
        return [attempt.latency for episode in episodes for turn in episode.turns for attempt in turn.attempts]

    with Workers(1) as workers:
        assert max(run(work(workers))) < 0.4
