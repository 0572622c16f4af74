"""How the command line says that something cannot be done: in one line, without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

__all__ = ["Failure", "naming", "plain", "refusing"]


def plain(text: str) -> str:
    """The text as a terminal may show it: control, format and other unprintable characters as escapes."""
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])


class Failure(click.ClickException):
    """It was asked for rightly, but did not work: exit code 1."""


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Errors of the file system that name no file (a full disk) are about this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def refusing() -> Iterator[None]:
    """A ValueError or StoreError inside is the user's: one line and exit code 2."""
    from arena.tournaments.store import StoreError

    try:
        yield
    except (ValueError, StoreError) as error:
        raise click.UsageError(str(error)) from error
