"""The fields of ATIF-v1.8 with their types and rules, as harbor 0.26.0's models/trajectories have them."""

from datetime import datetime
from typing import Any, Literal

import msgspec

__all__ = ["Trajectory", "read"]


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    """harbor's models forbid other fields, too."""


class Result(_Strict):
    source_call_id: str | None = None
    content: str | list[Any] | None = None
    subagent_trajectory_ref: list[Any] | None = None
    extra: dict[str, Any] | None = None


class Observation(_Strict):
    results: list[Result]


class ToolCall(_Strict):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class Metrics(_Strict):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: dict[str, Any] | None = None


class Step(_Strict):
    step_id: int
    source: Literal["system", "user", "agent"]
    message: str | list[Any]
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any] | None = None


class Agent(_Strict):
    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(_Strict):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: dict[str, Any] | None = None


class Trajectory(_Strict):
    schema_version: Literal["ATIF-v1.8"]
    agent: Agent
    steps: list[Step]
    session_id: str | None = None
    trajectory_id: str | None = None
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: dict[str, Any] | None = None
    subagent_trajectories: list[Any] | None = None


def read(row: dict[str, Any]) -> Trajectory:
    """The row, checked by harbor's rules (Step and Trajectory validators)."""
    found = msgspec.json.decode(msgspec.json.encode(row), type=Trajectory)
    assert [step.step_id for step in found.steps] == list(range(1, len(found.steps) + 1)) != []
    for step in found.steps:
        own = (step.model_name, step.reasoning_effort, step.reasoning_content, step.tool_calls, step.metrics)
        assert step.source == "agent" or own == (None,) * len(own)
        if step.llm_call_count == 0:
            assert step.metrics is None
            assert step.reasoning_content is None
        made = {call.tool_call_id for call in step.tool_calls or ()}
        results = step.observation.results if step.observation else ()
        assert all(result.source_call_id is None or result.source_call_id in made for result in results)
        assert step.timestamp is None or datetime.fromisoformat(step.timestamp)
    return found
