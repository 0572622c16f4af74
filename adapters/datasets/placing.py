"""Placing: a folder or file gets its name when all of it is written, and is not there before."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

__all__ = ["placed"]

_PARTIAL = ".partial"


@contextmanager
def placed(out: Path) -> Iterator[Path]:
    """A hidden path beside `out`, for a file or folder to be made at; it is moved to `out` at the end.

    Where anything fails, Ctrl-C included, it is removed. What a killed process left is removed by the next that
    writes to the same `out`. Raises ValueError for a file or a folder with something in it at `out`.
    """
    refuse(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    _sweep(out)
    room = out.with_name(f".{out.name}.{token_hex(4)}{_PARTIAL}")
    room.mkdir()
    mark = _hold(room)
    try:
        yield room / out.name
        refuse(out)
        os.replace(room / out.name, out)  # noqa: PTH105 - over an empty folder too
    finally:
        shutil.rmtree(room, ignore_errors=True)
        if mark is not None:
            os.close(mark)


def refuse(out: Path) -> None:
    """Raise ValueError where something is at `out` that is no empty folder."""
    if out.is_dir():
        if any(out.iterdir()):
            raise ValueError(f"{out} is not empty; name a new folder")
    elif out.exists():
        raise ValueError(f"{out} exists; name a new one")


def _hold(room: Path) -> int | None:
    """A lock on the folder, which ends with this process; None: this system has none, or another holds it."""
    try:
        import fcntl
    except ImportError:  # Windows: what was left stays
        return None
    mark = os.open(room, os.O_RDONLY)
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(mark)
        return None
    return mark


def _sweep(out: Path) -> None:
    """Remove what processes that are no more have left."""
    for room in out.parent.glob(f".{_escaped(out.name)}.????????{_PARTIAL}"):
        with suppress(OSError):
            mark = _hold(room)
            if mark is not None:
                shutil.rmtree(room, ignore_errors=True)
                os.close(mark)


def _escaped(name: str) -> str:
    return "".join([f"[{char}]" if char in "*?[" else char for char in name])
