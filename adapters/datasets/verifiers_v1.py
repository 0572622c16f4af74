"""verifiers: a row is an `Episode` of verifiers v1, a `Trace` for each seat, as `vf-eval` appends them to traces.jsonl.

Fields as verifiers 0.4.0 has them (v1/episode.py: Episode; v1/trace.py: Trace, ModelCall; v1/graph.py: MessageNode).
Written as `traces`, a split is a folder with a traces.jsonl that `verifiers.v1.utils.trace_store.read_episodes` reads;
prime-rl makes its training samples of such traces, one of each path from a root to a leaf.

A node holds the tokens that its message adds. Of a prompt on record it is not known which token belongs to which
message (that takes the model's tokenizer), nor where the opening of the answer begins: all that is new in a prompt is
at its last message, and messages before it have none. A path's tokens are exactly those of prompt and answers; a
conversation that is written anew is another path. A seat whose tokens are not on record in full has none at all, is not
`trainable`, and `info.lacking` says why. When a message was written is not on record: all have the episode's start.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from arena.adapters.datasets.chat import exchanges
from arena.adapters.datasets.columns import check_choice
from arena.adapters.datasets.format import Format, Row, Rows
from arena.adapters.datasets.graph import Graph, Known, tool
from arena.adapters.datasets.tokens import Kinds, Lacking, segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.datasets.writers import Lines
from arena.version import __version__

__all__ = ["Traces", "Verifiers"]

TRACES = "traces.jsonl"
_VERSION = 1  # of verifiers' trace schema


class Traces:
    """A folder with a traces.jsonl."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._lines = Lines(folder / TRACES)

    def write(self, row: Row) -> None:
        """See `Rows.write`."""
        self._lines.write(row)

    def close(self) -> None:
        """See `Rows.close`."""
        self._lines.close()


class Verifiers(Format):
    """Rows that are Episodes of verifiers v1, with a trace for each seat that passes the filters.

    Options:
        env_name: what the trainer calls the environment; "": nothing is said.
        tokens: refuse a seat without tokens and log-probabilities; else it is there as text, not trainable.
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
    """

    name = "verifiers"
    consumer = "verifiers 0.4.0 v1 Episode (traces.jsonl), prime-rl"
    checked = "loaded with verifiers 0.4.0"
    unit = "episode"
    files = ("traces", "jsonl", "jsonl.zst")

    def __init__(self, env_name: str = "", tokens: bool = False, kinds: Kinds = "own") -> None:
        check_choice("kinds", kinds, "own", "any")
        self.env_name, self.tokens, self.kinds = env_name, tokens, kinds

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`. A seat that was never asked has no trace."""
        traces = [trace for each in unit if (trace := self._trace(each))]
        if not traces:
            return
        episode = unit[0].episode
        row: Row = {
            "id": episode.id,
            "env": {"id": f"arena/{episode.env}"} | ({"name": self.env_name} if self.env_name else {}),
            "task": _task(unit[0]),
            "group": {"id": unit[0].table_id},
            "ok": True,
            "errors": [],
            "traces": traces,
        }
        if episode.match_id:
            row["run"] = {"type": "eval", "id": episode.match_id}
        yield row

    def writer(self, kind: str, folder: Path) -> Rows:
        """See `Format.writer`."""
        return Traces(folder)

    def _trace(self, trajectory: Trajectory) -> dict[str, Any] | None:
        known, lacking = self._known(trajectory)
        graph = Graph(trajectory, known)
        for exchange in exchanges(trajectory):
            graph.add(exchange)
        if not graph.nodes:
            return None
        return {
            "version": _VERSION,
            "id": trajectory.id,
            "verifiers": {"version": f"none: gymnasium-arena {__version__}"},
            "task": _task(trajectory),
            "agent": _agent(trajectory, trainable=bool(known) and trajectory.policy.trainable),
            "tools": [tool(each) for each in graph.tools],
            "nodes": graph.nodes,
            "calls": graph.calls,
            "rewards": {"return": {"score": trajectory.reward, "weight": 1.0}},
            "metrics": _metrics(trajectory),
            "info": _info(trajectory) | ({"lacking": lacking} if lacking else {}),
            "is_completed": True,
            "ok": True,
            "stop_condition": _stop(trajectory),
            "errors": [],
            "timing": _timing(trajectory),
        }

    def _known(self, trajectory: Trajectory) -> tuple[Known, str]:
        """The sequences and answers on record, by the attempt that an answer is of; none, and why not."""
        try:
            found = segments(trajectory, kinds=self.kinds)
        except Lacking as error:
            if self.tokens:
                raise
            return {}, str(error)
        spans = [(segment, span) for segment in found for span in segment.spans]
        return {id(span.attempt): (segment, span) for segment, span in spans}, ""


def _task(trajectory: Trajectory) -> dict[str, Any]:
    episode = trajectory.episode
    data = {
        "id": trajectory.task_id,
        "name": episode.env,
        "env": episode.env,
        "seed": episode.seed,
        "options": episode.options,
    }
    return {"type": episode.env, "data": data, "key": trajectory.task_id}


def _agent(trajectory: Trajectory, *, trainable: bool) -> dict[str, Any]:
    """Who sat there. The role is the agent's name: prime-rl keeps a baseline for each of those."""
    config: dict[str, Any] = {"runtime": {"type": "subprocess"}}
    if trajectory.policy.model:
        config["model"] = trajectory.policy.model
    return {"config": config, "name": trajectory.role, "trainable": trainable}


def _metrics(trajectory: Trajectory) -> dict[str, float]:
    """Named parts of the return, and how the seat behaved."""
    episode, player = trajectory.episode, trajectory.player
    scores = episode.scores[player] if episode.scores else {}
    wrong = sum(attempt.verdict != "legal" for _, attempt in trajectory.attempts)
    return {
        **scores,
        "turns": float(len(trajectory.turns)),
        "wrong_replies": float(wrong),
        "forfeited": float(trajectory.forfeited),
    }


def _info(trajectory: Trajectory) -> dict[str, Any]:
    """What a trace has no field for. Of the other seats it tells the agents' names, nothing else."""
    episode = trajectory.episode
    info = {
        "seat": trajectory.player,
        "role": trajectory.role,
        "agent": trajectory.agent,
        "opponents": list(trajectory.opponents),
        "group_id": trajectory.group_id,
        "sample": episode.sample,
        "outcome": episode.outcome,
        "reason": episode.reason,
        "advantage": trajectory.advantage,
        "weight_version": trajectory.policy.weight_version,
        "tokenizer_hash": trajectory.policy.tokenizer_hash,
        "template_hash": trajectory.policy.template_hash,
    }
    return {key: value for key, value in info.items() if value not in ("", None)}


def _stop(trajectory: Trajectory) -> str:
    """What ended it; "max_turns" is verifiers' own name."""
    if trajectory.forfeited:
        return "forfeit"
    if not trajectory.truncated:
        return "agent_completed"
    return "max_turns" if trajectory.episode.reason.endswith("plies were played") else "truncated"


def _timing(trajectory: Trajectory) -> dict[str, Any]:
    """Seconds since the epoch; of the model's time, what the attempts took."""
    start, end = trajectory.episode.started, trajectory.episode.ended
    model = sum(attempt.latency for _, attempt in trajectory.attempts)
    agent = {"start": start, "end": end, "model": {"duration": model}}
    return {"start": start, "agent": agent | {"harness": {"duration": max(0.0, end - start - model)}}}
