"""A finished game as its row in the store tells it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from arena.episode import Episode
from arena.registry import make_game
from arena.tournaments.conduct import Conduct
from arena.tournaments.schedule import Fixture

__all__ = ["json_of", "roles_of", "row_of", "teams_of"]


def json_of(value: Any) -> str:
    """As columns keep it."""
    return msgspec.json.encode(value).decode()


def row_of(
    fixture: Fixture,
    entry: int,
    agents: Sequence[int],
    seats: Sequence[int],
    episode: Episode,
    conducts: Sequence[Conduct],
) -> dict[str, Any]:
    """All columns of `games` but `seq`. `entry` and `agents` (of `seats`) are the store's numbers."""
    return {
        "id": fixture.id,
        "block": fixture.block,
        "entry": entry,
        "seed": fixture.seed,
        "rotation": fixture.rotation,
        "repetition": fixture.repetition,
        "agents": json_of(agents),
        "returns": json_of([(episode.returns or ())[seat] for seat in seats]),
        "forfeits": json_of([at for at, seat in enumerate(seats) if seat in episode.forfeits]),
        "outcome": episode.outcome,
        "reason": episode.reason,
        "plies": episode.turns[-1].ply + 1 if episode.turns else 0,
        "digest": episode.turns[-1].hash if episode.turns else "",
        "conduct": json_of([counted.numbers() for counted in conducts]),
        "started": episode.started,
        "ended": episode.ended,
        "roles": roles_of(episode, seats),
        "teams": teams_of(episode, seats),
    }


def roles_of(episode: Episode, seats: Sequence[int]) -> str:
    """The column `roles`."""
    roles = [episode.seats[seat].role for seat in seats]
    return json_of(roles if any(roles) else [])


def teams_of(episode: Episode, seats: Sequence[int]) -> str:
    """The column `teams`. The deal may decide them, so the game is dealt again."""
    teams = make_game(episode.env, episode.seed, episode.options).teams() if len(seats) > 2 else None
    return json_of([] if teams is None else [teams[seat] for seat in seats])
