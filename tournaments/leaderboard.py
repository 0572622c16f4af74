"""The leaderboard as one HTML file: no script, no network, nothing but itself; names in it are hostile text.

The same tables as the pages of `arena.tournaments.site`, which has games and replays too.
"""

from pathlib import Path

from arena.tournaments.board import Board
from arena.tournaments.site.pages import command
from arena.tournaments.site.pages import one_page as html

__all__ = ["command", "html", "write_html"]


def write_html(board: Board, path: str | Path) -> Path:
    """Write the page; its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html(board), encoding="utf-8")
    return path
