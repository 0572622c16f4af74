"""Finished games in Portable Game Notation, where the game itself can write it (`Game.pgn`)."""

import time
from collections.abc import Iterator

from arena.episode import Episode
from arena.game import Game
from arena.registry import load, make_game
from arena.tournaments.store import Store

__all__ = ["games_pgn", "has_pgn", "pgn"]

_LATE = "time forfeit"
_WRONG = "rules infraction"


def has_pgn(env: str) -> bool:
    """Whether games of this id can be written so. Raises ValueError for an unknown id."""
    return load(env).pgn is not Game.pgn


def games_pgn(store: Store, event: str = "") -> Iterator[str]:
    """All finished games that have a notation, in the order of the ids, one text each."""
    entries = [key for key, entry in store.entries().items() if has_pgn(entry.id)]
    if not entries:
        return
    for kept in store.kept("", entries):
        text = pgn(kept.episode, {"Event": event or "?", "GameId": kept.id})
        if text is not None:
            yield text


def pgn(episode: Episode, tags: dict[str, str] | None = None) -> str | None:
    """One finished game; None where its game has no notation.

    A forfeit is told by Result and Termination ("rules infraction", "time forfeit"); a truncated game has no result
    ("*") and is "unterminated". Dates are UTC.
    """
    start = make_game(episode.env, episode.seed, episode.options)
    actions = [turn.action for turn in episode.turns if turn.action is not None]
    facts = {
        "Site": f"Arena {episode.env}",
        "Date": time.strftime("%Y.%m.%d", time.gmtime(episode.started)) if episode.started else "????.??.??",
        "Round": str(episode.seed),
        "Result": _result(episode),
        "Termination": _termination(episode),
    }
    return start.pgn(actions, [seat.agent for seat in episode.seats], {**(tags or {}), **facts})


def _result(episode: Episode) -> str:
    returns = episode.returns
    if episode.outcome != "terminated" or returns is None or len(returns) != 2:
        return "*"
    if len(episode.forfeits) == 1:
        return "0-1" if episode.forfeits == (0,) else "1-0"
    return "1/2-1/2" if returns[0] == returns[1] else "1-0" if returns[0] > returns[1] else "0-1"


def _termination(episode: Episode) -> str:
    if episode.outcome != "terminated":
        return "unterminated"
    if not episode.forfeits:
        return "normal"
    last = [turn.attempts[-1] for turn in episode.turns if turn.seat in episode.forfeits and turn.attempts][-1:]
    return _LATE if any(attempt.reason.startswith("no answer within") for attempt in last) else _WRONG
