"""Transport: calls that are cancelled or too late, event loops, and nothing left over whatever happens."""

import asyncio
import gc
import json
import subprocess
import sys
import threading
from random import Random

import pytest
from aiohttp import web

from arena.adapters.models.transport import Settings, Transport
from arena.model import ModelError
from tests.adapters.models.small_server import (
    aborting,
    asked,
    hanging,
    hello,
    json_of,
    scripted,
    serving,
    settle,
)
from tests.repository import ROOT

pytestmark = pytest.mark.usefixtures("short_waits")


def test_a_hang_ends_and_is_aborted_and_asked_again() -> None:
    heard = list[str]()

    async def use(transport: Transport) -> None:
        await transport.post("/ask", b"", cancelled=aborting(transport))

    with pytest.raises(ModelError, match=r"no whole answer within 0\.05 s \(call_seconds\) \(asked 2 times\)"):
        asked(hanging(heard), use, Settings(call_seconds=0.05, retries=1))
    assert heard == ["/ask", "/abort_request"] * 2


def test_a_cancelled_call_is_aborted_at_the_server_without_a_slot() -> None:
    heard = list[str]()

    async def use(transport: Transport) -> None:
        calls = [asyncio.create_task(transport.post("/ask", b"", cancelled=aborting(transport))) for _ in range(2)]
        await settle(lambda: "/ask" in heard)
        calls[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        await settle(lambda: "/abort_request" in heard)
        calls[1].cancel()

    asked(hanging(heard), use, Settings(concurrency=1))
    assert heard.count("/abort_request") >= 1


def test_who_waits_for_a_slot_has_nothing_to_abort() -> None:
    heard = list[str]()

    async def use(transport: Transport) -> None:
        calls = [asyncio.create_task(transport.post("/ask", b"", cancelled=aborting(transport))) for _ in range(2)]
        await settle(lambda: "/ask" in heard)
        calls[1].cancel()
        await asyncio.wait([calls[1]])
        assert not transport._pool().goodbyes
        calls[0].cancel()

    asked(hanging(heard), use, Settings(concurrency=1))


def test_closing_waits_for_aborts() -> None:
    heard = list[str]()

    async def use(transport: Transport) -> None:
        call = asyncio.create_task(transport.post("/ask", b"", cancelled=aborting(transport)))
        await settle(lambda: "/ask" in heard)
        call.cancel()
        await asyncio.wait([call])

    asked(hanging(heard), use)
    assert heard == ["/ask", "/abort_request"]


def test_hundreds_of_random_cancels_drops_and_errors_leave_nothing_behind() -> None:
    chance = Random(3)

    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(chance.random() / 100)
        luck = chance.random()
        if luck < 0.1 and request.transport is not None:
            request.transport.abort()
        if luck < 0.3:
            return json_of(chance.choice([429, 500, 503, 400]))
        return web.Response(body=await request.read())

    async def use(transport: Transport) -> int:
        quiet = len(asyncio.all_tasks())
        abort = aborting(transport)

        async def one(number: int) -> bytes:
            body = json.dumps({"asker": number}).encode()
            answered = await transport.post("/ask", body, cancelled=abort)
            assert answered.body == body, "an answer reached another"
            return answered.body

        calls = [asyncio.create_task(one(number)) for number in range(600)]
        for _ in range(300):
            await asyncio.sleep(chance.random() / 1000)
            chance.choice(calls).cancel()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(end) for end in ends} <= {bytes, ModelError, asyncio.CancelledError}
        place = transport._pool()
        await settle(lambda: not place.goodbyes)
        assert (place.endpoints[0].slots.busy, len(place.endpoints[0].slots.waiting)) == (0, 0)
        assert not place.deadlines.calls
        assert not place.connector._acquired
        await transport.close()
        await settle(lambda: len(asyncio.all_tasks()) - quiet <= 0)
        return sum(isinstance(end, bytes) for end in ends)

    good = asked(handler, use, Settings(concurrency=32, retries=3))
    assert isinstance(good, int)
    assert good > 200


def test_sharing_is_by_endpoints_and_settings_and_ends_with_the_last_user() -> None:
    async def main() -> None:
        handler, _ = scripted()
        async with serving(handler) as url:
            one = Transport.shared([url], Settings(input_price=1.0))
            two = Transport.shared([url + "/"], Settings(cache="folder"))
            other = Transport.shared([url], Settings(retries=3))
            for transport in (one, two, other):
                await hello(transport)
            session = one._pool().session
            assert two._pool().session is session
            assert other._pool().session is not session
            await one.close()
            await one.close()  # once more is no other's turn
            assert not session.closed
            await two.close()
            assert session.closed
            assert not other._pool().session.closed
            await hello(two)  # and it can be used again
            await hello(one)
            session = one._pool().session
            await two.close()
            assert not session.closed
            await one.close()
            assert session.closed
            await other.close()

    asyncio.run(main())


def test_two_threads_with_loops_of_their_own() -> None:
    handler, heard = scripted()

    async def use(transport: Transport) -> None:
        async def other() -> None:
            await asyncio.gather(*(hello(transport) for _ in range(20)))

        thread = threading.Thread(target=asyncio.run, args=(other(),))
        thread.start()
        await asyncio.gather(*(hello(transport) for _ in range(20)))
        while thread.is_alive():
            await asyncio.sleep(0.005)

    asked(handler, use)
    assert len(heard) == 40


LOOPS = """
import asyncio, gc, sys
from arena.adapters.models.transport import Settings, Transport
from tests.adapters.models.small_server import serving
from aiohttp import web

async def handler(request):
    return web.Response(body=b"x")

kept = None

async def main(close):
    global kept
    async with serving(handler) as url:
        kept = kept or Transport([url])
        transport = kept if close is None else Transport([url])
        if transport is not kept:
            assert (await transport.post("/", b"")).body == b"x"
        try:
            await kept.post("/", b"", retries=0)
        except Exception as error:
            assert "cannot connect" in str(error), error
        if close:
            await transport.close()

for close in (True, False, False):
    asyncio.run(main(close), debug=True)
    gc.collect()

loop = asyncio.new_event_loop()  # and one that nobody shuts down properly
loop.run_until_complete(main(None))
loop.close()
asyncio.run(main(True))
gc.collect()
print("done")
"""


def test_event_loops_one_after_the_other_without_a_warning() -> None:
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", LOOPS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    noise = [line for line in done.stderr.splitlines() if "Unclosed" in line or "never" in line]
    assert noise == [], done.stderr


def test_a_transport_that_is_dropped_closes_its_connections() -> None:
    async def main() -> None:
        handler, _ = scripted()
        async with serving(handler) as url:
            transport = Transport([url])
            await hello(transport)
            session = transport._pool().session
            del transport
            gc.collect()
            await settle(lambda: session.closed)
            assert session.closed

    asyncio.run(main())


def test_closing_while_calls_run_ends_them_with_one_line() -> None:
    heard = list[str]()

    async def use(transport: Transport) -> list[object]:
        calls = [asyncio.create_task(hello(transport)) for _ in range(3)]
        await settle(lambda: len(heard) == 3)
        await transport.close()
        return list(await asyncio.gather(*calls, return_exceptions=True))

    ends = asked(hanging(heard), use)
    assert isinstance(ends, list)
    assert all(isinstance(end, ModelError) and "have been closed" in str(end) for end in ends), ends
