"""Server-sent events, as far as model servers use them: the payloads of `data:` lines.

Format: WHATWG HTML, "Server-sent events". One payload a line is all that model servers send.
"""

from collections.abc import AsyncIterable, AsyncIterator

import aiohttp

__all__ = ["payloads"]


async def payloads(parts: AsyncIterable[bytes], most: int) -> AsyncIterator[bytes]:
    """The payloads of `data:` lines until [DONE] or the end. Raises ClientPayloadError after `most` bytes."""
    rest = bytearray()
    async for part in parts:
        most -= len(part)
        if most < 0:
            raise aiohttp.ClientPayloadError("an endless answer")
        searched = len(rest)
        rest += part
        if rest.find(b"\n", searched) < 0:
            continue
        *lines, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in lines:
            payload = line[5:].strip() if line.startswith(b"data:") else b""
            if payload == b"[DONE]":
                return
            if payload:
                yield payload
    if rest.startswith(b"data:") and (payload := bytes(rest[5:]).strip()) not in {b"", b"[DONE]"}:
        yield payload
