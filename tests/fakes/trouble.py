"""Trouble on the way: what goes wrong with a request, at a rate or in a row, by a generator of its own."""

import asyncio
import json
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web

Kind = Literal["ok", "status", "hang", "drop", "cut", "slow", "abort", "garbage"]
GARBAGE = {
    "text": b"<html><body>Bad Gateway</body></html>",
    "empty": b"",
    "truncated": b'{"text": "I have thou',
    "wrong types": b'{"text": 5, "output_ids": "x", "meta_info": [], "choices": {"0": null}, "usage": "none"}',
    "huge": b'{"text": "' + b"x" * (1 << 20) + b'"}',
}
BUSY = {429: "Rate limit reached.", 500: "Internal Server Error", 502: "Bad Gateway", 503: "The request queue is full."}


@dataclass(frozen=True)
class Trouble:
    """One outcome of a request.

    ok: none. status: an error answer with `status` (and Retry-After where `retry_after` is given). hang: no answer for
    `seconds`, then the connection is closed. drop: closed before an answer. cut: closed in the middle of the body.
    slow: the true answer, its body spread over `seconds`. abort: the run ends early, HTTP 200 with `abort`.
    garbage: HTTP 200 with a body that is none, `body` names one of `GARBAGE` or is given as bytes.
    """

    kind: Kind
    status: int = 503
    retry_after: float | None = None
    seconds: float = 60.0
    body: bytes | str = "text"


OK = Trouble("ok")


class Troubles:
    """Which trouble the next request meets: first a script, then rates."""

    def __init__(self, seed: int = 0, routes: Iterable[str] = ("/generate", "/v1/chat/completions")) -> None:
        self.routes = frozenset(routes)
        self.rates: list[tuple[Trouble, float]] = []
        self.met: list[Trouble] = []
        self._script: deque[Trouble] = deque()
        self._random = random.Random(f"trouble {seed}")

    def rate(self, trouble: Trouble, probability: float) -> None:
        """From now on each request meets this trouble with this probability; probabilities add up to at most 1."""
        self.rates.append((trouble, probability))
        if sum(one for _, one in self.rates) > 1 + 1e-9:
            raise ValueError("the rates of all troubles add up to more than 1")

    def script(self, *outcomes: Trouble) -> None:
        """The next requests meet these, in order, before rates apply again."""
        self._script.extend(outcomes)

    def next(self, route: str) -> Trouble:
        """What this request meets."""
        if route not in self.routes:
            return OK
        trouble = self._script.popleft() if self._script else self._by_rate()
        if trouble.kind != "ok":
            self.met.append(trouble)
        return trouble

    def _by_rate(self) -> Trouble:
        if not self.rates:
            return OK
        at = self._random.random()
        for trouble, probability in self.rates:
            at -= probability
            if at < 0:
                return trouble
        return OK


def dropped(request: web.Request) -> web.Response:
    """Close the connection now; what is returned is never sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def failure(trouble: Trouble) -> web.Response:
    """The error answer of a `status` trouble."""
    message = BUSY.get(trouble.status, "Error")
    body = {"object": "error", "message": message, "type": str(trouble.status), "param": None, "code": trouble.status}
    headers = {} if trouble.retry_after is None else {"Retry-After": f"{trouble.retry_after:g}"}
    return web.json_response(body, status=trouble.status, headers=headers)


def garbage(trouble: Trouble) -> web.Response:
    """HTTP 200 with a body that cannot be read as an answer."""
    body = trouble.body if isinstance(trouble.body, bytes) else GARBAGE[trouble.body]
    return web.Response(body=body, content_type="application/json")


async def before(request: web.Request, trouble: Trouble) -> web.StreamResponse | None:
    """What happens instead of the true answer, None where there is one."""
    if trouble.kind == "hang":
        await asyncio.sleep(trouble.seconds)
    if trouble.kind in {"hang", "drop"}:
        return dropped(request)
    if trouble.kind == "status":
        return failure(trouble)
    return garbage(trouble) if trouble.kind == "garbage" else None


async def send(request: web.Request, payload: Any, trouble: Trouble) -> web.StreamResponse:
    """A JSON answer, whole, or cut or slow as the trouble wants."""
    body = json.dumps(payload).encode()
    if trouble.kind not in {"cut", "slow"}:
        return web.Response(body=body, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    await response.prepare(request)
    if trouble.kind == "cut":
        await response.write(body[: len(body) // 2])
        await asyncio.sleep(0)
        return _cut(request, response)
    parts = [body[at : at + len(body) // 8 + 1] for at in range(0, len(body), len(body) // 8 + 1)]
    for part in parts:
        await asyncio.sleep(trouble.seconds / len(parts))
        await response.write(part)
    await response.write_eof()
    return response


def _cut(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return response


class Events:
    """A stream of server-sent events; cut after the first, or slow, as the trouble wants."""

    def __init__(self, request: web.Request, trouble: Trouble, pause: float = 0.0) -> None:
        self.request, self.trouble = request, trouble
        self.pause = trouble.seconds if trouble.kind == "slow" else pause
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        self.sent = 0

    async def send(self, event: Any) -> bool:
        """Send one event (JSON, or a string as it is); False once the connection is cut."""
        if not self.response.prepared:
            await self.response.prepare(self.request)
        if self.trouble.kind == "cut" and self.sent == 1:
            _cut(self.request, self.response)
            return False
        if self.trouble.kind == "slow":
            await asyncio.sleep(self.trouble.seconds / 8)
        text = event if isinstance(event, str) else json.dumps(event)
        await self.response.write(f"data: {text}\n\n".encode())
        self.sent += 1
        return True

    async def end(self) -> web.StreamResponse:
        """Close with `[DONE]`."""
        if await self.send("[DONE]"):
            await self.response.write_eof()
        return self.response
