"""A fake SGLang server on 127.0.0.1, for tests and for a person (`python -m tests.fakes.server --port 30000`).

    async with FakeSGLang(answer=marked(), latency=0.02) as fake:
        ...  # talk to fake.url
    assert fake.count["/generate"] == 3

In a plain test `with FakeSGLang() as fake:` runs it in a thread. Every body it hears and every native answer it gives
is checked with SGLang's own contract types; what breaks them is in `fake.violations` and fails the test at exit. A
test that breaks them on purpose says so: `with fake.expected("unknown field"): ...`.

As on the real server: any model name is accepted, an abort is HTTP 200, unknown top-level keys are dropped in silence
(here they are a violation), and a token id outside the vocabulary takes the connection down. (The real 0.5.23 dies.)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web

from tests.fakes import contract, native
from tests.fakes.chat import calling, chat
from tests.fakes.engine import Answer, Engine, marked, plain
from tests.fakes.router import ROUTES as ROUTER
from tests.fakes.router import unavailable, without_unknown
from tests.fakes.template import Template
from tests.fakes.trouble import Kind, Trouble, Troubles, before

Dialect = Literal["sglang", "vllm", "openai"]


@dataclass(frozen=True)
class Recorded:
    """A request as it came: method, route, body (None where there was none that can be read), headers but the key."""

    method: str
    route: str
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Call:
    """One request on its way through the fake."""

    fake: FakeSGLang
    engine: Engine
    request: web.Request
    route: str
    body: Any
    trouble: Trouble

    async def answer(self, payload: Any) -> web.StreamResponse:
        """HTTP 200 with JSON."""
        return await native.sent(self, payload)


Handler = Callable[[Call], Awaitable[web.StreamResponse]]
OPENAI: dict[tuple[str, str], Handler] = {
    ("POST", "/v1/chat/completions"): chat,
    ("GET", "/v1/models"): native.models,
}
VLLM: dict[tuple[str, str], Handler] = OPENAI | {
    ("GET", "/health"): native.health,
    ("POST", "/tokenize"): native.tokenize,
    ("POST", "/detokenize"): native.detokenize,
    ("GET", "/metrics"): native.metrics,
}
SGLANG: dict[tuple[str, str], Handler] = VLLM | {
    ("POST", "/generate"): native.generate,
    ("PUT", "/generate"): native.generate,
    ("POST", "/v1/tokenize"): native.tokenize,
    ("POST", "/v1/detokenize"): native.detokenize,
    ("POST", "/abort_request"): native.abort_request,
    ("GET", "/ready"): native.health,
    ("GET", "/health_generate"): native.health,
    ("GET", "/model_info"): native.model_info,
    ("GET", "/get_model_info"): native.model_info,
    ("GET", "/server_info"): native.server_info,
    ("GET", "/get_server_info"): native.server_info,
    ("GET", "/flush_cache"): native.flush_cache,
    ("POST", "/flush_cache"): native.flush_cache,
    ("POST", "/update_weights_from_disk"): native.update_weights_from_disk,
    ("POST", "/update_weight_version"): native.update_weight_version,
    ("POST", "/pause_generation"): native.pause_generation,
    ("POST", "/continue_generation"): native.continue_generation,
    ("POST", "/open_session"): native.open_session,
    ("POST", "/close_session"): native.close_session,
}
DIALECTS = {"openai": OPENAI, "vllm": VLLM, "sglang": SGLANG}
OPEN = frozenset({"/health", "/health_generate", "/ready", "/metrics"})
RATED: tuple[Kind, ...] = ("hang", "drop", "status", "cut", "garbage")


class FakeSGLang:
    """The server. `answer` says what the model says; `**options` are those of `tests.fakes.engine.Engine`.

    model_names: where given, any other name is a 404, as hosted services do. api_key: demanded as a bearer token.
    tool_calls: the server parses `<tool_call>` into `tool_calls`. router: it behaves as sglang-router before `workers`.
    """

    def __init__(
        self,
        answer: Answer = plain,
        *,
        dialect: Dialect = "sglang",
        model: str = "fake",
        model_names: Sequence[str] | None = None,
        api_key: str | None = None,
        template: Template | None = None,
        tool_calls: bool = True,
        cache_report: bool = False,
        router: bool = False,
        workers: Sequence[FakeSGLang] = (),
        trouble: Troubles | None = None,
        record: int = 10_000,
        port: int = 0,
        **options: Any,
    ) -> None:
        self.engine = Engine(calling(answer), template or Template(), **options)
        self.dialect: Dialect = dialect
        self.model, self.model_path = model, f"/models/{model}"
        self.loaded = ""
        """The path of the last update of the weights: the server calls itself after it."""
        self.model_names = None if model_names is None else frozenset(model_names)
        self.api_key, self.tool_calls, self.cache_report = api_key, tool_calls, cache_report
        self.router, self.workers = router, tuple(workers)
        self.trouble = trouble or Troubles(self.engine.seed)
        self.violations = self.engine.violations
        self.requests: deque[Recorded] = deque(maxlen=record)
        self.count: Counter[str] = Counter()
        self.in_flight = self.max_in_flight = 0
        self.url, self._port = "", port
        self._turn = 0
        self._runner: web.AppRunner | None = None
        self._thread: threading.Thread | None = None

    @property
    def aborted(self) -> list[str]:
        """Ids of runs that were aborted, by request or because their client went away."""
        return self.engine.aborted

    @property
    def connections(self) -> int:
        """Connections open now."""
        server = None if self._runner is None else self._runner.server
        return 0 if server is None else len(server.connections)

    @contextmanager
    def expected(self, text: str) -> Iterator[None]:
        """Inside, violations that contain `text` are expected: one at least must come, and they are forgotten."""
        known = len(self.violations)
        yield
        ours = [line for line in self.violations[known:] if text in line]
        assert ours, f"no violation with {text!r} came: {self.violations[known:]}"
        self.violations[known:] = [line for line in self.violations[known:] if text not in line]

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen on 127.0.0.1; `url` says where."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=4096)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Close every connection; what hangs is cancelled."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def check(self) -> None:
        """Fail where the contract was broken.

        Raises:
            AssertionError: the violations, one a line.
        """
        assert not self.violations, "SGLang's contract was broken:\n" + "\n".join(dict.fromkeys(self.violations))

    async def __aenter__(self) -> FakeSGLang:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.stop()
        if kind is None:
            self.check()

    def __enter__(self) -> FakeSGLang:
        ready: threading.Event = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, args=(ready,), name="fake-sglang", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join()
        self._loop.close()
        if kind is None:
            self.check()

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self.start())
        self._loop.call_soon(ready.set)
        self._loop.run_forever()

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self._answer(request)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        route = request.path
        raw = await request.read()
        body, readable = _parsed(raw)
        headers = {key: value for key, value in request.headers.items() if key.lower() != "authorization"}
        self.requests.append(Recorded(request.method, route, body, headers))
        self.count[route] += 1
        if (
            self.api_key is not None
            and route not in OPEN
            and request.headers.get("Authorization") != f"Bearer {self.api_key}"
        ):
            return self._unauthorised()
        handler, status = self._handler(request.method, route)
        if handler is None:
            return web.json_response({"detail": "Not Found" if status == 404 else "Method Not Allowed"}, status=status)
        if not readable or (raw and request.content_type != "application/json"):
            text = "1 validation error:\n  {'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error'}"
            return native.error(text, 400, "Bad Request")
        trouble = self.trouble.next(route)
        instead = await before(request, trouble)
        if instead is not None:
            return instead
        return await self._called(handler, request, route, body, trouble)

    async def _called(
        self, handler: Handler, request: web.Request, route: str, body: Any, trouble: Trouble
    ) -> web.StreamResponse:
        if self.router and route != "/workers":
            if not self.workers:
                return unavailable()
            self._turn += 1
            worker = self.workers[self._turn % len(self.workers)]
            body = without_unknown(route, body)
            return await handler(Call(worker, worker.engine, request, route, body, trouble))
        if self.dialect == "sglang" and body is not None and not self.router:
            problems = contract.problems_of_request(route, body)
            self.violations.extend(problems)
            if any(problem.endswith("is missing") for problem in problems) or not isinstance(body, dict):
                return native.error("1 validation error:\n  " + problems[0], 400, "Bad Request")
        return await handler(Call(self, self.engine, request, route, {} if body is None else body, trouble))

    def _handler(self, method: str, route: str) -> tuple[Handler | None, int]:
        table = ROUTER if self.router else DIALECTS[self.dialect]
        found = table.get((method, route))
        known = any(path == route for _, path in table)
        return found, 200 if found else (405 if known else 404)

    def _unauthorised(self) -> web.Response:
        if self.dialect == "sglang":
            return web.json_response({"error": "Unauthorized"}, status=401)
        error = {"message": "Incorrect API key provided.", "type": "invalid_request_error", "param": None}
        return web.json_response({"error": error | {"code": "invalid_api_key"}}, status=401)


def _parsed(raw: bytes) -> tuple[Any, bool]:
    """The body, and whether it could be read."""
    if not raw:
        return None, True
    try:
        return json.loads(raw), True
    except ValueError:
        return None, False


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A fake SGLang server.")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="sglang")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until an answer is whole")
    parser.add_argument("--jitter", type=float, default=0.0, help="up to this many seconds more")
    parser.add_argument("--api-key-required", metavar="KEY", default=None)
    parser.add_argument("--context-length", type=int, default=8192)
    parser.add_argument("--max-running", type=int, default=None)
    parser.add_argument("--max-queued", type=int, default=None)
    for kind in RATED:
        parser.add_argument(f"--{kind}", type=float, default=0.0, metavar="RATE")
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    troubles = Troubles(told.seed)
    for kind in RATED:
        troubles.rate(Trouble(kind), getattr(told, kind))
    fake = FakeSGLang(
        marked(),
        dialect=told.dialect,
        api_key=told.api_key_required,
        trouble=troubles,
        record=0,
        port=told.port,
        latency=told.latency,
        jitter=told.jitter,
        context_length=told.context_length,
        max_running=told.max_running,
        max_queued=told.max_queued,
        seed=told.seed,
    )
    asyncio.run(_forever(fake))


async def _forever(fake: FakeSGLang) -> None:
    async with fake:
        print(f"fake SGLang at {fake.url}", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            print("\n".join(dict.fromkeys(fake.violations)) or "no violations", flush=True)


if __name__ == "__main__":
    main()
