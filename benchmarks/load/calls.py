"""What recorded matches asked of their model, and over HTTP, to be asked again by others."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from arena.model import Message, Request

__all__ = ["Asked", "Call", "load", "load_asked", "save"]


class Call(msgspec.Struct, frozen=True, array_like=True):
    """One POST."""

    path: str
    body: bytes


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """One `Model.complete`, or without a request one `Model.render`."""

    request: Request | None = None
    messages: tuple[Message, ...] = ()


def save(path: Path, matches: Sequence[Sequence[Call]] | Sequence[Sequence[Asked]]) -> None:
    """Keep what each match asked, in order."""
    path.write_bytes(msgspec.msgpack.encode(matches))


def load(path: Path) -> list[list[Call]]:
    """The calls that `save` kept."""
    return msgspec.msgpack.decode(path.read_bytes(), type=list[list[Call]])


def load_asked(path: Path) -> list[list[Asked]]:
    """The questions that `save` kept."""
    return msgspec.msgpack.decode(path.read_bytes(), type=list[list[Asked]])
