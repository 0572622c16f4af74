"""The same pages from a server, live while games are played: FastAPI, and server-sent events that say `change`."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

from arena.episode import EpisodeError
from arena.tournaments.database import StoreError
from arena.tournaments.site.snapshot import Missing, Snapshot

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

__all__ = ["EVENTS", "Changes", "app", "web_server"]

EVENTS = "/events"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the pages say the rest themselves
    "Cache-Control": "no-cache",
}
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "pgn": "application/x-chess-pgn",
}
_PIECE = 1 << 16  # bytes
_ALIVE = 15.0  # seconds after which a quiet stream says that it is there: proxies end what says nothing


class Changes:
    """Tells all who listen that the run has changed; one looks for everybody, every `poll` seconds."""

    def __init__(self, snapshot: Snapshot, poll: float) -> None:
        self.snapshot, self.poll = snapshot, poll
        self.count, self.ended = 0, False
        self._changed = asyncio.Condition()

    async def watch(self) -> None:
        """Look until cancelled."""
        before: object = None
        while True:
            with contextlib.suppress(StoreError):  # being written, or gone for a moment: seen at the next look
                now = await asyncio.to_thread(self.snapshot.version)
                if before is None:
                    before = now
                elif now != before and self.snapshot.due:  # sooner, all would be given what they have
                    before = now
                    await self._tell()
            await asyncio.sleep(self.poll)

    async def end(self) -> None:
        """Let all streams end: a server that stops waits for them."""
        self.ended = True
        async with self._changed:
            self._changed.notify_all()

    async def _tell(self) -> None:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()

    async def stream(self) -> AsyncIterator[str]:
        """The events of one listener."""
        seen = self.count
        yield "retry: 2000\n\n"
        while not self.ended:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._next(seen), _ALIVE)
            if self.count != seen:
                seen = self.count
                yield f"id: {seen}\nevent: change\ndata: {seen}\n\n"
            else:
                yield ": here\n\n"

    async def _next(self, seen: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.count != seen or self.ended)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


def app(run: str | PathLike[str], *, poll: float = 1.0, hosts: list[str] | None = None) -> "FastAPI":
    """The web application of a run folder, store file or database's URL. Needs the extra `serve`.

    `poll`: seconds between two looks at the store. `hosts`: names under which it may be asked (a page elsewhere must
    not read it through a name of its own); None: any.
    """
    try:
        from fastapi import FastAPI, Request, Response
        from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
        from starlette.middleware.gzip import GZipMiddleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
    except ImportError as error:
        raise ValueError("a server needs fastapi and uvicorn: pip install 'gymnasium-arena[serve]'") from error
    snapshot = Snapshot(run, EVENTS)
    changes = Changes(snapshot, poll)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(changes.watch())
        try:
            yield
        finally:
            watching.cancel()
            await changes.end()

    site = FastAPI(title="Arena leaderboard", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    site.state.changes = changes
    site.add_middleware(GZipMiddleware, minimum_size=1000)
    if hosts is not None:
        site.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)

    def told(status: int) -> Any:
        def answer(request: Request, error: Exception) -> Response:
            return PlainTextResponse(f"{error}\n", status, _HEADERS)

        return answer

    site.add_exception_handler(Missing, told(404))
    site.add_exception_handler(EpisodeError, told(500))
    site.add_exception_handler(StoreError, told(503))

    @site.get("/")
    def index() -> Response:
        return HTMLResponse(snapshot.page("index"), headers=_HEADERS)

    @site.get(EVENTS)
    async def events() -> Response:
        return StreamingResponse(changes.stream(), media_type="text/event-stream", headers=_HEADERS)

    @site.get("/game/{key}.html")
    def replay(key: str) -> Response:
        return HTMLResponse(snapshot.replay(key), headers=_HEADERS)

    @site.get("/{key}.html")
    def page(key: str) -> Response:
        return HTMLResponse(snapshot.page(key), headers=_HEADERS)

    @site.get("/{name}")
    def file(name: str) -> Response:
        kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        saved = _HEADERS | {"Content-Disposition": "attachment"}
        return StreamingResponse(_pieces(snapshot.file(name)), media_type=kind, headers=saved)

    return site


def web_server(site: "FastAPI") -> "uvicorn.Server":
    """A server of such an application that ends its streams when it is stopped, and does not wait for them."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await site.state.changes.end()
            await super().shutdown(sockets)

    return Server(uvicorn.Config(site, log_level="warning", timeout_graceful_shutdown=5))
