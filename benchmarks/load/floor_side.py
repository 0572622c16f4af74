"""Bare aiohttp and msgspec at recorded calls: `python -m benchmarks.load.floor_side URL CALLS`."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yarl

from benchmarks.load.calls import load
from benchmarks.load.meter import Meter, files

_TURNS = frozenset({"/generate", "/v1/chat/completions"})


class Meta(msgspec.Struct):
    output_token_logprobs: list[tuple[float, int, str | None]] = []


class Said(msgspec.Struct):
    content: str


class Choice(msgspec.Struct):
    message: Said


class Answer(msgspec.Struct):
    """What is read of an answer, on whichever route."""

    text: str = ""
    output_ids: list[int] = []
    meta_info: Meta | None = None
    choices: list[Choice] = []
    tokens: Any = None


_decode = msgspec.json.Decoder(Answer).decode


async def _match(session: aiohttp.ClientSession, calls: Sequence[tuple[yarl.URL, bytes]]) -> None:
    for url, body in calls:
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
            answer.raise_for_status()
            _decode(await answer.read())


async def main(url: str, path: str) -> None:
    """Print one measurement."""
    recorded = load(Path(path))
    files(len(recorded) + 256)
    urls = {call.path: yarl.URL(url + call.path) for calls in recorded for call in calls}
    matches = [[(urls[call.path], call.body) for call in calls] for calls in recorded]
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
    ) as session:
        await asyncio.gather(*[_match(session, matches[0][:1]) for _ in matches])
        meter = Meter()
        await asyncio.gather(*[_match(session, calls) for calls in matches])
        turns = sum(call.path in _TURNS for calls in recorded for call in calls)
        meter.tell(turns, calls=sum(map(len, recorded)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
