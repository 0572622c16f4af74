"""What went wrong with a request, and what to do about it: one line, with no secret in it."""

import math
import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import aiohttp
import msgspec

from arena.adapters.models.keys import masked
from arena.model import ContextOverflow, ModelError
from arena.text import mask_secrets

__all__ = ["OVERFLOW", "Failure", "broken_connection", "one_line", "refused", "retry_after"]

LONGEST = 300
"""Characters of a server's own message that are shown."""
AGAIN = frozenset({408, 429, 500, 502, 503, 504})
BUSY = frozenset({429, 503, 504})
OVERFLOW = re.compile(
    r"context[ _-]?(?:length|size|window)|maximum (?:allowed|input) length|(?:prompt|input) is too long",
    re.IGNORECASE,
)
NO_ROUTE = re.compile(r"(?:<.*|(?:40[45]:? )?(?:page |url )?(?:not found|method not allowed)\.?)?$", re.IGNORECASE)
"""What servers say of a route that is not there, and not of a model."""


class Failure(NamedTuple):
    """One attempt that gave no answer."""

    line: str
    status: int = 0
    again: bool = False
    """Another attempt may help."""
    busy: bool = False
    """The server has too much to do."""
    down: bool = False
    """The endpoint is set aside for a while."""
    running: bool = False
    """The server may still be at work on it."""
    wait: float | None = None
    """Seconds the server asked to wait."""
    overflow: bool = False

    def error(self, attempts: int) -> ModelError:
        """The error to raise after so many attempts."""
        times = f" (asked {attempts} times)" if attempts > 1 else ""
        error = (ContextOverflow if self.overflow else ModelError)(f"{self.line}{times}")
        error.status = self.status
        return error


def one_line(text: str) -> str:
    """A server's text made fit for an error message: one short line without control characters, keys and secrets."""
    text = masked(text)[: 8 * LONGEST]
    printable = "".join(char if char.isprintable() else " " for char in text)
    line = mask_secrets(" ".join(printable.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def said(body: bytes) -> str:
    """The message in the body of a refusal, in whichever of the usual ways it was written."""
    text = masked(body.decode(errors="replace"))[: 64 * LONGEST]
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(key):
            inner = found[key]
            found = inner if key != "error" or isinstance(inner, dict) else str(inner)
    return found if isinstance(found, str) else text


def retry_after(value: str | None, now: float | None = None) -> float | None:
    """The seconds a Retry-After header asks for: a number or an HTTP date (RFC 9110, 10.2.3). None: it says nothing.

    >>> retry_after("1.5"), retry_after("Fri, 31 Dec 1999 23:59:59 GMT", now=946684795.0), retry_after("soon")
    (1.5, 4.0, None)
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if not math.isnan(seconds) else None


def refused(
    base: str, path: str, status: int, headers: Mapping[str, str], body: bytes, env: str, *, named: bool = True
) -> Failure:
    """The server answered, but not with what was asked.

    `env`: the variable that holds the key. `named`: the key was sent, as the server is one that the user named.
    """
    message = one_line(said(body))
    if status in {401, 403}:
        if env and not named:
            why = "which is sent only to servers you name, and this one was named by a router"
            return Failure(f"{base} asks for a key ({status}: {message}), {why}: name it in the router's place", status)
        what = f"set the environment variable named in api_key_env={env or '...'}"
        return Failure(f"{base} {'refused the key' if env else 'asks for a key'} ({status}: {message}): {what}", status)
    if 300 <= status < 400:
        to = one_line(headers.get("Location", "elsewhere"))
        return Failure(f"{base}{path} is now at {to} ({status}): name that server", status)
    if status in {404, 405} and NO_ROUTE.match(message):
        if base.endswith("/v1"):
            return Failure(f"{base} has no {path} ({status}): leave out /v1", status)
        return Failure(f"{base} has no {path} ({status}): is it the right kind of server, and its base URL?", status)
    line = f"{base}{path} answers {status}: {message or 'without a word'}"
    return Failure(
        line,
        status,
        again=status in AGAIN,
        busy=status in BUSY,
        wait=retry_after(headers.get("Retry-After")),
        overflow=status in {400, 413, 422} and OVERFLOW.search(message) is not None,
    )


def broken_connection(base: str, error: Exception) -> Failure:
    """There was no whole answer; a TimeoutError says how long it was waited for."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Failure(f"cannot connect safely to {base}: {one_line(str(error))}", down=True)
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        why = one_line(os.strerror(number) if number and number > 0 else str(error.os_error))
        line = f"cannot connect to {base}: {why}: is the server up, and the address right?"
        return Failure(line, again=True, down=True)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Failure(f"cannot connect to {base} in time (connect_seconds)", again=True, busy=True, down=True)
    if isinstance(error, TimeoutError):
        return Failure(f"{base}: {error}", again=True, busy=True, down=True, running=True)
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return Failure(f"{base}: not an address that can be asked")
    why = one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    return Failure(f"{base}: the connection broke off ({why})", again=True, down=True, running=True)
