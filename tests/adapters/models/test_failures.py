"""What goes wrong, told in one line that says what to do and holds no secret."""

import asyncio
import time
from email.utils import formatdate

import pytest
from aiohttp import web

from arena.adapters.models.failures import one_line, refused, retry_after, said
from arena.adapters.models.keys import hide
from arena.adapters.models.transport import Settings, Transport
from arena.model import ContextOverflow, ModelError
from tests.adapters.models.small_server import asked, closed_port, hello, serving

KEY = "key-0123456789abcdef"
hide(KEY)


def refusal(status: int, body: bytes = b"", path: str = "/v1/x", env: str = "", **headers: str) -> ModelError:
    return refused("http://host", path, status, headers, body, env).error(1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no such model"}}', "no such model"),
        (b'{"error": "unknown field `x`"}', "unknown field `x`"),
        (b'{"object": "error", "message": "The request queue is full.", "code": 503}', "The request queue is full."),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"detail": [{"loc": ["body"], "msg": "missing"}]}', '{"detail": [{"loc": ["body"], "msg": "missing"}]}'),
        (b'{"error": 5}', "5"),
        (b'"just text"', "just text"),
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, "[" * 19_200),
        (b"", ""),
    ],
)
def test_what_a_server_says(body: bytes, message: str) -> None:
    assert said(body) == message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\tc\x1b[31m\u202ed\x00", "a b c [31m d"),
        ("x" * 5000, "x" * 300 + "..."),
        (f"key {KEY} is wrong", "key *** is wrong"),
        ("Authorization: Bearer abc123", "Authorization: Bearer ***"),
        ("  ", ""),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("", None), ("3", 3.0), ("-5", 0.0), ("nan", None), ("tomorrow", None), ("1e999", float("inf"))],
)
def test_retry_after_in_seconds(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_retry_after_as_a_date() -> None:
    found = retry_after(formatdate(time.time() + 30, usegmt=True))
    assert found is not None
    assert 28 < found < 31
    assert retry_after(formatdate(0, usegmt=True)) == 0


@pytest.mark.parametrize(
    "message",
    [
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "Requested token count exceeds the model's maximum context length of 8192 tokens.",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "the request exceeds the available context size. try increasing the context size",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
def test_a_full_context_is_an_error_of_its_own(message: str) -> None:
    error = refusal(400, message.encode())
    assert isinstance(error, ContextOverflow)
    assert error.status == 400
    assert not isinstance(refusal(500, message.encode()), ContextOverflow)
    assert not isinstance(refusal(400, b"temperature is out of range"), ContextOverflow)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            refusal(401, b'{"error": "no key"}'),
            "asks for a key (401: no key): set the environment variable named in api_key_env=...",
        ),
        (
            refusal(403, b"no", env="MY_KEY"),
            "refused the key (403: no): set the environment variable named in api_key_env=MY_KEY",
        ),
        (
            refusal(404, b'{"detail":"Not Found"}'),
            "has no /v1/x (404): is it the right kind of server, and its base URL?",
        ),
        (refusal(404, b"<html>nginx</html>"), "has no /v1/x (404)"),
        (refusal(404, b"404: Not Found"), "has no /v1/x (404)"),
        (refusal(405), "has no /v1/x (405)"),
        (
            refusal(404, b'{"error":{"message":"The model `a` does not exist."}}'),
            "/v1/x answers 404: The model `a` does not exist.",
        ),
        (refusal(308, Location="https://host/v1/x"), "is now at https://host/v1/x (308): name that server"),
        (refusal(400), "answers 400: without a word"),
        (refusal(400, f"you sent {KEY}".encode(), env="MY_KEY"), "answers 400: you sent ***"),
    ],
)
def test_refusals(error: ModelError, line: str) -> None:
    assert line in str(error)
    assert str(error).count("\n") == 0
    assert KEY not in str(error)


def test_nobody_listens() -> None:
    async def main() -> None:
        await hello(Transport([f"http://127.0.0.1:{closed_port()}"], Settings(retries=0)))

    with pytest.raises(
        ModelError, match=r"cannot connect to http://127\.0\.0\.1:\d+: Connection refused: is the server up"
    ):
        asyncio.run(main())


def test_a_name_that_is_not_known() -> None:
    async def main() -> None:
        await hello(Transport(["http://no-such-host.invalid"], Settings(retries=0)))

    with pytest.raises(ModelError, match=r"cannot connect to http://no-such-host\.invalid: .*: is the server up"):
        asyncio.run(main())


def test_plain_http_where_https_is_spoken() -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response()

    async def main() -> None:
        async with serving(handler) as url:
            await hello(Transport([url.replace("http:", "https:")], Settings(retries=0)))

    with pytest.raises(ModelError, match="cannot connect"):
        asyncio.run(main())


def test_something_that_is_no_http() -> None:
    async def main() -> None:
        async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            await hello(Transport([f"http://127.0.0.1:{port}"], Settings(retries=0)))

    with pytest.raises(ModelError, match="the connection broke off"):
        asyncio.run(main())


def test_keys_come_from_the_environment_and_go_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", f" {KEY}\n")
    heard = list[str]()

    async def handler(request: web.Request) -> web.StreamResponse:
        heard.append(request.headers["Authorization"])
        return web.json_response({"error": f"bad header {heard[0]}, cookie {KEY}"}, status=400)

    settings = Settings(api_key_env="MODEL_KEY")
    with pytest.raises(ModelError, match=r"answers 400: bad header Bearer \*\*\*") as caught:
        asked(handler, hello, settings)
    assert heard == [f"Bearer {KEY}"]
    transport = Transport(["http://host"], settings)
    assert KEY not in f"{caught.value!r} {transport!r} {vars(transport)} {settings}"


@pytest.mark.parametrize(
    ("value", "line"),
    [("", "set that environment variable"), ("a\tb", "characters no key has"), ("schlüssel", "no key has")],
)
def test_a_key_that_is_missing_or_none(monkeypatch: pytest.MonkeyPatch, value: str, line: str) -> None:
    monkeypatch.setenv("MODEL_KEY", value)

    async def main() -> None:
        await hello(Transport(["http://host"], Settings(api_key_env="MODEL_KEY")))

    with pytest.raises(ModelError, match=f"api_key_env=MODEL_KEY: .*{line}"):
        asyncio.run(main())


def test_a_redirect_is_not_followed_so_that_the_key_stays_here() -> None:
    heard = list[str]()

    async def handler(request: web.Request) -> web.StreamResponse:
        heard.append(request.path)
        raise web.HTTPTemporaryRedirect("/elsewhere")

    with pytest.raises(ModelError, match=r"/ask is now at /elsewhere \(307\)"):
        asked(handler, hello)
    assert heard == ["/ask"]
