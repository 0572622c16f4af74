"""DPO: two answers to one prompt, the better and the worse, as TRL's DPOTrainer reads them."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import sqrt
from random import Random
from statistics import fmean, variance
from typing import TYPE_CHECKING, NamedTuple

from arena.adapters.datasets.chat import Exchange, asked_by
from arena.adapters.datasets.columns import check_choice
from arena.adapters.datasets.format import Row
from arena.adapters.datasets.scribe import Scribe, scribe_of
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory, digest
from arena.adapters.datasets.worded import Worded
from arena.agent import Agent, HouseAgent
from arena.game import Action, Player
from arena.registry import make_agent
from arena.rollouts.branching import branch_sync

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DPO"]

_TRIES = 4  # draws for each candidate where actions are not listed


class DPO(Worded):
    """`prompt`, `chosen` and `rejected`: two actions in one position, or a legal answer and the wrong one before it.

    pairs=fork: the recorded match is forked at each ply of the seat; the action that was played and `candidates` other
    legal ones are each played on `rollouts` times by `rollout` in all seats (what others did at the same ply they do
    again, where it was legal). A pair is kept where the mean returns differ by more than `margin` and by more than
    `sigmas` standard errors. Both actions are written in the form of an answer and without thoughts: the two differ in
    the move and in nothing else. Rollout i of one action and of the other share their random streams and the game's
    chance (the dice that were thrown are thrown again), which makes the difference less noisy. It also means that an
    action is judged by the deal that was dealt, hidden cards included: average over many seeds. Same records, options
    and seed: same pairs.
    pairs=wrong: a wrong reply is rejected, the legal one that the seat gave in the end chosen, both as they were said;
    nothing is played. pairs=both: these and those.

    Options:
        pairs: fork, wrong or both
        rollout: spec string of the agent that plays on
        rollouts: continuations of each action, 1 or more
        candidates: other actions that are tried at each ply, 1 or more; drawn by `seed`
        plies: plies of a seat that are looked at, drawn by `seed`; 0: all
        margin: by how much mean returns differ at least (more than that)
        sigmas: the same in standard errors of the mean of paired differences; 0: not looked at
        seed: what is drawn
        style: chat, snapshot or window: how an agent that is no language model is told of the past
        window: exchanges that style=window keeps
        answer: the form in which such an agent answers: answer, boxed, final, bracket or plain
        show_legal: whether such an agent is told the legal actions
        legal_limit: how many of them at most, 0: all
        tools: for tool tasks: a format of calls ("openai"), so that calls of such agents are `tool_calls`
        template: a folder with a system.j2 or turn.j2 of your own
        anew: write what language models were told and did in the same way, not as they were told and said it
        system: whether the rules are a system's message; else they open the first of the user's
    """

    name = "dpo"
    consumer = "TRL 1.16 DPOTrainer"
    checked = "loaded with datasets 5.2.0, trained on with trl 1.16.0"
    learned = frozenset(("prompt", "chosen", "rejected", "tools"))

    def __init__(
        self,
        pairs: str = "fork",
        rollout: str = "random",
        rollouts: int = 8,
        candidates: int = 1,
        plies: int = 0,
        margin: float = 0.0,
        sigmas: float = 0.0,
        seed: int = 0,
        style: str = "chat",
        window: int = 4,
        answer: str = "answer",
        show_legal: bool = True,
        legal_limit: int = 0,
        tools: str = "",
        template: str = "",
        anew: bool = False,
        system: bool = True,
    ) -> None:
        check_choice("pairs", pairs, "fork", "wrong", "both")
        for name, value, least in (
            ("rollouts", rollouts, 1), ("candidates", candidates, 1), ("plies", plies, 0), ("margin", margin, 0),
            ("sigmas", sigmas, 0),
        ):  # fmt: skip
            if value < least:
                raise ValueError(f"{name}={value}: allowed are {least} and more")
        if sigmas and rollouts < 2:
            raise ValueError("sigmas needs rollouts=2 or more: one says nothing of the noise")
        told = {"style": style, "window": window, "answer": answer, "show_legal": show_legal}
        super().__init__(anew, system, legal_limit=legal_limit, tools=tools, template=template, **told)
        self.pairs, self.rollouts, self.candidates, self.plies = pairs, rollouts, candidates, plies
        self.margin, self.sigmas, self.seed = margin, sigmas, seed
        self._agent = make_agent(rollout)

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for trajectory in unit:
            own = [each for each in self.exchanges(trajectory) if each.own]
            turns = [list(held) for _, held in groupby(own, lambda each: id(each.turn))]
            if self.pairs != "fork":
                yield from [row for held in turns for row in self._corrected(trajectory, held)]
            if self.pairs != "wrong":
                scribe = scribe_of(asked_by(trajectory, self.prompting, anew=self.anew))
                for held in self._drawn(trajectory, [held for held in turns if held[-1].legal]):
                    yield from self._forked(trajectory, held, scribe)

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        numbers = [pa.field(name, pa.float64()) for name in ("value_chosen", "value_rejected", "error")]
        more = [pa.field("ply", pa.int32()), pa.field("pair", pa.string()), *numbers, pa.field("rollouts", pa.int32())]
        return pa.schema([*self.columns("prompt", "chosen", "rejected"), *more])

    def _rng(self, *of: object) -> Random:
        return Random(int(digest(self.seed, *of), 16))

    def _drawn(self, trajectory: Trajectory, turns: list[list[Exchange]]) -> list[list[Exchange]]:
        """The plies that are looked at, in order."""
        if not self.plies or len(turns) <= self.plies:
            return turns
        rng = self._rng(trajectory.player, *[held[-1].turn.hash for held in turns])
        return [turns[at] for at in sorted(rng.sample(range(len(turns)), self.plies))]

    def _corrected(self, trajectory: Trajectory, held: list[Exchange]) -> Iterator[Row]:
        """The wrong replies of a turn, each against the legal one in its end."""
        right = held[-1]
        for wrong in held[:-1] if right.legal else ():
            yield {
                "prompt": self.said(wrong.prompt),
                "chosen": self.said((right.answer,)),
                "rejected": self.said((wrong.answer,)),
                **self.about(trajectory, wrong.tools),
                "ply": wrong.turn.ply,
                "pair": "wrong",
                "value_chosen": None,
                "value_rejected": None,
                "error": None,
                "rollouts": 0,
            }

    def _forked(self, trajectory: Trajectory, held: list[Exchange], scribe: Scribe) -> Iterator[Row]:
        """The action of a turn against others."""
        first, played = held[0], held[-1].turn.action
        others = self._others(trajectory, held[-1])
        if played is None or not others:
            return
        before = sum(len(message.tool_calls) for message in first.prompt)
        own = self._worth(trajectory, held[-1], played)
        for other in others:
            gain = _Gain.of(own, self._worth(trajectory, held[-1], other))
            if abs(gain.mean) <= max(self.margin, self.sigmas * gain.error):
                continue
            better, worse = (played, other) if gain.mean > 0 else (other, played)
            yield {
                "prompt": self.said(first.prompt),
                "chosen": self.said((scribe.play(first.view, better, before).answer,)),
                "rejected": self.said((scribe.play(first.view, worse, before).answer,)),
                **self.about(trajectory, first.tools),
                "ply": first.turn.ply,
                "pair": "fork",
                "value_chosen": max(gain.values),
                "value_rejected": min(gain.values),
                "error": gain.error if self.rollouts > 1 else None,
                "rollouts": self.rollouts,
            }

    def _others(self, trajectory: Trajectory, exchange: Exchange) -> list[Action]:
        """Other actions of the position; where they are not listed, those that the game draws."""
        turn, game, rng = exchange.turn, exchange.view.game, self._rng(exchange.turn.hash)
        legal = game.legal_actions(trajectory.player)
        if legal is None:
            player, referee = trajectory.player, trajectory.episode.referee
            drawn = dict.fromkeys([game.sample_action(player, rng) for _ in range(_TRIES * self.candidates)])
            fit = [action for action in drawn if referee.read(game, player, action).action == action != turn.action]
            return fit[: self.candidates]
        others = [action for action in legal if action != turn.action]
        return rng.sample(others, min(self.candidates, len(others)))

    def _worth(self, trajectory: Trajectory, exchange: Exchange, action: Action) -> list[float]:
        """What the seat earned in each continuation from this action."""
        episode, player, turn = trajectory.episode, trajectory.player, exchange.turn
        same = [other for other in episode.turns if other.ply == turn.ply and other.attempts]
        did = {each.seat: each.action for each in same if each.attempts[-1].verdict == "legal" and each.action}
        actions: dict[Player, Action] = did | {player: action}
        house = exchange.view.game.house
        agents: list[Agent] = [HouseAgent() if p in house else self._agent for p in range(len(episode.seats))]
        earned = []
        for each in branch_sync(episode, turn.ply, self.rollouts, agents, actions=actions):
            if each.returns is None:
                raise Lacking(f"episode {episode.id}, ply {turn.ply}: {self._agent.name} cannot play on: {each.reason}")
            earned.append(each.returns[player])
        return earned


class _Gain(NamedTuple):
    """How much better one action is than another."""

    values: tuple[float, float]
    """The mean returns of the one and of the other."""
    mean: float
    error: float
    """Standard error of the mean of paired differences; 0 of a single pair."""

    @classmethod
    def of(cls, one: list[float], other: list[float]) -> "_Gain":
        """From the returns of continuations, pair by pair."""
        differences = [a - b for a, b in zip(one, other, strict=True)]
        error = sqrt(variance(differences) / len(differences)) if len(differences) > 1 else 0.0
        return cls((fmean(one), fmean(other)), fmean(differences), error)
