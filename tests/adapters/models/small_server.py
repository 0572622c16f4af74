"""A server whose every answer a test writes itself, for what the fake SGLang has no trouble for."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from arena.adapters.models.transport import Answered, Settings, Transport

QUICK = Settings(connect_seconds=2.0, call_seconds=5.0)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """The base URL of a server that gives every request to the handler."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def closed_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def json_of(status: int, **headers: str) -> web.Response:
    return web.json_response({"message": f"status {status}"}, status=status, headers=headers)


def scripted(*statuses: int, **headers: str) -> tuple[Handler, list[bytes]]:
    """A handler that answers with these statuses in turn, then with what it was sent; and all that it was sent."""
    left, heard = list(statuses), list[bytes]()

    async def handler(request: web.Request) -> web.StreamResponse:
        heard.append(await request.read())
        return json_of(left.pop(0), **headers) if left else web.Response(body=heard[-1])

    return handler, heard


async def settle(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


def asked(
    handler: Handler, use: Callable[[Transport], Awaitable[object]], settings: Settings = QUICK, path: str = ""
) -> object:
    """What `use` gives with a transport to a server with that handler."""

    async def main() -> object:
        async with serving(handler) as url:
            transport = Transport([url + path], settings)
            try:
                return await use(transport)
            finally:
                await transport.close()

    return asyncio.run(main())


async def hello(transport: Transport) -> Answered:
    return await transport.post("/ask", b'{"rid": 1}')


def hanging(heard: list[str]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        heard.append(request.path)
        if request.path == "/ask":
            await asyncio.sleep(60)
        return web.Response()

    return handler


def aborting(transport: Transport) -> Callable[[str], Awaitable[None]]:
    async def abort(url: str) -> None:
        await transport.notify("/abort_request", b'{"rid": 1}', url)

    return abort
