"""A fake model server that is no bottleneck: `python -m benchmarks.load.server [--latency S] [faults]`.

It speaks SGLang's native routes and OpenAI's chat route as far as a player needs them. Every answer is a legal action
of `benchmarks.load.game` and carries its asker's mark: the last `[m:...]` of the request. On a line of standard output
it says its port, and it ends with standard input. Faults are drawn from a seeded generator, request by request.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import msgspec

from benchmarks.load.words import LAST, MARK, Words

__all__ = ["Faults", "Server"]

MODEL = "fake"
_HEAD = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_PHRASES = {200: b"OK", 404: b"Not Found", 500: b"Internal Server Error", 503: b"Service Unavailable"}
_THOUGHT = "I look at the row, count what is left of my turns and choose. "
_CHAT = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"fake","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":%b,"reasoning_content":null,"tool_calls":null},"logprobs":%b,"finish_reason":"stop",'
    b'"matched_stop":2}],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,'
    b'"prompt_tokens_details":null,"reasoning_tokens":0},"metadata":{"weight_version":"default"}}'
)
_NATIVE = (
    b'{"text":%b,"output_ids":%b,%b"meta_info":{"id":%b,"finish_reason":{"type":"stop","matched":2},"prompt_tokens":%d,'
    b'"weight_version":"default","num_retractions":0,"completion_tokens":%d,"cached_tokens":%d,"cached_tokens_details":null,'
    b'"output_token_logprobs":%b,"output_token_logprobs_length":%d,"e2e_latency":0.02}}'
)


class Faults(NamedTuple):
    """Shares of the POST requests that fail."""

    errors: float = 0.0
    """Answered with 500 or 503."""
    hangs: float = 0.0
    """Never answered."""
    drops: float = 0.0
    """The connection is closed, before the answer or in the middle of it."""
    seed: int = 0


_NONE = Faults()


class Generate(msgspec.Struct):
    """What is read of POST /generate."""

    input_ids: list[int]
    rid: str = ""
    return_logprob: bool = False
    return_prompt_token_ids: bool = False


class Said(msgspec.Struct):
    role: str
    content: str | None = None


class Tokenize(msgspec.Struct):
    """What is read of POST /tokenize."""

    prompt: str | list[str] = ""
    messages: list[Said] = []
    add_generation_prompt: bool = True


_generate = msgspec.json.Decoder(Generate)
_tokenize = msgspec.json.Decoder(Tokenize)
_encode = msgspec.json.Encoder().encode


def _card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "max_model_len": 1 << 20}


_INFO: dict[str, Any] = {
    "/health": {},
    "/health_generate": {},
    "/ready": {},
    "/v1/models": {"object": "list", "data": [_card(name) for name in (MODEL, "left", "right")]},
    "/model_info": {
        "model_path": MODEL, "tokenizer_path": MODEL, "is_generation": True, "preferred_sampling_params": None,
        "weight_version": "default", "has_image_understanding": False, "has_audio_understanding": False,
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
    },
    "/server_info": {
        "model_path": MODEL, "served_model_name": MODEL, "version": "0.5.23", "context_length": 1 << 20,
        "max_total_num_tokens": 1 << 30, "max_req_input_len": 1 << 20, "status": "ready", "skip_tokenizer_init": False,
        "internal_states": [],
    },
}  # fmt: skip
_INFO["/get_model_info"], _INFO["/get_server_info"] = _INFO["/model_info"], _INFO["/server_info"]


class Server:
    """Answers and counts."""

    def __init__(self, latency: float = 0.02, faults: Faults = _NONE) -> None:
        self.latency, self.faults, self.rng = latency, faults, Random(faults.seed)
        self.words = Words()
        self.counts: Counter[str] = Counter()
        self.open: set[Connection] = set()
        self.waiting = self.most = 0
        self.answers: dict[str, tuple[bytes, bytes, bytes, int]] = {}

    def reply(self, path: str, body: bytes) -> tuple[int, bytes, float]:
        """Status, body and seconds until it is sent."""
        self.counts[path] += 1
        if path == "/generate":
            return 200, self.generated(_generate.decode(body)), self.latency
        if path == "/v1/chat/completions":
            return 200, self.chat(body), self.latency
        if path == "/tokenize":
            return 200, self.tokenized(_tokenize.decode(body)), 0.0
        if path == "/stats":
            return 200, json.dumps(self.stats()).encode(), 0.0
        if path in ("/abort_request", "/flush_cache"):
            return 200, b"{}", 0.0
        known = _INFO.get(path)
        return (404, b'{"detail":"Not Found"}', 0.0) if known is None else (200, json.dumps(known).encode(), 0.0)

    def stats(self) -> dict[str, Any]:
        """Counts of requests and faults, and what is open now."""
        return {
            **self.counts, "connections": len(self.open), "waiting": self.waiting, "most_waiting": self.most,
            "cpu": time.process_time(),
        }  # fmt: skip

    def answer(self, mark: str) -> str:
        """The text: a thought, the mark, an action between 1 and 7 that depends on the mark."""
        return f"{_THOUGHT}{mark} <answer>{sum(mark.encode()) % 7 + 1}</answer>"

    def generated(self, asked: Generate) -> bytes:
        """An answer of /generate."""
        text = self.answer(self.words.last_mark(asked.input_ids))
        ids = [*self.words.encode(text), LAST]
        logprobs = [(-0.125 * (number % 13) - 0.0123456, number, None) for number in ids]
        prompt = b'"prompt_token_ids":%b,' % _encode(asked.input_ids) if asked.return_prompt_token_ids else b""
        size = len(asked.input_ids)
        return _NATIVE % (
            _encode(text), _encode(ids), prompt, _encode(asked.rid), size, len(ids), max(size - 64, 0),
            _encode(logprobs if asked.return_logprob else []), len(ids),
        )  # fmt: skip

    def chat(self, body: bytes) -> bytes:
        """An answer of /v1/chat/completions; the request is searched for its mark, not parsed."""
        at = body.rfind(b"[m:")
        found = MARK.match(body[at : at + 100].decode("utf-8", "replace")) if at >= 0 else None
        text = self.answer(found[0] if found else "")
        logprobs = b"null"
        if b'"logprobs":true' in body:
            logprobs = _encode({"content": [_token(word) for word in text.split(" ")]})
        size = len(body) // 4
        return _CHAT % (_encode(text), logprobs, size, size + 24, 24)

    def tokenized(self, asked: Tokenize) -> bytes:
        """An answer of /tokenize."""
        if asked.messages:
            said = [(message.role, message.content or "") for message in asked.messages]
            tokens: list[Any] = self.words.render(said, asked.add_generation_prompt)
        elif isinstance(asked.prompt, str):
            tokens = self.words.encode(asked.prompt)
        else:
            tokens = [self.words.encode(text) for text in asked.prompt]
            return _encode({"tokens": tokens, "count": [len(ids) for ids in tokens], "max_model_len": 1 << 20})
        return _encode({"tokens": tokens, "count": len(tokens), "max_model_len": 1 << 20})

    def fault(self) -> str:
        """What goes wrong with this request, or ""."""
        errors, hangs, drops, _ = self.faults
        if not errors + hangs + drops:
            return ""
        drawn = self.rng.random()
        if drawn < errors:
            return "500" if drawn < errors / 2 else "503"
        if drawn < errors + hangs:
            return "hang"
        if drawn < errors + hangs + drops:
            return "drop" if drawn < errors + hangs + drops / 2 else "cut"
        return ""


def _token(word: str) -> dict[str, Any]:
    return {"token": word, "bytes": list(word.encode()), "logprob": -0.123456, "top_logprobs": []}


class Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection; bodies have a Content-Length."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server, self.loop = server, loop
        self.buffer, self.head, self.body = bytearray(), b"", -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.server.open.discard(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            if self.body < 0 and not self._read_head():
                return
            if len(self.buffer) < self.body:
                return
            body = bytes(self.buffer[: self.body])
            del self.buffer[: self.body]
            self.body = -1
            self._answer(body)

    def _read_head(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        self.head = bytes(self.buffer[:end])
        del self.buffer[: end + 4]
        at = self.head.lower().find(b"\r\ncontent-length:")
        self.body = int(self.head[at + 17 :].split(b"\r", 1)[0]) if at >= 0 else 0
        return True

    def _answer(self, body: bytes) -> None:
        server = self.server
        method, path, _ = self.head.split(b" ", 2)
        fault = server.fault() if method == b"POST" else ""
        if fault:
            server.counts[fault] += 1
            if fault == "hang":
                return
        status, text, seconds = server.reply(path.decode("latin-1").partition("?")[0], body)
        if fault in ("500", "503"):
            status, text = (
                int(fault),
                b'{"object":"error","message":"The request queue is full.","code":%d}' % int(fault),
            )
        answer = _HEAD % (status, _PHRASES[status], len(text), text)
        if fault in ("drop", "cut"):
            self.loop.call_later(seconds, self._lose, answer[: len(answer) // 2] if fault == "cut" else b"")
            return
        if not seconds:
            self.transport.write(answer)
            return
        server.waiting += 1
        server.most = max(server.most, server.waiting)
        self.loop.call_later(seconds, self._send, answer)

    def _send(self, answer: bytes) -> None:
        self.server.waiting -= 1
        if not self.transport.is_closing():
            self.transport.write(answer)

    def _lose(self, part: bytes) -> None:
        if part and not self.transport.is_closing():
            self.transport.write(part)
        self.transport.close() if part else self.transport.abort()


async def serve(server: Server, told: Callable[[int], None]) -> None:
    """Listen on a free port of this machine, tell it, and serve until standard input ends."""
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server, loop), "127.0.0.1", 0, backlog=16384)
    told(listening.sockets[0].getsockname()[1])
    await loop.run_in_executor(None, sys.stdin.read)
    listening.close()
    for connection in list(server.open):
        connection.transport.abort()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.server", description=__doc__)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds (default 0.02)")
    for name in ("errors", "hangs", "drops"):
        parser.add_argument(f"--{name}", type=float, default=0.0, help="share of the requests (default 0)")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    server = Server(asked.latency, Faults(asked.errors, asked.hangs, asked.drops, asked.seed))
    with contextlib.suppress(KeyboardInterrupt):
        _run(serve(server, lambda port: print(port, flush=True)))


def _run(work: Any) -> None:
    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(work)
    else:
        uvloop.run(work)


if __name__ == "__main__":
    main()
