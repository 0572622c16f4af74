"""LLMAgent: a served language model at the table."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from arena.agent import Agent, AgentError, AgentInfo, Call, Reply, View
from arena.agents.conversation import OTHERS, Bridges, Conversation
from arena.agents.decoding import CUT, alternatives, choose, log_share, majority, unfit
from arena.agents.preflight import Known, answer_room, check, check_features, check_room, check_sampling
from arena.agents.prompting import Prompter, Prompting
from arena.agents.recalled import answer_of, unanswered
from arena.agents.said import Said, read
from arena.agents.telling import tell
from arena.episode import Attempt, Turn
from arena.game import Action, Game
from arena.model import (
    Completion,
    ContextOverflow,
    Message,
    Model,
    ModelInfo,
    Request,
    Sampling,
    logprob_kind,
)
from arena.referee import Referee

__all__ = ["LLMAgent"]

_ENCODED = 65536  # actions whose tokens are kept
_PROMPTING, _SAMPLING = Prompting(), Sampling()


class LLMAgent(Agent):
    """A language model at the table: what it is told is `prompting`'s, how it answers `sampling`'s.

    A conversation per seat and episode is kept in `view.memory["llm"]`. What keeps the model from answering is a
    ModelError, which makes the match void.
    """

    name = "llm"
    served = True

    def __init__(
        self,
        model: Model,
        prompting: Prompting = _PROMPTING,
        sampling: Sampling = _SAMPLING,
        priority: int | None = None,
    ) -> None:
        """`priority`: of its requests, for servers that schedule by it. Raises ValueError for what cannot be meant."""
        check_sampling(sampling)
        self.priority = priority
        self.model, self.prompting, self.sampling = model, prompting, sampling
        self._prompter = Prompter(prompting)
        self._known: Known | None = None
        self._asking: tuple[asyncio.AbstractEventLoop, asyncio.Task[Known]] | None = None
        self._encoded: dict[Action, tuple[int, ...]] = {}
        self._wanted = answer_room(prompting, sampling)
        self._version = ""
        self._info: AgentInfo | None = None

    async def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        known = self._known or await self._know()
        seat = _seat(view, known)
        tell(self._prompter, view, seat)
        while True:
            prompt = await seat.prompt(self.model, self._tools(view))
            try:
                self._check_room(known, prompt)
                if self.prompting.decode == "score":
                    return await self._score(view, seat, prompt)
                return await self._generate(view, seat, prompt)
            except ContextOverflow as error:
                if not self._makes_room(known, seat, prompt):
                    return self._overflown(error)

    async def recall(self, views: Sequence[View], turn: Turn) -> None:
        """See `Agent.recall`. The conversation is as if this agent had been asked.

        It goes on token by token where the record has the tokens that this agent's prompts would have had, so that
        nothing that was sampled is tokenized again; else in messages, another player's action as this model writes one.
        """
        known = self._known or await self._know()
        for view, attempt in zip(views, turn.attempts, strict=True):
            seat = _seat(view, known)
            tell(self._prompter, view, seat)
            if not unanswered(attempt):
                await self._take_up(known, seat, view, turn, attempt)

    async def prepare(self, game: Game, referee: Referee) -> None:
        """See `Agent.prepare`."""
        check(self.prompting, game, referee)
        known = await self._know()
        check_features(self.prompting, known)
        await check_room(self.model, self._prompter, self.sampling, known, game, referee)

    def info(self) -> AgentInfo:
        """See `Agent.info`. It is complete once the model was asked."""
        if self._info is None:
            self._info = self._about()
        return self._info

    async def close(self) -> None:
        """See `Agent.close`."""
        await self.model.close()

    def _about(self) -> AgentInfo:
        info = self._known.info if self._known else ModelInfo(self.model.name)
        features = self._known.features if self._known else self.model.features
        options = msgspec.structs.asdict(self.sampling) | msgspec.structs.asdict(self.prompting) | self.model.policy()
        del options["template"]  # a place on this machine; its text's hash is told
        return AgentInfo(
            model=info.model,
            weight_version=self._version or info.weight_version,
            tokenizer_hash=info.tokenizer_hash,
            template_hash=f"{self._prompter.hash}/{info.template_hash}",
            sampling=options,
            # They come with their tokens. A scored action was drawn among the legal ones, not token by token.
            trainable="logprobs" in features and self.prompting.decode != "score",
        )

    async def _know(self) -> Known:
        """Ask the server what it is: once, however many games begin."""
        loop = asyncio.get_running_loop()
        if self._known is not None:
            return self._known
        if self._asking is None or self._asking[0] is not loop:
            task = loop.create_task(self._learn())
            task.add_done_callback(_retrieved)
            self._asking = loop, task
        try:
            self._known = await asyncio.shield(self._asking[1])
        finally:
            self._asking, self._info = None, None
        return self._known

    async def _learn(self) -> Known:
        info = await self.model.info()
        features = frozenset[str](info.features) or self.model.features
        bridges = None
        if "tokens" in features and self.prompting.tools != "openai":  # structured calls come in messages only
            bridges = Bridges(self.model)
            await bridges.learn()
        return Known(info, features, bridges)

    # What is told

    def _tools(self, view: View) -> tuple[dict[str, Any], ...]:
        return self._prompter.schemas(view.game) if self._prompter.codec is not None else ()

    def _check_room(self, known: Known, prompt: tuple[int, ...]) -> None:
        context, wanted = known.info.context, self._wanted
        if prompt and context and len(prompt) + wanted > context:
            raise ContextOverflow(
                f"a prompt of {len(prompt)} tokens and an answer of {wanted} need more than {context}"
            )

    def _makes_room(self, known: Known, seat: Conversation, prompt: tuple[int, ...]) -> bool:
        """Whether the oldest exchanges were left out, where that is the rule and there are any."""
        context = known.info.context
        part = (context - self._wanted) / len(prompt) if prompt and context else 0.5
        return self.prompting.overflow == "window" and seat.make_room(min(part, 0.9))

    def _overflown(self, error: ContextOverflow) -> Reply:
        """By the rule that was declared; where even the last exchange does not fit, nobody is to blame."""
        if self.prompting.overflow == "forfeit":
            return Reply("", truncated=True)
        return Reply("", ends=f"the context is full: {error}")

    # How it is answered

    async def _generate(self, view: View, seat: Conversation, prompt: tuple[int, ...]) -> Reply:
        options = self.prompting
        constraint = None
        if options.decode == "constrained":
            constraint = alternatives(view.legal_actions or ())
        request = Request(
            messages=() if prompt else seat.all(),
            prompt_ids=prompt,
            sampling=self.sampling,
            constraint=constraint,
            tools=self._tools(view),
            n=options.votes if options.decode == "vote" else 1,
            affinity=seat.affinity,
            priority=self.priority,
        )
        answers = await self._complete(request)
        best = majority(view, answers) if len(answers) > 1 else 0
        return self._reply(view, seat, request, [*answers[:best], *answers[best + 1 :], answers[best]])

    async def _complete(self, request: Request) -> Sequence[Completion]:
        """The answers; one request for each where the server gives one at a time."""
        known = self._known
        if request.n == 1 or known is None or "n" in known.features:
            return await self.model.complete(request)
        one = msgspec.structs.replace(request, n=1)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._first(one)) for _ in range(request.n)]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _first(self, request: Request) -> Completion:
        return (await self.model.complete(request))[0]

    def _reply(self, view: View, seat: Conversation, request: Request, answers: Sequence[Completion]) -> Reply:
        """The reply of the last answer; the others are on record only."""
        answer = answers[-1]
        said = read(answer, self.prompting.thinking, view, self._prompter.codec, seat.counted)
        calls = self._calls(seat, request, answers, said)
        gaps = dict.fromkeys([*seat.gaps, *[gap for each in answers for gap in each.gaps]])
        seat.gaps = []
        seat.calls, seat.counted = said.calls, seat.counted + len(said.calls)
        seat.answered(said.message, exact=bool(answer.ids) and said.sampled)
        self._saw(answer)
        return Reply(
            said.text,
            said.reasoning,
            truncated=answer.finish in CUT,
            calls=calls,
            gaps=tuple(gaps),
            ends=(answer.reason or "the server aborted the answer") if answer.finish == "abort" else "",
        )

    def _calls(
        self, seat: Conversation, request: Request, answers: Sequence[Completion], said: Said
    ) -> tuple[Call, ...]:
        kind = "generate" if request.prompt_ids else "chat"
        sent, calls = "\n\n".join([message.content for message in seat.new]), []
        for at, answer in enumerate(answers, 1):
            last = at == len(answers)
            extends, rest = seat.account(request.prompt_ids, answer, first=at == 1)
            calls.append(
                Call(
                    kind if last else "sample",
                    sent if at == 1 else "",
                    said.received if last else answer.text,
                    extends,
                    rest,
                    answer.ids,
                    answer.logprobs,
                    answer.logprob_kind
                    or (logprob_kind(request.sampling, request.constraint) if answer.logprobs else ""),
                    answer.finish,
                    answer.usage,
                    answer.weight_versions,
                )
            )
        return tuple(calls)

    def _saw(self, answer: Completion) -> None:
        version = answer.weight_versions[-1][1] if answer.weight_versions else ""
        if version and version != self._version:
            self._version, self._info = version, None

    # What was answered before

    async def _take_up(self, known: Known, seat: Conversation, view: View, turn: Turn, attempt: Attempt) -> None:
        """Add a recorded answer; its tokens stay where they follow the very prompt that this agent would have sent."""
        answer = answer_of(view, turn, attempt, self.prompting, self._prompter.codec, seat.counted)
        said = read(answer, self.prompting.thinking, view, self._prompter.codec, seat.counted)
        told, given = bool(attempt.calls and attempt.calls[-1].completion_ids), not attempt.calls and seat.exact
        prompt, exact = await self._recalled_prompt(known, seat, view) if told or given else (), told
        for call in attempt.calls:
            exact = (seat.recall(call) == prompt or seat.bridges is None) and exact
        if given and seat.exact and seat.bridges is not None and seat.bridges.end is not None and not said.calls:
            (ids,) = await self.model.encode([said.message.content])
            exact = seat.give((*prompt, *ids, seat.bridges.end))
        seat.gaps, seat.calls, seat.counted = (
            [OTHERS] * (told and not exact),
            said.calls,
            seat.counted + len(said.calls),
        )
        seat.answered(said.message, exact=exact and said.sampled)

    async def _recalled_prompt(self, known: Known, seat: Conversation, view: View) -> tuple[int, ...]:
        """What the model would have been asked, where it is asked in tokens."""
        while True:
            prompt = await seat.prompt(self.model, self._tools(view))
            try:
                self._check_room(known, prompt)
            except ContextOverflow:
                if self._makes_room(known, seat, prompt):
                    continue
            return prompt

    async def _score(self, view: View, seat: Conversation, prompt: tuple[int, ...]) -> Reply:
        """The legal action that is likeliest as the whole answer, its end-of-turn token included."""
        legal = view.legal_actions or ()
        answers = await self._tokens(legal)
        scores = await self.model.score(prompt, answers, seat.affinity, self.priority)
        sums, temperature = [sum(row) for row in scores.rows], self.sampling.temperature
        at = choose(sums, temperature, view.rng)
        usage = {**scores.usage, "choice_logprob": log_share(sums, temperature, at)}
        sent = "\n\n".join([message.content for message in seat.new])
        extends, rest = seat.take(prompt, answers[at])
        call = Call("score", sent, legal[at], extends, rest, answers[at], scores.rows[at], "raw", "stop", usage)
        gaps, seat.gaps = tuple(seat.gaps), []
        seat.answered(Message("assistant", legal[at]), exact=True)
        return Reply(legal[at], calls=(call,), gaps=gaps)

    async def _tokens(self, legal: Sequence[Action]) -> list[tuple[int, ...]]:
        """Each action as the model would write it: its tokens and the end of the turn."""
        end = self._known.bridges.end if self._known and self._known.bridges else None
        if why := unfit(legal) or ("" if end is not None else "the model does not tell its end-of-turn token"):
            raise AgentError(f"decode=score: {why}")
        encoded = self._encoded
        if unseen := [action for action in legal if action not in encoded]:
            if len(encoded) > _ENCODED:
                encoded.clear()
                unseen = list(legal)
            for action, ids in zip(unseen, await self.model.encode(unseen), strict=True):
                encoded[action] = (*ids, end)  # type: ignore[arg-type]  # it is no None: see above
        return [encoded[action] for action in legal]


def _seat(view: View, known: Known) -> Conversation:
    """The conversation of a seat, which begins when it is first asked for."""
    seat: Conversation | None = view.memory.get("llm")
    if seat is None:
        seat = view.memory["llm"] = Conversation(known.bridges)
    return seat


def _retrieved(task: asyncio.Task[Known]) -> None:
    """Nobody may be waiting any longer for what it raised."""
    if not task.cancelled():
        task.exception()
