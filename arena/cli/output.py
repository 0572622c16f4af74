"""Where commands write."""

import shlex
import shutil
import sys
from pathlib import Path

from rich.console import Console

__all__ = ["program", "stdout"]

_PIPED = 140  # columns where there is no terminal to ask


def stdout() -> Console:
    """Standard output; a pipe is taken for a wide terminal, so that names are not cut."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _PIPED)


def program() -> str:
    """How to call this program again: `arena` where a shell finds the one that runs, else its path."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m arena"
    if called.stem != "arena" or not called.exists():
        return "arena"
    found = shutil.which("arena")
    return "arena" if found is not None and called.samefile(found) else shlex.quote(sys.argv[0])
