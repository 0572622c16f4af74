"""Where commands write."""

import sys

from rich.console import Console

__all__ = ["stdout"]

_PIPED = 140  # columns where there is no terminal to ask


def stdout() -> Console:
    """Standard output; a pipe is taken for a wide terminal, so that names are not cut."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _PIPED)
