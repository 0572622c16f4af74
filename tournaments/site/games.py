"""The list of the games of one section: searched and paged by a script, whole without it."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from arena.tournaments.board import Board, Section
from arena.tournaments.site import look
from arena.tournaments.site.listing import Listed
from arena.tournaments.site.pages import Link, links

__all__ = ["games_page"]


class _Line(NamedTuple):
    id: str
    address: str
    """Of its replay, "" where there is none."""
    seats: list[tuple[str, bool, bool]]
    """Name, whether it earned the most, whether it forfeited."""
    agents: str
    result: str
    plies: int
    seed: int
    ended: str
    marks: list[str]


def games_page(
    board: Board, number: int, games: Sequence[Listed], replays: Collection[str] = (), *, live: str = ""
) -> str:
    """The games of section `number` (from 1), those in `replays` linked to `game/<id>.html`.

    A link may ask for two agents (`#a=0&b=3`, numbers in `Board.agents`) or a word (`#q=forfeit`).
    """
    section = board.sections[number - 1]
    others = [Link(f"games-{k}.html", one.label, k == number) for k, one in enumerate(board.sections, 1)]
    return look.render(
        "games.html.j2",
        scripts=["games.js"],
        live=live,
        board=board,
        section=section,
        links=links(board, f"games-{number}", games=True),
        others=others if len(others) > 1 else [],
        games=[_line(board, game, replays) for game in games],
        agents=_agents(board, section),
        played=section.games,
        shown=sum(game.id in replays for game in games),
    )


def _agents(board: Board, section: Section) -> list[tuple[int, str]]:
    return sorted([(row.agent, board.agents[row.agent].name) for row in section.rows], key=lambda one: one[1])


def _line(board: Board, game: Listed, replays: Collection[str]) -> _Line:
    best = max(game.returns, default=0.0)
    alone = len(set(game.returns)) > 1
    seats = [
        (board.agents[agent].name, alone and earned == best, at in game.forfeits)
        for at, (agent, earned) in enumerate(zip(game.agents, game.returns, strict=True))
    ]
    marks = [*(["forfeit"] if game.forfeits else []), *(["truncated"] if game.truncated else [])]
    when = datetime.fromtimestamp(game.ended, UTC).strftime("%Y-%m-%d %H:%M") if 0 < game.ended < 1e11 else ""
    return _Line(
        game.id,
        f"game/{game.id}.html" if game.id in replays else "",
        seats,
        " ".join(map(str, game.agents)),
        " : ".join(map(look.signed, game.returns)),
        game.plies,
        game.seed,
        when,
        marks,
    )
