"""How the command line says that something cannot be done: in one line, without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["Failure", "refusing"]


class Failure(click.ClickException):
    """It was asked for rightly, but did not work: exit code 1."""


@contextmanager
def refusing() -> Iterator[None]:
    """A ValueError or StoreError inside is the user's: one line and exit code 2."""
    from arena.tournaments.store import StoreError

    try:
        yield
    except (ValueError, StoreError) as error:
        raise click.UsageError(str(error)) from error
