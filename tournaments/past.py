"""What a store's tournament has come to, for who only reads it: the history that schedules and their standings see."""

import sqlalchemy as sa

from arena.tournaments import scanning, tables
from arena.tournaments.board import Standings
from arena.tournaments.history import History
from arena.tournaments.integrity import key_of
from arena.tournaments.schedules import Tie, bracket, standings
from arena.tournaments.store import Store
from arena.tournaments.terms import Knockout, Stop, Swiss

__all__ = ["past", "places", "rule"]


def past(store: Store) -> History:
    """All finished games, in the order in which they were stored."""
    tournament = store.tournament()
    history = History(tournament)
    games = {key_of(entry): number for number, entry in enumerate(tournament.games)}
    agents = {name: number for number, name in enumerate(tournament.identities())}
    with store.engine.connect() as connection:
        known = connection.execute(sa.select(tables.agents.c.id, tables.agents.c.identity)).all()
        entries = connection.execute(
            sa.select(tables.entries.c.id, tables.entries.c.env, tables.entries.c.options)
        ).all()
        numbers = (
            {row.id: games[row.env, row.options] for row in entries if (row.env, row.options) in games},
            {row.id: agents[row.identity] for row in known if row.identity in agents},
        )
        for result in scanning.results(connection, store.database, 0, numbers)[0]:
            history.add(result)
    return history


def rule(store: Store) -> str:
    """The stopping rule that holds, or how far it is to the next one, in words; "": there is none."""
    from arena.tournaments.stopping import Spent, Stopping

    asked = store.tournament()
    if asked.stop == Stop():
        return ""
    spent, rules = store.spent(), Stopping(asked)
    return rules.reached(past(store), Spent(spent.games, spent.tokens, spent.dollars)) or rules.far


def places(store: Store) -> list[Standings]:
    """The standings of a Swiss tournament or the bracket of a knockout; [] of another schedule.

    Agents are numbers of the board (the store's order).
    """
    tournament = store.tournament()
    schedule = tournament.schedule
    if not isinstance(schedule, Swiss | Knockout):
        return []
    history, listed = past(store), list(store.agents().values())
    board = [listed.index(entry.name) for entry in tournament.agents]
    return [_swiss(history, board) if isinstance(schedule, Swiss) else _knockout(history, board)]


def _swiss(history: History, board: list[int]) -> Standings:
    rows: list[tuple[int, tuple[str, ...]]] = [
        (board[place.agent], (f"{place.points:g}", f"{place.opponents:g}", str(place.byes)))
        for place in standings(history)
    ]
    return Standings("All games", "Swiss", ("agent", "points", "opponents' points", "byes"), rows)


def _knockout(history: History, board: list[int]) -> Standings:
    stages = [tuple([_tie(tie, board) for tie in stage]) for stage in bracket(history)]
    return Standings("All games", "Knockout", ("agent",), [], tuple(stages))


def _tie(tie: Tie, board: list[int]) -> tuple[int | None, int | None, str]:
    one, other = [None if agent is None else board[agent] for agent in tie.agents]
    result = f"{tie.points[0]:g} : {tie.points[1]:g}" if tie.blocks else ""
    return one, other, f"{result} (third place)".strip() if tie.third else result
