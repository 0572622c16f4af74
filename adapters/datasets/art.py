"""ART: a row is a `TrajectoryGroup`, the samples of one seat.

Fields as openpipe-art 0.5.18 has them (trajectories.py: Trajectory, TrajectoryGroup; utils/trajectory_migration.py: its
JSON lines; preprocessing/tokenize.py: what it trains on): `messages_and_choices`, where an answer of the model is a
Choice of OpenAI's chat API, with a log-probability for each token, and everything else a message, on which it does not
train. Its tokenizer takes the ids of an answer from the names of its tokens ("token_id:7"); the rest of the prompt it
renders and tokenizes itself, with its own chat template.

A conversation that was begun anew is a history of its own (`additional_histories`). `deserialize_trajectory_groups` of
ART leaves out histories, tools and metadata of groups; `read_groups` reads all of a file into ART's objects. ART
subtracts the mean of a group's rewards itself: an advantage of the export is in `metrics`.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from arena.adapters.datasets.called import called
from arena.adapters.datasets.chat import Dialogue, Exchange, dialogues
from arena.adapters.datasets.columns import Breaks, check_choice
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Kinds, Lacking, segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import Call
from arena.model import Message

__all__ = ["ART", "read_groups"]


class ART(Format):
    """Rows that are TrajectoryGroups of ART, the samples of one seat in each.

    Options:
        logprobs: False: answers are messages without tokens, of any agent, for `allow_training_without_logprobs`.
        breaks: "rows": a conversation that was begun anew is a history of its own; or "refuse" it.
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
    """

    name = "art"
    consumer = "openpipe-art 0.5.18 TrajectoryGroup"
    checked = "loaded with openpipe-art 0.5.18, and tokenized by it"
    unit = "group"
    files = ("jsonl",)

    def __init__(self, logprobs: bool = True, breaks: Breaks = "rows", kinds: Kinds = "own") -> None:
        check_choice("breaks", breaks, "rows", "refuse")
        check_choice("kinds", kinds, "own", "any")
        self.logprobs, self.breaks, self.kinds = logprobs, breaks, kinds

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`. A seat that was never asked has no trajectory."""
        first, found = unit[0], [made for each in unit if (made := self._trajectory(each))]
        if not found:
            return
        yield {
            "trajectories": found,
            "metadata": {
                "env": first.episode.env,
                "task_id": first.task_id,
                "group_id": first.group_id,
                "role": first.role,
                "agent": first.agent,
            },
        }

    def _trajectory(self, trajectory: Trajectory) -> dict[str, Any] | None:
        found = dialogues(trajectory)
        if not found:
            return None
        where = f"episode {trajectory.episode.id}, seat {trajectory.player}"
        if self.breaks == "refuse" and len(found) > 1:
            raise Lacking(f"{where}: it was asked in {len(found)} conversations (breaks=rows: a history for each)")
        known = self._known(trajectory)
        histories = [_history(each, known) for each in found]
        return {
            **histories[0],
            "additional_histories": histories[1:],
            "reward": trajectory.reward,
            "metrics": _metrics(trajectory),
            "metadata": _metadata(trajectory),
            "logs": [],
        }

    def _known(self, trajectory: Trajectory) -> dict[int, Call]:
        """The model's answers, by the attempt they are of."""
        if not self.logprobs:
            return {}
        found = segments(trajectory, kinds=self.kinds)
        return {id(span.attempt): span.call for segment in found for span in segment.spans}


def _history(dialogue: Dialogue, known: dict[int, Call]) -> dict[str, Any]:
    answers = {answer.at: answer.exchange for answer in dialogue.answers}
    told = [_said(message, answers.get(at), known) for at, message in enumerate(dialogue.messages)]
    return {"messages_and_choices": told, "tools": list(dialogue.tools) or None}


def _said(message: Message, exchange: Exchange | None, known: dict[int, Call]) -> dict[str, Any]:
    """A message, or a Choice where it is an answer whose tokens are on record."""
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        written["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        written["tool_calls"] = [call.openai() for call in called(message)]
    call = known.get(id(exchange.attempt)) if exchange is not None else None
    if call is None:
        return written
    if message.reasoning:
        written["reasoning_content"] = message.reasoning
    tokens = [
        {"token": f"token_id:{token}", "logprob": logprob, "top_logprobs": []}
        for token, logprob in zip(call.completion_ids, call.logprobs, strict=True)
    ]
    return {
        "finish_reason": _finish(call, message),
        "index": 0,
        "logprobs": {"content": tokens, "refusal": None},
        "message": written,
    }


def _finish(call: Call, message: Message) -> str:
    """A value of OpenAI's finish_reason."""
    if call.finish_reason in ("length", "content_filter"):
        return call.finish_reason
    return "tool_calls" if message.tool_calls else "stop"


def _metrics(trajectory: Trajectory) -> dict[str, float]:
    episode = trajectory.episode
    metrics = dict(episode.scores[trajectory.player]) if episode.scores else {}
    metrics |= {"turns": len(trajectory.turns), "legal": float(trajectory.legal)}
    metrics |= {"truncated": float(trajectory.truncated), "duration": max(0.0, episode.ended - episode.started)}
    return metrics if trajectory.advantage is None else metrics | {"advantage": trajectory.advantage}


def _metadata(trajectory: Trajectory) -> dict[str, float | int | str | bool | None]:
    """ART takes single values only."""
    episode = trajectory.episode
    return {
        "episode": episode.id,
        "env": episode.env,
        "seed": str(episode.seed),  # numbers above 2**63 are no integers everywhere
        "sample": episode.sample,
        "seat": trajectory.player,
        "role": trajectory.role,
        "agent": trajectory.agent,
        "opponents": json.dumps(trajectory.opponents),
        "task_id": trajectory.task_id,
        "group_id": trajectory.group_id,
        "weight_version": trajectory.policy.weight_version,
    }


def read_groups(path: str | Path) -> Iterator[Any]:
    """The groups of an exported JSON lines file as ART's TrajectoryGroups, histories, tools and metadata included.

    Raises ValueError where openpipe-art is not installed.
    """
    try:
        import art
        from art.trajectories import History
        from art.utils.trajectory_migration import dict_to_message_or_choice
    except ImportError as error:
        raise ValueError("reading ART's groups needs it: pip install openpipe-art") from error

    def history(row: dict[str, Any]) -> dict[str, Any]:
        told = [dict_to_message_or_choice(each) for each in row["messages_and_choices"]]
        return row | {"messages_and_choices": told}

    def trajectory(row: dict[str, Any]) -> Any:
        more = [History(**history(each)) for each in row["additional_histories"]]
        return art.Trajectory(**history(row) | {"additional_histories": more})

    with Path(path).open("rb") as file:
        for line in file:
            row = msgspec.json.decode(line)
            yield art.TrajectoryGroup([trajectory(each) for each in row["trajectories"]], metadata=row["metadata"])
