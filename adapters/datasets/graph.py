"""Graph: what a seat was told and said as verifiers' message graph, a node for each message with the tokens it adds."""

from collections.abc import Mapping
from typing import Any

from arena.adapters.datasets.called import called
from arena.adapters.datasets.chat import Exchange
from arena.adapters.datasets.tokens import Segment, Span
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import Call
from arena.model import Message

__all__ = ["Graph", "Known", "tool"]

Known = Mapping[int, tuple[Segment, Span]]
"""Sequences of tokens and the answers in them, by the `id` of the attempt that an answer is of."""
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
_FINISH = ("stop", "length", "tool_calls")


class Graph:
    """Nodes and calls of one seat, which grow with every exchange (`Exchange`, in order)."""

    def __init__(self, trajectory: Trajectory, known: Known) -> None:
        """`known`: all answers of the seat, or none (then no node has tokens)."""
        self.trajectory, self.known = trajectory, known
        self.nodes: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []
        self._path: list[tuple[int, Message]] = []
        """The nodes of the conversation so far, with their messages."""
        self._segment: Segment | None = None
        """The sequence it is."""
        self._end = 0
        """How much of its response is in the nodes."""
        sampling = trajectory.policy.sampling
        self._sampling = {name: sampling[name] for name in _SAMPLING if sampling.get(name) is not None}

    def add(self, exchange: Exchange) -> None:
        """Go on with what was told and answered."""
        segment, span = self.known.get(id(exchange.attempt), (None, None))
        grown = segment is not None and segment is self._segment
        if not grown:
            del self._path[self._shared(exchange) :]
        given: list[int] = []
        if segment is not None and span is not None:
            given = list(segment.response_ids[self._end if grown else 0 : span.start])
            given = given if grown else [*segment.prompt_ids, *given]
        new = exchange.prompt[len(self._path) :]
        for at, message in enumerate(new, 1):
            self._node(message, given if at == len(new) else [], exchange)
        self._answer(exchange, segment, span, [] if new else given)
        self.tools += [each for each in exchange.tools if each not in self.tools]

    def _shared(self, exchange: Exchange) -> int:
        """How many nodes of the path so far begin this conversation, too: none with tokens, which are another's."""
        shared = 0
        for (at, message), again in zip(self._path, exchange.prompt, strict=False):
            node = self.nodes[at]
            if message != again or node["token_ids"] or (self.known and node["sampled"]):
                break
            shared += 1
        return shared

    def _node(self, message: Message, given: list[int], exchange: Exchange) -> dict[str, Any]:
        """A new node at the end of the path."""
        node: dict[str, Any] = {
            "parent": self._path[-1][0] if self._path else None,
            "message": _written(message),
            "sampled": False,
            "timestamp": self.trajectory.episode.started,
            "token_ids": given,
            "mask": [False] * len(given),
            "logprobs": [],
        }
        if not self._path and exchange.tools:
            node["tools"] = [tool(each) for each in exchange.tools]
        self._path.append((len(self.nodes), message))
        self.nodes.append(node)
        return node

    def _answer(self, exchange: Exchange, segment: Segment | None, span: Span | None, given: list[int]) -> None:
        node = self._node(exchange.answer, given, exchange)
        node["sampled"] = exchange.own
        self._segment = segment
        if segment is not None and span is not None:
            node["token_ids"] = [*given, *segment.response_ids[span.start : span.end]]
            node["mask"] += [True] * (span.end - span.start)
            node["logprobs"] = list(segment.logprobs[span.start : span.end])
            if self.trajectory.advantage is not None:
                node["advantages"] = [self.trajectory.advantage] * (span.end - span.start)
            self._end = span.end
        if exchange.own:
            self._called(exchange, len(self.nodes) - 1)

    def _called(self, exchange: Exchange, node: int) -> None:
        """What was asked for this answer; votes that were not chosen have no node."""
        for call in exchange.attempt.calls:
            if call.kind != "tool":
                self.calls.append(self._call(call, None if call.kind == "sample" else node))

    def _call(self, call: Call, node: int | None) -> dict[str, Any]:
        made = {
            "node": node,
            "model": self.trajectory.policy.model or None,
            "sampling": self._sampling or None,
            "finish_reason": call.finish_reason if call.finish_reason in _FINISH else None,
            "usage": _usage(call),
        }
        return {key: value for key, value in made.items() if value is not None}


def _usage(call: Call) -> dict[str, Any] | None:
    """Tokens as verifiers counts them (a prompt's without those read from a cache), where the server told them."""
    told = call.usage
    if "prompt_tokens" not in told or "completion_tokens" not in told:
        return None
    cached = int(told.get("cached_tokens", 0))
    usage: dict[str, Any] = {
        "prompt_tokens": max(0, int(told["prompt_tokens"]) - cached),
        "completion_tokens": int(told["completion_tokens"]),
    }
    usage |= {"cached_input_tokens": cached} if "cached_tokens" in told else {}
    return usage | ({"cost": told["cost"]} if "cost" in told else {})


def _written(message: Message) -> dict[str, Any]:
    """A message as verifiers has it."""
    made: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        made["tool_call_id"] = message.tool_call_id
    if message.reasoning:
        made["reasoning_content"] = message.reasoning
    if message.tool_calls:
        made["tool_calls"] = [call._asdict() for call in called(message)]
    return made


def tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as OpenAI writes it, as verifiers has it."""
    function = schema["function"]
    return {
        "type": "function",
        "name": function["name"],
        "description": function.get("description", ""),
        "parameters": function.get("parameters", {}),
    }
