"""The fake's scheduler: queue, cache, tokens that appear over time, aborts, pauses and versions of the weights."""

import asyncio
import random
import re
import time
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes import tokenizer
from tests.fakes.constraint import Constraint, GrammarError, constraint_of
from tests.fakes.radix import RadixCache
from tests.fakes.template import Template

MARK = re.compile(r"\[mark:[^\]\n]{0,200}\]")
CONTEXT = (
    "Requested token count exceeds the model's maximum context length of {limit} tokens. You requested a total "
    "of {total} tokens: {prompt} tokens from the input messages and {new} tokens for the completion. Please reduce the "
    "number of tokens in the input messages or the completion to fit within the limit."
)


@dataclass(frozen=True)
class Asked:
    """What an `answer` callable is told beside the prompt's text: the body, which of `n`, and the constraint if any."""

    body: dict[str, Any]
    index: int
    constraint: Constraint | None
    prompt_ids: list[int]
    random: random.Random


Answer = Callable[[str, Asked], str]


class Refused(Exception):
    """The engine takes no such request: an HTTP status and a message."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


def plain(prompt: str, asked: Asked) -> str:
    """The default answer: one text of the constraint, chosen by the prompt; without one, a fixed text."""
    return asked.constraint.pick(asked.random) if asked.constraint else "I have thought about it."


def marked(inner: Answer = plain) -> Answer:
    """An answer that begins with the last `[mark:...]` of its prompt, so a test can tell whose reply it is."""

    def answer(prompt: str, asked: Asked) -> str:
        marks = MARK.findall(prompt)
        said = inner(prompt, asked)
        return f"{marks[-1]} {said}" if marks and asked.constraint is None else said

    return answer


@dataclass(eq=False)
class Run:
    """One sequence: its prompt, the tokens it will say, how many are out, under which weights."""

    rid: str
    prompt_ids: list[int]
    planned: list[int]
    matched: int | str | None
    params: dict[str, Any]
    constraint: Constraint | None
    cached: int = 0
    done: int = 0
    spans: list[dict[str, Any]] = field(default_factory=list)
    aborted: bool = False
    unheard: bool = False  # aborted while it waited in the queue
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    place: asyncio.Future[None] | None = None
    goal: int = 0
    share: float = 0.0
    since: float | None = None
    started: float = field(default_factory=time.perf_counter)

    def emit(self, count: int, version: str) -> None:
        """Tokens that appear under a version of the weights."""
        if count <= 0:
            return
        if not self.spans or self.spans[-1]["version"] != version:
            self.spans.append({"version": version, "start": self.done, "end": self.done})
        self.done += count
        self.spans[-1]["end"] = self.done

    def settle(self, version: str) -> None:
        """Count what has appeared until now, and look up: the world is about to change."""
        if self.since is not None:
            due = int((time.perf_counter() - self.since) / self.share) if self.share > 0 else 0
            self.emit(min(due, self.goal - self.done), version)
            self.since = None
        self.wake.set()

    def versions(self) -> list[str]:
        """The weights of each token that is out."""
        return [span["version"] for span in self.spans for _ in range(span["end"] - span["start"])]


@dataclass
class Engine:
    """Everything behind the routes.

    latency, jitter: seconds until an answer is whole, plus up to `jitter`; its tokens appear evenly in that time.
    token_time: seconds each token takes on top. drift: rate at which an answer's pieces are spelt in other tokens than
    `encode` would give. max_running, max_queued: as the server's options, None for no limit.
    """

    answer: Answer = plain
    template: Template = field(default_factory=Template)
    context_length: int = 8192
    latency: float = 0.0
    jitter: float = 0.0
    token_time: float = 0.0
    drift: float = 0.2
    max_running: int | None = None
    max_queued: int | None = None
    weight_version: str = "default"
    seed: int = 0

    def __post_init__(self) -> None:
        self.cache = RadixCache()
        self.running: dict[str, list[Run]] = {}
        self.active = self.max_active = 0
        self.queue: deque[asyncio.Future[None]] = deque()
        self.aborted: list[str] = []
        self.violations: list[str] = []
        self.sessions: set[str] = set()
        self.random = random.Random(f"engine {self.seed}")
        self.go = asyncio.Event()
        self.go.set()

    # -- plans -------------------------------------------------------------------------------------------------------

    def plan(self, rid: str, prompt_ids: list[int], params: dict[str, Any], body: dict[str, Any], index: int) -> Run:
        """What one sequence will say.

        Raises:
            Refused: no room in the context, an empty prompt, a constraint that does not compile, a bad number.
        """
        if rid in self.running:
            raise Refused(f"Duplicate request ID detected: {rid}")
        session = body.get("session_params") or {}
        if session.get("id") is not None and session["id"] not in self.sessions:
            raise Refused("Invalid request session id")
        limit = params.get("max_new_tokens")
        self._check(prompt_ids, params, 0 if limit is None else limit)
        limit = min(128, self.context_length - len(prompt_ids)) if limit is None else limit
        try:
            constraint = constraint_of(params)
        except GrammarError as error:
            raise Refused(str(error)) from error
        chance = random.Random(zlib.crc32(repr((self.seed, prompt_ids, index)).encode()))
        asked = Asked(body, index, constraint, prompt_ids, chance)
        ids, matched = self._say(asked, params, limit)
        return Run(rid, prompt_ids, ids, matched, params, constraint)

    def _check(self, prompt_ids: list[int], params: dict[str, Any], limit: int) -> None:
        if not prompt_ids:
            raise Refused("input_ids cannot be empty.")
        if not 0 <= min(prompt_ids) <= max(prompt_ids) < tokenizer.SIZE:
            self.violations.append("/generate: a token id outside the vocabulary; the real server dies of it")
            raise Refused("a token id outside the vocabulary", status=0)
        temperature = params.get("temperature")
        if temperature is not None and temperature < 0:
            raise Refused(f"temperature must be a non-negative finite number, got {temperature}.")
        if len(prompt_ids) >= self.context_length:
            raise Refused(
                f"The input ({len(prompt_ids)} tokens) is longer than the model's context length "
                f"({self.context_length} tokens)."
            )
        total = len(prompt_ids) + limit
        if total > self.context_length:
            raise Refused(CONTEXT.format(limit=self.context_length, total=total, prompt=len(prompt_ids), new=limit))

    def _say(self, asked: Asked, params: dict[str, Any], limit: int) -> tuple[list[int], int | str | None]:
        """The answer's ids, and what will stop it: the EOS id, a stop string, or None where it is cut by length."""
        if limit == 0:
            return [], None
        text = self.answer(tokenizer.decode(asked.prompt_ids), asked)
        if asked.constraint is not None and not asked.constraint.allows(text):
            self.violations.append(f"the test's answer breaks the constraint {asked.constraint.source!r}: {text!r}")
            text = asked.constraint.pick(asked.random)
        matched: int | str | None = tokenizer.EOS
        stops = [params["stop"]] if isinstance(params.get("stop"), str) else params.get("stop") or []
        found = [(at, stop) for stop in stops if (at := text.find(stop)) >= 0]
        if found:
            at, matched = min(found)
            text = text[: at + len(str(matched))]
        ids = tokenizer.respell(tokenizer.encode(text), asked.random, self.drift)
        if params.get("ignore_eos") and matched == tokenizer.EOS:
            filler = tokenizer.encode(" and so on")
            return (ids + filler * limit)[:limit], None
        if matched == tokenizer.EOS:
            ids = ids if tokenizer.EOS not in ids else ids[: ids.index(tokenizer.EOS)]
            ids.append(tokenizer.EOS)
        return (ids[:limit], None) if len(ids) > limit else (ids, matched)

    # -- runs --------------------------------------------------------------------------------------------------------

    @contextmanager
    def registered(self, run: Run, known: int) -> Iterator[Run]:
        """The run can be aborted inside; `known` is the most tokens the cache may spare it."""
        run.cached = min(self.cache.longest(run.prompt_ids), len(run.prompt_ids) - 1, known)
        self.running.setdefault(run.rid, []).append(run)
        self.cache.insert(run.prompt_ids)
        try:
            yield run
        finally:
            if run.done < len(run.planned) and not run.aborted:
                self.aborted.append(run.rid)  # the client has gone
            self.running[run.rid].remove(run)
            if not self.running[run.rid]:
                del self.running[run.rid]
            # The last token's keys and values were never computed.
            self.cache.insert(run.prompt_ids + run.planned[: max(0, run.done - 1)])

    async def advance(self, run: Run, step: int | None = None) -> None:
        """Let `step` more tokens appear, all of them without; ends early when the run is aborted."""
        run.goal = len(run.planned) if step is None else min(run.done + step, len(run.planned))
        wait = self.latency + (self.random.random() * self.jitter if self.jitter else 0.0)
        run.share = wait / max(1, len(run.planned)) + self.token_time
        while run.done < run.goal and not run.aborted:
            run.wake.clear()
            if not self.go.is_set():
                await _first(self.go.wait(), run.wake.wait())
            elif run.share > 0:
                run.since = time.perf_counter()
                await _within(run.wake.wait(), run.share * (run.goal - run.done))
                if not run.wake.is_set():
                    run.emit(run.goal - run.done, self.weight_version)
            else:
                run.emit(run.goal - run.done, self.weight_version)
            run.since = None

    async def admit(self, run: Run) -> None:
        """Wait for a place among the running, or for the run's abort.

        Raises:
            Refused: 503, as many wait already as may.
        """
        if self.max_running is not None and self.active >= self.max_running:
            if self.max_queued is not None and len(self.queue) >= self.max_queued:
                raise Refused("The request queue is full.", 503)
            run.place = asyncio.get_running_loop().create_future()
            self.queue.append(run.place)
            try:
                await run.place
            finally:
                if run.place in self.queue:
                    self.queue.remove(run.place)
            run.unheard = run.aborted
        self.active += 1
        self.max_active = max(self.max_active, self.active)

    def leave(self) -> None:
        """One fewer runs; the next in the queue may."""
        self.active -= 1
        while self.queue:
            place = self.queue.popleft()
            if not place.done():
                place.set_result(None)
                return

    # -- control -----------------------------------------------------------------------------------------------------

    def abort(self, rid: str = "", everything: bool = False) -> None:
        """End runs with what they have. As in SGLang an unknown `rid` ends none, a known one all that begin with it."""
        known = everything or rid in self.running
        for name in [name for name in self.running if known and (everything or name.startswith(rid))]:
            self.aborted.append(name)
            for run in self.running[name]:
                run.settle(self.weight_version)
                run.aborted = True
                if run.place is not None and not run.place.done():
                    run.place.set_result(None)

    def pause(self, mode: str = "abort") -> None:
        """Stop all generation; `abort` ends what runs, the other modes keep it."""
        if mode == "abort":
            self.abort(everything=True)
        self.go.clear()
        self._settle()

    def update(self, version: str | None, flush: bool) -> None:
        """New weights; tokens from now on are theirs."""
        self._settle()
        if flush:
            self.cache.flush()
        self.weight_version = self.weight_version if version is None else version

    def _settle(self) -> None:
        for run in [run for runs in self.running.values() for run in runs]:
            run.settle(self.weight_version)


async def _within(waited: Any, seconds: float) -> None:
    try:
        await asyncio.wait_for(waited, seconds)
    except TimeoutError:
        return


async def _first(*waited: Any) -> None:
    tasks = [asyncio.ensure_future(one) for one in waited]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def new_rid() -> str:
    """An id as SGLang makes one."""
    return uuid.uuid4().hex
