"""ATIF: a row is a `Trajectory` of Harbor's Agent Trajectory Interchange Format, version 1.8: one seat of one match.

Fields as harbor 0.26.0 has them (models/trajectories/: Trajectory, Step, Metrics, ...): a step is a message of the
system, the user (the game and its referee) or the agent. Results of tool calls are the `observation` of the step that
made them. `metrics` of an agent's step have the whole prompt's token ids, the answer's, and its log-probabilities, as
far as they are on record. Steps that only repeat what a model was told before (style window, a conversation that was
begun anew) and those of the episode this one was played on from are marked `is_copied_context`. An agent that asks no
model has steps of 0 calls (`llm_call_count`). Seats of one match share their `session_id`.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from arena.adapters.datasets.called import called
from arena.adapters.datasets.chat import Exchange, exchanges
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import Call
from arena.episode import prompts
from arena.model import Message
from arena.version import __version__

__all__ = ["ATIF"]

_SOURCES = {"system": "system", "user": "user", "tool": "user", "assistant": "agent"}


class ATIF(Format):
    """Rows that are ATIF-v1.8 Trajectories.

    Options:
        prompt_ids: False: metrics have no token ids of prompts, each of which has all of the conversation before it.
    """

    name = "atif"
    consumer = "Harbor ATIF-v1.8 (harbor 0.26.0)"
    checked = "field list of harbor 0.26.0's models/trajectories, loaded with them where harbor is installed"
    files = ("jsonl", "jsonl.zst")
    ids = Format.ids | {"session_id"}

    def __init__(self, prompt_ids: bool = True) -> None:
        self.prompt_ids = prompt_ids

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for trajectory in unit:
            if row := self._row(trajectory):
                yield row

    def _row(self, trajectory: Trajectory) -> Row | None:
        """None: the seat was never asked."""
        steps = _Steps(trajectory, self.prompt_ids)
        for exchange in exchanges(trajectory):
            steps.add(exchange)
        if not steps.steps:
            return None
        return {
            "schema_version": "ATIF-v1.8",
            "session_id": trajectory.episode.id,
            "trajectory_id": trajectory.id,
            "agent": _agent(trajectory, steps.tools),
            "steps": steps.steps,
            "final_metrics": _final(trajectory, len(steps.steps)),
            "extra": _extra(trajectory),
        }


class _Steps:
    """The steps of one seat, which grow with every exchange (in order)."""

    def __init__(self, trajectory: Trajectory, prompt_ids: bool) -> None:
        self.prompt_ids = prompt_ids
        self.steps: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []
        self._whole: tuple[Message, ...] = ()
        whole = iter(prompts(trajectory.calls))
        self._prompts = {id(attempt): list(islice(whole, len(attempt.calls))) for _, attempt in trajectory.attempts}

    def add(self, exchange: Exchange) -> None:
        """Go on with what was told and answered."""
        shared = _shared(self._whole, exchange.prompt)
        known = len(exchange.prompt)
        while known > shared and exchange.prompt[known - 1].role != "assistant":
            known -= 1  # what follows the last answer is new
        for at, message in enumerate(exchange.prompt[shared:], shared):
            self._told(message, copied=at < known)
        self._answer(exchange)
        self._whole = (*exchange.prompt, exchange.answer)
        self.tools += [each for each in exchange.tools if each not in self.tools]

    def _step(self, message: Message, *, copied: bool) -> dict[str, Any]:
        step: dict[str, Any] = {
            "step_id": len(self.steps) + 1,
            "source": _SOURCES[message.role],
            "message": message.content,
        }
        if copied:
            step["is_copied_context"] = True
        if calls := called(message):
            step["tool_calls"] = [
                {"tool_call_id": call.id, "function_name": call.name, "arguments": call.objects} for call in calls
            ]
        self.steps.append(step)
        return step

    def _told(self, message: Message, *, copied: bool) -> None:
        """A message to the agent; of a tool's result, the observation of the step that called it."""
        made = next((step for step in reversed(self.steps) if _calls(step, message.tool_call_id)), None)
        if message.role != "tool" or made is None:
            self._step(message, copied=copied)
            return
        results = made.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": message.tool_call_id, "content": message.content})

    def _answer(self, exchange: Exchange) -> None:
        step = self._step(exchange.answer, copied=not exchange.own)
        asked = [call for call in exchange.attempt.calls if call.kind != "tool"]
        step["llm_call_count"] = len(asked)
        verdict, reason = exchange.attempt.verdict, exchange.attempt.reason
        step["extra"] = {"ply": exchange.turn.ply, "verdict": verdict} | ({"reason": reason} if reason else {})
        if asked:
            if thoughts := exchange.answer.reasoning or exchange.attempt.reasoning:
                step["reasoning_content"] = thoughts
            step["metrics"] = self._metrics(exchange, asked)

    def _metrics(self, exchange: Exchange, asked: list[Call]) -> dict[str, Any]:
        """What is on record of an answer; sums over all calls where it was chosen among several."""
        attempt, last = exchange.attempt, asked[-1]
        found = _usage(asked)
        if last.completion_ids:
            found["completion_token_ids"] = list(last.completion_ids)
            prompt = self._prompts[id(attempt)][attempt.calls.index(last)]
            if prompt and self.prompt_ids:
                found["prompt_token_ids"] = list(prompt)
        if last.logprobs and last.kind != "score":
            found["logprobs"] = list(last.logprobs)
        told = {"logprob_kind": last.logprob_kind, "finish_reason": last.finish_reason}
        versions = [{"start": start, "version": version} for start, version in last.weight_versions]
        extra: dict[str, Any] = {key: value for key, value in told.items() if value}
        extra |= {"weight_versions": versions} if versions else {}
        return found | ({"extra": extra} if extra else {})


def _shared(before: tuple[Message, ...], now: tuple[Message, ...]) -> int:
    return next((at for at, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))


def _calls(step: dict[str, Any], call: str) -> bool:
    return any(made["tool_call_id"] == call for made in step.get("tool_calls", ()))


def _usage(calls: Sequence[Call]) -> dict[str, Any]:
    """Tokens and dollars, where every call has told them."""
    found: dict[str, Any] = {}
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        if calls and all(name in call.usage for call in calls):
            found[name] = int(sum(call.usage[name] for call in calls))
    if calls and all("cost" in call.usage for call in calls):
        found["cost_usd"] = sum(call.usage["cost"] for call in calls)
    return found


def _agent(trajectory: Trajectory, tools: list[dict[str, Any]]) -> dict[str, Any]:
    policy = trajectory.policy
    told = {
        "seat": trajectory.player,
        "role": trajectory.role,
        "weight_version": policy.weight_version,
        "tokenizer_hash": policy.tokenizer_hash,
        "template_hash": policy.template_hash,
        "sampling": policy.sampling,
    }
    agent: dict[str, Any] = {
        "name": trajectory.agent,
        "version": f"gymnasium-arena {trajectory.episode.versions.get('gymnasium-arena', __version__)}",
        "extra": {key: value for key, value in told.items() if value not in ("", {})},
    }
    agent |= {"model_name": policy.model} if policy.model else {}
    return agent | ({"tool_definitions": tools} if tools else {})


def _final(trajectory: Trajectory, steps: int) -> dict[str, Any]:
    episode = trajectory.episode
    usage = _usage([call for call in trajectory.calls if call.kind != "tool"])
    found: dict[str, Any] = {f"total_{name}": value for name, value in usage.items()}
    scores = dict(episode.scores[trajectory.player]) if episode.scores else {}
    return found | {"total_steps": steps, "extra": {"reward": trajectory.reward, **scores}}


def _extra(trajectory: Trajectory) -> dict[str, Any]:
    """What ATIF has no field for; of the other seats the agents' names, nothing else."""
    episode = trajectory.episode
    extra: dict[str, Any] = {
        "env": episode.env,
        "options": episode.options,
        "seed": episode.seed,
        "outcome": episode.outcome,
        "reason": episode.reason,
        "forfeited": trajectory.forfeited,
        "opponents": list(trajectory.opponents),
        "task_id": trajectory.task_id,
        "group_id": trajectory.group_id,
        "final": episode.final[trajectory.player] if episode.final else "",
    }
    return extra if trajectory.advantage is None else extra | {"advantage": trajectory.advantage}
