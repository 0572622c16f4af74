"""Slots, pace and time limits, with a clock of their own where time matters."""

import asyncio
from random import Random

import pytest

from arena.adapters.models.limits import Deadlines, Pace, Slots


def test_slots_go_round_in_the_order_of_asking() -> None:
    async def main() -> list[int]:
        slots, order = Slots(2), list[int]()

        async def one(number: int) -> None:
            await slots.enter()
            order.append(number)
            await asyncio.sleep(0)
            slots.leave()

        await asyncio.gather(*map(one, range(20)))
        assert slots.busy == 0
        return order

    assert asyncio.run(main()) == list(range(20))


def test_nobody_overtakes_those_who_wait() -> None:
    async def main() -> None:
        slots = Slots(1)
        assert slots.enter_now()
        waiting = asyncio.create_task(slots.enter())
        await asyncio.sleep(0)
        slots.leave()
        assert not slots.enter_now()
        await waiting
        slots.leave()
        assert slots.busy == 0

    asyncio.run(main())


def test_no_slot_is_lost_when_waiters_are_cancelled_at_any_moment() -> None:
    async def main(seed: int) -> None:
        chance, slots, most = Random(seed), Slots(3), 0

        async def one() -> None:
            nonlocal most
            await slots.enter()
            most = max(most, slots.busy)
            try:
                await asyncio.sleep(chance.random() / 1000)
            finally:
                slots.leave()

        tasks = [asyncio.create_task(one()) for _ in range(100)]
        for _ in range(300):
            chance.choice(tasks).cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (slots.busy, len(slots.waiting), most) == (0, 0, 3)

    for seed in range(5):
        asyncio.run(main(seed))


def test_a_slot_handed_to_a_waiter_that_is_cancelled_at_once_goes_to_the_next() -> None:
    async def main() -> None:
        slots = Slots(1)
        await slots.enter()
        first, second = asyncio.create_task(slots.enter()), asyncio.create_task(slots.enter())
        await asyncio.sleep(0)
        slots.leave()
        first.cancel()
        await asyncio.wait_for(second, 1)
        assert slots.busy == 1

    asyncio.run(main())


def test_an_adaptive_limit_halves_once_per_round_and_grows_back() -> None:
    slots = Slots(16, adaptive=True)
    slots.overloaded(sent=1.0, now=2.0)
    slots.overloaded(sent=1.5, now=2.1)  # was under way when the limit was cut
    assert slots.limit == 8
    slots.overloaded(sent=2.2, now=3.0)
    assert slots.limit == 4
    for _ in range(4):
        slots.answered()
    assert 4.8 < slots.limit <= 5
    for _ in range(1000):
        slots.answered()
    assert slots.limit == 16


def test_an_adaptive_limit_never_falls_below_one_and_a_fixed_one_does_not_move() -> None:
    adaptive, fixed = Slots(4, adaptive=True), Slots(4)
    for second in range(10):
        adaptive.overloaded(second, second)
        fixed.overloaded(second, second)
    assert (adaptive.limit, fixed.limit) == (1, 4)
    assert adaptive.enter_now()
    assert not adaptive.enter_now()


def test_growing_lets_waiters_in() -> None:
    async def main() -> None:
        slots = Slots(4, adaptive=True)
        slots.overloaded(1, 1)
        slots.overloaded(2, 2)
        await slots.enter()
        waiting = asyncio.create_task(slots.enter())
        await asyncio.sleep(0)
        slots.answered()  # 1 -> 2
        await asyncio.wait_for(waiting, 1)
        assert slots.busy == 2

    asyncio.run(main())


class Clock:
    """A time that only passes in sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.wake = 0.0, asyncio.sleep
        monkeypatch.setattr("arena.adapters.models.limits.asyncio.sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        await self.wake(0)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def test_in_any_minute_there_are_no_more_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[float]:
        clock = Clock(monkeypatch)
        pace, times = Pace(30, clock), list[float]()

        async def one() -> None:
            await pace.take(1)
            times.append(clock())

        await asyncio.gather(*(one() for _ in range(100)))
        return times

    times = asyncio.run(main())
    assert times[:3] == [0, 2, 4]
    assert max(sum(start <= t < start + 60 for t in times) for start in times) == 30


def test_a_large_amount_delays_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> tuple[float, float]:
        clock = Clock(monkeypatch)
        pace = Pace(6000, clock)
        await pace.take(3000)
        first = clock()
        await pace.take(1)
        return first, clock()

    assert asyncio.run(main()) == (0, 30)


def test_who_is_cancelled_while_waiting_uses_nothing_up() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        pace, began = Pace(600, loop.time), loop.time()
        await pace.take(1)
        tasks = [asyncio.create_task(pace.take(1)) for _ in range(50)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await pace.take(1)
        return loop.time() - began

    assert 0.09 < asyncio.run(main()) < 1


def test_a_call_ends_when_its_time_is_over_and_others_do_not() -> None:
    async def main() -> list[str]:
        deadlines = Deadlines(0.05)

        async def one(seconds: float) -> str:
            call = deadlines.watch()
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                return "late" if call.timed_out() else "cancelled"
            finally:
                deadlines.done(call)
            return "in time"

        tasks = [asyncio.create_task(one(s)) for s in (5, 0.001, 5, 5)]
        await asyncio.sleep(0.01)
        tasks[3].cancel()
        found = await asyncio.gather(*tasks)
        assert not deadlines.calls
        deadlines.close()
        return found

    assert asyncio.run(main()) == ["late", "in time", "late", "cancelled"]


def test_a_task_that_is_cancelled_as_its_time_ends_is_cancelled() -> None:
    async def main() -> bool:
        deadlines = Deadlines(60)
        call = deadlines.watch()
        call.over = True
        call.task.cancel()
        call.task.cancel()  # and somebody else
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return call.timed_out()
        finally:
            call.task.uncancel()
            deadlines.close()
        return True

    assert asyncio.run(main()) is False
