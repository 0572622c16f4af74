"""Turns and episodes as plain rows, for `datasets`, pandas, DuckDB and whoever reads parquet."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import EpisodeError, Turn
from arena.game import LiveGame
from arena.registry import load
from arena.replaying import positions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Episodes", "Turns"]


def _text(value: Any) -> str:
    """JSON, keys sorted."""
    return msgspec.json.encode(value, order="deterministic").decode()


class Turns(Format):
    """A row for each turn of a seat.

    `action`: what was played; `raw`: the last reply, as it came; `verdict` and `reason`: of that reply; `attempts`: how
    many replies there were. An empty verdict: the seat was not asked, since it had forfeited.

    Options:
        legal: list the legal actions, for which every match is replayed; null where any text may be one
    """

    name = "turns"
    consumer = "datasets, pandas, DuckDB"
    checked = "loaded with datasets 5.2.0"
    ids = Format.ids | {"latency"}

    def __init__(self, legal: bool = True) -> None:
        self.legal = legal

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for trajectory in unit:
            shared = _of(trajectory)
            listed = _legal(trajectory) if self.legal else {}
            for at, turn in enumerate(trajectory.turns):
                yield {**shared, "turn": at, **_turn(turn), "legal": listed.get(at)}

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        texts = ("episode", "env", "options", "task_id", "group_id", "role", "agent", "observation", "action", "raw")
        kinds = dict.fromkeys((*texts, "reasoning", "verdict", "reason", "outcome"), pa.string())
        kinds |= dict.fromkeys(("opponents", "events", "legal"), pa.list_(pa.string()))
        kinds |= dict.fromkeys(("seat", "turn", "ply", "attempts"), pa.int32())
        kinds |= dict.fromkeys(("reward", "return", "latency"), pa.float64()) | {"seed": pa.uint64()}
        return pa.schema([pa.field(name, kinds[name]) for name in _COLUMNS])


_COLUMNS = (
    "episode", "env", "options", "seed", "task_id", "group_id", "seat", "role", "agent", "opponents", "outcome",
    "return", "turn", "ply", "events", "observation", "legal", "action", "raw", "reasoning", "verdict", "reason",
    "attempts", "reward", "latency",
)  # fmt: skip


def _of(trajectory: Trajectory) -> Row:
    """Whose turns they are."""
    episode = trajectory.episode
    return {
        "episode": episode.id,
        "env": episode.env,
        "options": _text(episode.options),
        "seed": episode.seed,
        "task_id": trajectory.task_id,
        "group_id": trajectory.group_id,
        "seat": trajectory.player,
        "role": trajectory.role,
        "agent": trajectory.agent,
        "opponents": list(trajectory.opponents),
        "outcome": episode.outcome,
        "return": None if episode.returns is None else trajectory.reward,
    }


def _turn(turn: Turn) -> Row:
    last = turn.attempts[-1] if turn.attempts else None
    return {
        "ply": turn.ply,
        "events": list(turn.events),
        "observation": turn.observation,
        "action": turn.action,
        "raw": last.raw if last else None,
        "reasoning": last.reasoning if last else None,
        "verdict": last.verdict if last else "",
        "reason": last.reason if last else "",
        "attempts": len(turn.attempts),
        "reward": turn.reward,
        "latency": sum(attempt.latency for attempt in turn.attempts),
    }


def _legal(trajectory: Trajectory) -> dict[int, list[str]]:
    """The legal actions at each turn of the seat that has a list."""
    found: dict[int, list[str]] = {}
    try:
        if issubclass(load(trajectory.episode.env), LiveGame):
            return found
        at = 0
        for position in positions(trajectory.episode):
            for turn in position.turns:
                if turn.seat == trajectory.player:
                    legal = position.state.legal_actions(turn.seat)
                    if legal is not None:
                        found[at] = list(legal)
                    at += 1
    except (EpisodeError, ValueError) as error:
        raise Lacking(f"episode {trajectory.episode.id}: {error} (legal=false does without the replay)") from error
    return found


class Episodes(Format):
    """A row for each episode: who sat where, what was played, what came of it.

    Of an export of some seats only, an episode that has any of them is there as a whole.

    Options:
        record: the whole record as JSON, from which `arena.episode` makes the episode again
    """

    name = "episodes"
    consumer = "datasets, pandas, DuckDB"
    checked = "loaded with datasets 5.2.0"
    ids = Format.ids | {"seconds"}
    unit = "episode"

    def __init__(self, record: bool = False) -> None:
        self.record = record

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for episode in {id(trajectory.episode): trajectory.episode for trajectory in unit}.values():
            row: Row = {
                "episode": episode.id,
                "env": episode.env,
                "options": _text(episode.options),
                "seed": episode.seed,
                "outcome": episode.outcome,
                "reason": episode.reason,
                "agents": [seat.agent for seat in episode.seats],
                "roles": [seat.role for seat in episode.seats],
                "returns": None if episode.returns is None else list(episode.returns),
                "forfeits": list(episode.forfeits),
                "plies": episode.turns[-1].ply + 1 if episode.turns else 0,
                "seats": [turn.seat for turn in episode.turns],
                "actions": [turn.action for turn in episode.turns],
                "seconds": episode.ended - episode.started,
                "parent": episode.parent,
                "fork": episode.fork,
            }
            yield row | ({"record": msgspec.json.encode(episode).decode()} if self.record else {})

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        text, number, texts = pa.string(), pa.int32(), pa.list_(pa.string())
        columns = {
            **dict.fromkeys(("episode", "env", "options"), text),
            "seed": pa.uint64(),
            **dict.fromkeys(("outcome", "reason"), text),
            **dict.fromkeys(("agents", "roles"), texts),
            "returns": pa.list_(pa.float64()),
            "forfeits": pa.list_(number),
            "plies": number,
            "seats": pa.list_(number),
            "actions": texts,
            "seconds": pa.float64(),
            "parent": text,
            "fork": number,
            **({"record": text} if self.record else {}),
        }
        return pa.schema(list(columns.items()))
