"""The PettingZoo face for all at once: every seat is there at every ply, and those not to act are not listened to."""

from collections.abc import Mapping
from typing import Any

from pettingzoo import ParallelEnv

from arena.game import Game
from arena.seated import OWN, Observation, Seated
from arena.table import OVER, History, Setup

__all__ = ["GameParallelEnv"]


class GameParallelEnv(Seated, ParallelEnv):  # type: ignore[misc]  # pettingzoo ships no types
    """`pettingzoo.make("parallel", "arena/RockPaperScissors-v0")`.

    Seat p is agent `player_p`. Arguments are those of `arena.aec.GameAECEnv` without `retries`: a wrong action costs
    what `illegal` says at once. One step is one ply; plies in which vacated seats alone move are played with it.
    Actions of seats that are not to act, or have forfeited, are not looked at and may be left out; a missing action
    of a seat to act is a ValueError. `history="new"` is what the last step brought.
    `infos[agent]["legal_actions"]` is `()` for a seat not to act; its numeric mask is all ones.
    """

    def __init__(
        self,
        game: str | type[Game],
        illegal: str = "forfeit",
        show_legal: bool = True,
        history: History = "full",
        render_mode: str | None = None,
        numeric: bool = False,
        max_cycles: int | None = None,
        **options: Any,
    ) -> None:
        if "retries" in options:
            raise ValueError("the parallel face has no retries: a wrong action costs what `illegal` says at once")
        setup = Setup(
            game, options, OWN, illegal=illegal, retries=0, show_legal=show_legal, history=history,
            render_mode=render_mode, numeric=numeric,
        )  # fmt: skip
        self._sit_down(setup, max_cycles, everyone=True)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """See `pettingzoo.ParallelEnv.reset`. Options are ignored."""
        self.table.deal(self.seeds.next(seed))
        self.agents = self.possible_agents[:]
        if self.render_mode == "human":
            self.render()
        return self._observations(), self._infos()

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One ply. Raises RuntimeError for a due reset, ValueError for a missing action, TypeError for no text."""
        if not self.agents:
            raise RuntimeError("no episode goes on: call reset()")
        table, agents = self.table, self.possible_agents
        before, ply = table.earned, table.ply
        said = self._said(actions)
        while table.ply == ply and table.asked != OVER:
            table.answer(said[table.asked])
        terminated = table.asked == OVER
        truncated = not terminated and self.max_cycles is not None and table.ply >= self.max_cycles
        rewards = {agent: now - then for agent, now, then in zip(agents, table.earned, before, strict=True)}
        if terminated or truncated:
            self.agents = []
        if self.render_mode == "human":
            self.render()
        ends = dict.fromkeys(agents, terminated), dict.fromkeys(agents, truncated)
        return self._observations(), rewards, *ends, self._infos()

    def _said(self, actions: Mapping[str, Any]) -> dict[int, str]:
        """The texts of the seats to act: all of them are looked at before the first is played."""
        table, agents = self.table, self.possible_agents
        wanted = [p for p in table.acting if p not in table.forfeits]
        if missing := [agents[p] for p in wanted if agents[p] not in actions]:
            raise ValueError(f"an action of {', '.join(missing)} is missing")
        said = {p: table.action(actions[agents[p]]) for p in wanted}
        for text in said.values():
            if not isinstance(text, str):
                raise TypeError(f"an action is a str, got {type(text).__name__}")
        return said

    def _observations(self) -> dict[str, Any]:
        table, numeric = self.table, self.setup.codec is not None
        seen = [table.observation(seat) for seat in range(self.setup.players)]
        return {a: s if numeric else Observation(s) for a, s in zip(self.possible_agents, seen, strict=True)}

    def _infos(self) -> dict[str, dict[str, Any]]:
        table, rules = self.table, self.setup.rules
        to_act = table.acting if self.agents else ()
        return {
            agent: {**table.info(seat, seat in to_act and seat not in table.forfeits), "rules": rules[seat]}
            for seat, agent in enumerate(self.possible_agents)
        }
