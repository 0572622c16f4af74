"""The pages of a board: overall, one for each game, method; or all of it as one."""

from collections.abc import Sequence
from typing import NamedTuple

from arena.tournaments.board import Board, Section
from arena.tournaments.conduct import table
from arena.tournaments.config import dump
from arena.tournaments.ratings import CENTER
from arena.tournaments.site import look
from arena.tournaments.site.chart import Chart, chart, span
from arena.tournaments.site.columns import Column, columns, told

__all__ = ["Download", "Link", "Part", "command", "links", "one_page", "page", "parts"]

HEAT = 40  # agents of a heat map
RESIDUALS = 10
_BRIEF = ("replies", "illegal", "cost")  # columns of how agents answered that a phone has room for


class Part(NamedTuple):
    """One page of the site, one chapter of the page that holds all."""

    key: str
    """The file is `<key>.html`, the anchor `#<key>`."""
    title: str
    kind: str
    """"section", "agents" or "method"."""
    number: int = 0
    """Of its game, from 1; 0: several."""


class Link(NamedTuple):
    """A tab."""

    address: str
    title: str
    here: bool = False


class Download(NamedTuple):
    """A file beside the pages, or why there is none (`path` is "")."""

    path: str
    what: str


def parts(board: Board) -> list[Part]:
    """The pages there are; the first one is the index."""
    many = len(board.sections) > 1
    first = Part("index", "Overall", "section" if board.overall is not None and many else "agents")
    games = [Part(f"game-{k}", section.label, "section", k) for k, section in enumerate(board.sections, 1)]
    method = Part("method", "Method", "method")
    return [first, *games, method] if many else [games[0]._replace(key="index"), method]


def links(board: Board, here: str, *, games: bool) -> list[Link]:
    """The tabs of the site; `games`: whether it has lists of games."""
    tabs = [Link(f"{part.key}.html", part.title, part.key == here) for part in parts(board)]
    listed = [Link("games-1.html", "Games", here.startswith("games"))] if games else []
    return [*tabs[:-1], *listed, tabs[-1]]


def page(
    board: Board, key: str = "index", *, games: bool = False, downloads: Sequence[Download] = (), live: str = ""
) -> str:
    """One page by its key (`parts`).

    `games`: lists of games lie beside it, and it links to them. `live`: the address of server-sent events; at each
    `change` the page fetches itself anew. Raises KeyError for a key that is none.
    """
    shown = {part.key: part for part in parts(board)}[key]
    return _rendered(board, [shown], links(board, key, games=games), games, downloads, live)


def one_page(board: Board) -> str:
    """Everything on one page that needs nothing beside it; it has no games to look into."""
    every = parts(board)
    tabs = [Link(f"#{part.key}", part.title) for part in every]
    return _rendered(board, every, tabs, False, (), "")


def _rendered(
    board: Board, shown: list[Part], tabs: list[Link], games: bool, downloads: Sequence[Download], live: str
) -> str:
    return look.render(
        "page.html.j2",
        live=live,
        board=board,
        parts=[(part, _section(board, part)) for part in shown],
        links=tabs,
        games=games,
        downloads=downloads,
        methods=_methods(board),
        notes=_notes(board, shown),
        command=command(board),
        toml=_toml(board),
        center=CENTER,
        totals=_totals(board),
        order=_order(board),
        told=table(board.conduct),
        brief=_BRIEF,
        columns=_columns,
        said=told,
        charts=_charts,
        span=span,
        heat_most=HEAT,
        residuals_most=RESIDUALS,
        shades=look.SHADES,
    )


def _section(board: Board, part: Part) -> Section | None:
    if part.kind != "section":
        return None
    return board.sections[part.number - 1] if part.number else board.overall


def _totals(board: Board) -> bool:
    """Whether the first table does not tell already what is counted of each agent."""
    if board.overall is None and len(board.sections) == 1:
        return len(board.sections[0].rows) < len(board.agents)
    apart = any(section.ratings is None for section in board.sections)
    return board.overall is None or apart or len(board.overall.rows) < len(board.agents)


def _order(board: Board) -> list[int]:
    """All agents, the best first where there is a table over all games."""
    rated = [row.agent for row in board.overall.rows] if board.overall is not None else []
    return [*rated, *[agent for agent in range(len(board.agents)) if agent not in rated]]


def _columns(section: Section) -> list[Column]:
    return columns(section)


def _charts(section: Section, board: Board) -> list[Chart]:
    """The history for a wide screen and for a narrow one, or nothing."""
    order, names = [row.agent for row in section.rows], [agent.name for agent in board.agents]
    drawn = [chart(section.curve, order, names, width, height) for width, height in ((960, 280), (380, 240))]
    return [one for one in drawn if one is not None]


def command(board: Board) -> str:
    """The command that plays the same tournament again."""
    return "" if board.method is None else board.method.command


def _toml(board: Board) -> str:
    return board.toml or dump(board.tournament)


def _notes(board: Board, shown: list[Part]) -> list[str]:
    """Those of the board; on the page of one game without those that begin with another game's name."""
    own = {board.sections[part.number - 1].label for part in shown if part.number}
    others = tuple([f"{section.label}:" for section in board.sections if section.label not in own])
    alone = len(shown) == 1 and shown[0].number > 0
    return [note for note in board.notes if not (alone and others and note.startswith(others))]


def _methods(board: Board) -> list[str]:
    """The kinds of comparison there are: a paragraph each."""
    sections = [*board.sections, *([board.overall] if board.overall else [])]
    return sorted({section.kind for section in sections})
