"""The same pages from a server, live while games are played: FastAPI, and server-sent events that say `change`.

Needs the extra `serve`.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from os import PathLike
from typing import BinaryIO

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from arena.episode import EpisodeError
from arena.tournaments.database import StoreError
from arena.tournaments.site.changes import Changes
from arena.tournaments.site.snapshot import Missing, Snapshot

__all__ = ["EVENTS", "app", "web_server"]

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
_STATUS: dict[type[Exception], int] = {Missing: 404, EpisodeError: 500, StoreError: 503}


def app(run: str | PathLike[str], *, poll: float = 1.0, hosts: list[str] | None = None) -> FastAPI:
    """The web application of a run folder, store file or database's URL.

    `poll`: seconds between two looks at the store. `hosts`: names under which it may be asked (a page elsewhere must
    not read it through a name of its own); None: any.
    """
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
    for error, status in _STATUS.items():
        site.add_exception_handler(error, _told(status))
    _route(site, snapshot, changes)
    return site


def _told(status: int) -> Callable[[Request, Exception], Response]:
    """An error in one line."""

    def answer(_: Request, error: Exception) -> Response:
        return PlainTextResponse(f"{error}\n", status, _HEADERS)

    return answer


def _route(site: FastAPI, snapshot: Snapshot, changes: Changes) -> None:
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


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


def web_server(site: FastAPI) -> uvicorn.Server:
    """A server of such an application that ends its streams when it is stopped, and does not wait for them."""

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await site.state.changes.end()
            await super().shutdown(sockets)

    return Server(uvicorn.Config(site, log_level="warning", timeout_graceful_shutdown=5))
