"""The bundled English word lists: selections from SCOWL, whose licence lies beside them (LICENSE-SCOWL.txt)."""

from functools import cache
from pathlib import Path

from arena.game import Action, Actions

__all__ = ["LENGTHS", "answers", "guesses"]

LENGTHS = (4, 5, 6)


@cache
def answers(length: int) -> tuple[Action, ...]:
    """Common words of this length, in order: those one may be asked to find. Read when first asked for."""
    return _read(f"answers-{length}.txt")


@cache
def guesses(length: int) -> Actions:
    """Every word of this length, in order, the answers among them. Read when first asked for."""
    return Actions(_read(f"guesses-{length}.txt"))


def _read(name: str) -> tuple[str, ...]:
    return tuple(Path(__file__).with_name(name).read_text(encoding="ascii").split())
