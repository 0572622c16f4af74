"""Rollouts: the `rollout_func` of a GRPOTrainer plays a whole game for every prompt.

One prompt is one seat of one game, and one sequence: the first prompt of the seat, then everything that was sampled
(`env_mask` 1) and told (0) after it. The trainer repeats each prompt `num_generations` times: these games are a group.
They are the same deal against the same opponents, and what happened before the learner's first turn is played once for
all of them, so that a group differs by what the learner did (and by chance after it), not by what it was dealt.
"""

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from arena.adapters.datasets.grpo import GRPO
from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.models.local import LocalModel
from arena.adapters.trl.opponents import Opponents, Pool
from arena.adapters.trl.rows import Task
from arena.agent import Agent, AgentError, Reply, View
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.deal import deal_of
from arena.episode import Episode, Writer
from arena.game import Game
from arena.match import play
from arena.model import Sampling
from arena.referee import Referee
from arena.registry import id_of

if TYPE_CHECKING:
    from arena.workers import Workers

__all__ = ["Rollouts", "rollout_func"]

_PROMPTING, _REFEREE = Prompting(), Referee()
_TRIES = 3  # of a match that is void
_OPENINGS = 16  # that may end before the learner was asked
_APART = 1 << 24  # samples of one step: those of another begin behind them
Result = TypeVar("Result")


Games = str | type[Game] | Sequence[str | type[Game]]


def rollout_func(game: Games, opponents: Opponents = "random", **how: Any) -> "Rollouts":
    """The `rollout_func` for a GRPOTrainer whose data set is `dataset(game, seeds)`; arguments: see `Rollouts`."""
    return Rollouts(game, opponents, **how)


class Rollouts:
    """Called with prompts and the trainer it returns `prompt_ids`, `completion_ids`, `logprobs`, `env_mask`.

    And, for reward functions such as `game_reward`: `reward`, `outcome`, `illegal` (a reply was not legal), `turns`
    (how many the learner had), `returns` (of all seats), `episode` (the id) and what exports tell of a sequence
    (`arena.adapters.datasets.columns.about`).
    """

    def __init__(
        self,
        game: Games,
        opponents: Opponents = "random",
        *,
        prompting: Prompting = _PROMPTING,
        max_tokens: int = 0,
        sampling: Sampling | None = None,
        referee: Referee = _REFEREE,
        reward: Callable[[Trajectory], float] | None = None,
        illegal: float | None = None,
        breaks: Literal["refuse", "one"] = "refuse",
        refresh: int = 100,
        record: str | Path | None = None,
        max_turns: int | None = None,
        pool: "Workers | None" = None,
        batch: int = 256,
        seed: int = 0,
    ) -> None:
        """`game`: whose ids the prompts may name. `opponents`: a spec string or agent for all other seats, a list of
        which one is drawn for each seat of each group, or a mapping to weights; "self" is the learner itself, "frozen"
        a copy of it that is renewed every `refresh` steps.

        `max_tokens`: of one answer; 0: the trainer's `max_completion_length`. `sampling`: how answers are drawn; None:
        as the trainer's arguments say, at whose temperature it also computes its log-probabilities. `reward`: what a
        seat's trajectory is worth; None: the seat's return. `illegal`: what a seat gets instead that forfeited.
        `breaks`: a conversation that is several sequences (`Prompting(style="snapshot")`, dropped exchanges, templates
        that write history anew), for which the trainer has no place, is an error (refuse), or one of its sequences is
        drawn evenly (one): then a turn of a long game counts for less. `record`: a .jsonl or .jsonl.zst file to which
        all episodes are appended. `max_turns`: plies; then an episode is truncated. `pool`: processes for agents that
        search. `batch`, `seed`: see LocalModel. Raises ValueError.
        """
        if breaks not in ("refuse", "one"):
            raise ValueError(f"breaks={breaks!r}: allowed are refuse, one")
        games = [game] if isinstance(game, str | type) else list(game)
        self.games = {id_of(each): each for each in games}
        self.opponents = Pool(opponents, refresh)
        self.prompting, self.max_tokens, self.sampling, self.referee = prompting, max_tokens, sampling, referee
        self.reward, self.illegal, self.breaks, self.record = reward, illegal, breaks, record
        self.how: dict[str, Any] = {"max_turns": max_turns, "pool": pool}
        self.batch, self.seed = batch, seed
        self.__name__ = "arena"
        self._learner: tuple[Any, LocalModel, LLMAgent] | None = None
        self._step, self._calls, self._prepared = -1, 0, set[tuple[int, str]]()
        self._loop = _Loop()

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """A game for each prompt, in order. Raises AgentError where a match is void every time."""
        tasks = [self._known(Task.read(prompt)) for prompt in prompts]
        learner, step = self.learner(trainer), int(trainer.state.global_step)
        self._calls = self._calls + 1 if step == self._step else 0
        self._step = step
        episodes = self._loop.run(self._play(tasks, learner, (step << 8) + self._calls))
        for agent in filter(None, (learner, self.opponents.frozen)):
            if isinstance(agent.model, LocalModel):
                agent.model.forget()  # the games are over, and the memory is wanted for training
        if self.record is not None:
            with Writer(self.record) as out:
                for episode in episodes:
                    out.write(episode)
        return self._columns([Trajectory(e, task.seat) for e, task in zip(episodes, tasks, strict=True)], trainer)

    def learner(self, trainer: Any) -> LLMAgent:
        """The trainer's model as an agent; its version is the trainer's step."""
        model = trainer.accelerator.unwrap_model(trainer.model)
        if self._learner is None or self._learner[0] is not model:
            tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
            local = LocalModel(model, tokenizer, seed=self.seed + trainer.accelerator.process_index, batch=self.batch)
            agent = LLMAgent(local, self.prompting, self.sampling or sampling_of(trainer.args, self.max_tokens))
            agent.name = "learner"
            self._learner = model, local, agent
        _, local, agent = self._learner
        local.version = str(trainer.state.global_step)
        return agent

    def close(self) -> None:
        """Let go of the event loop that matches run in."""
        self._loop.close()

    def _known(self, task: Task) -> Task:
        if task.game not in self.games:
            raise ValueError(f"a prompt names {task.game}, this rollout plays {', '.join(self.games)}")
        return task

    # Playing

    async def _play(self, tasks: Sequence[Task], learner: LLMAgent, number: int) -> list[Episode]:
        """The episodes, in order. `number`: of this rollout; opponents draw anew in each."""
        groups: dict[str, list[int]] = {}
        for at, task in enumerate(tasks):
            groups.setdefault(task.prompt(), []).append(at)
        found: dict[int, Episode] = {}

        async def one(slots: Sequence[int]) -> None:
            found.update(zip(slots, await self._group(tasks[slots[0]], learner, number, len(slots)), strict=True))

        try:
            async with asyncio.TaskGroup() as running:
                for slots in groups.values():
                    running.create_task(one(slots))
        except BaseExceptionGroup as failed:
            raise _first(failed) from None
        return [found[at] for at in range(len(tasks))]

    async def _group(self, task: Task, learner: LLMAgent, number: int, count: int) -> list[Episode]:
        """`count` games of one task from the same first turn of the learner's on."""
        rng = Random(f"{number} {task.prompt()}")
        agents = await self._agents(task, learner, rng)
        start, ply = await self._opening(task, agents, rng)
        base = rng.randrange(_APART) * _TRIES * count

        async def one(sample: int) -> Episode:
            for attempt in range(_TRIES):
                how = {**self.how, "start": start, "ply": ply, "sample": base + sample + attempt * count}
                episode = await self._match(task, agents, **how)
                if episode.outcome != "void":
                    return episode
            raise AgentError(f"{task.game}, seed {task.seed}: void {_TRIES} times: {episode.reason}")

        async with asyncio.TaskGroup() as running:
            games = [running.create_task(one(sample)) for sample in range(count)]
        return [game.result() for game in games]

    async def _match(self, task: Task, agents: Sequence[Agent], **how: Any) -> Episode:
        return await play(self.games[task.game], agents, task.seed, task.options, self.referee, **how)

    async def _agents(self, task: Task, learner: LLMAgent, rng: Random) -> list[Agent]:
        """Who sits at each seat that is not the house's; each shows once that it can play this."""
        deal = deal_of(self.games[task.game], task.options)
        free = [player for player in range(deal.template.players) if player not in deal.template.house]
        if task.seat not in free:
            raise ValueError(f"{task.game} has no seat {task.seat} for a learner: allowed are {free}")
        drawn = iter(self.opponents.draw(len(free) - 1, rng))
        agents: list[Agent] = []
        for player in free:
            agent = learner if player == task.seat else self.opponents.seated(next(drawn), learner, self._step)
            agents.append(agent)
            shown = (id(agent), task.game + str(task.options))
            if shown not in self._prepared:
                self._prepared.add(shown)
                if (waiting := agent.prepare(deal.template, self.referee)) is not None:
                    await waiting
        return agents

    async def _opening(self, task: Task, agents: Sequence[Agent], rng: Random) -> tuple[Episode | None, int]:
        """What happens before the learner's first turn, and that turn's ply; nothing where it moves first.

        An opening in which the game ends is played anew. Raises AgentError where that helps never.
        """
        deal = deal_of(self.games[task.game], task.options)
        if task.seat in deal.first(task.seed).to_act():
            return None, 0
        free = [player for player in range(deal.template.players) if player not in deal.template.house]
        seated = [_HERE if player == task.seat else agent for player, agent in zip(free, agents, strict=True)]
        why = "it was never asked"
        for _ in range(_OPENINGS):
            opening = await self._match(task, seated, **self.how, sample=rng.randrange(_APART))
            if opening.reason == _Here.REASON:
                return opening, next(turn.ply for turn in opening.turns if turn.seat == task.seat)
            why = opening.reason or why
        raise AgentError(f"{task.game}, seed {task.seed}: no game came to a turn of seat {task.seat}: {why}")

    # What the trainer is given

    def _columns(self, trajectories: Sequence[Trajectory], trainer: Any) -> dict[str, list[Any]]:
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        end = tokenizer.eos_token_id
        form = GRPO("refuse" if self.breaks == "refuse" else "rows", "any", -1 if end is None else end)
        rows = []
        for trajectory in trajectories:
            found = list(form.rows([trajectory]))
            row = Random(trajectory.episode.id).choice(found)
            rows.append({**row, **self._earned(trajectory)})
        return {key: [row[key] for row in rows] for key in rows[0]}

    def _earned(self, trajectory: Trajectory) -> dict[str, Any]:
        reward = trajectory.reward if self.reward is None else self.reward(trajectory)
        if self.illegal is not None and trajectory.forfeited:
            reward = self.illegal
        return {
            "reward": float(reward),
            "outcome": trajectory.episode.outcome,
            "illegal": not trajectory.legal,
            "turns": len(trajectory.turns),
            "returns": list(trajectory.episode.returns or ()),
        }


def sampling_of(args: Any, max_tokens: int = 0) -> Sampling:
    """How a GRPOConfig draws, in our words. Raises ValueError for what is not drawn so here."""
    if args.repetition_penalty not in (None, 1.0):
        raise ValueError(f"repetition_penalty={args.repetition_penalty}: answers are drawn without one here")
    return Sampling(
        max_tokens=max_tokens or args.max_completion_length,
        temperature=args.temperature,
        top_p=1.0 if args.top_p is None else args.top_p,
        top_k=args.top_k or -1,
        min_p=args.min_p or 0.0,
    )


def _first(failed: BaseException) -> BaseException:
    """The first error of a group of groups."""
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return failed


class _Here(Agent):
    """Ends the episode where it is asked: up to there it is an opening."""

    name = "opening"
    REASON = "the learner is to move"

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        return Reply("", ends=self.REASON)


_HERE = _Here()


class _Loop:
    """One event loop for all rollouts, so that agents keep their connections; in a notebook, in a thread of its own."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._thread: ThreadPoolExecutor | None = None
        self._ended = weakref.finalize(self, self._runner.get_loop().close)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of the work."""
        if self._thread is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return self._runner.run(work)
            self._thread = ThreadPoolExecutor(1, "arena-rollouts")
        return self._thread.submit(self._runner.run, work).result()

    def close(self) -> None:
        """Close it."""
        self._ended()
