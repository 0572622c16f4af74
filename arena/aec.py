"""The PettingZoo face for turns: seats are asked one after the other.

All checks are in the class: a PettingZoo wrapper costs more than most games do.
"""

from typing import Any

from pettingzoo import AECEnv

from arena.game import Game
from arena.seated import OWN, Observation, Seated
from arena.table import OVER, History, Setup

__all__ = ["GameAECEnv"]


class GameAECEnv(Seated, AECEnv):  # type: ignore[misc]  # pettingzoo ships no types
    """`pettingzoo.make("aec", "arena/LiarsDice-v0", players=4)`.

    Seat p is agent `player_p`. Arguments are those of `arena.env.GameEnv` without `seat` and `opponents`, and
    `max_cycles`: after so many plies all seats are truncated.

    Seats that move at once are asked one after the other; nobody sees an answer before all are in. After a wrong
    action with retries left the same agent is selected again, its observation headed by the reason. A seat that
    forfeits in a game of more than two is played for and ends at the least return, which it is paid at once; all
    seats stay in `agents` until the game is over. `infos[agent]` is fresh when the agent is selected and at the end:
    the keys of `arena.env.GameEnv`, `rules` always. `agent_selection` tells who acts, in games where that is a secret
    too.

    `reset(seed=s)` deals as every face does; without a seed, one is drawn from a stream that the last seed fixes.
    `reset` takes no options, and ignores what it is given (`api_test` gives some). RuntimeError where `reset` is due.
    """

    def __init__(
        self,
        game: str | type[Game],
        illegal: str = "forfeit",
        retries: int = 0,
        show_legal: bool = True,
        history: History = "full",
        render_mode: str | None = None,
        numeric: bool = False,
        max_cycles: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        setup = Setup(
            game, options, OWN, illegal=illegal, retries=retries, show_legal=show_legal, history=history,
            render_mode=render_mode, numeric=numeric,
        )  # fmt: skip
        self._sit_down(setup, max_cycles, everyone=False)
        self.rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        self._cumulative_rewards: dict[str, float] = {}
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._nothing = dict.fromkeys(self.possible_agents, 0.0)
        self._nobody = dict.fromkeys(self.possible_agents, False)
        self._rules = self.setup.rules
        self._numeric = self.setup.codec is not None
        self._paid, self._over = False, True

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """See `pettingzoo.AECEnv.reset`."""
        self.table.deal(self.seeds.next(seed))
        agents = self.possible_agents
        self.agents = agents[:]
        self.rewards, self._cumulative_rewards = self._nothing.copy(), self._nothing.copy()
        self.terminations, self.truncations = self._nobody.copy(), self._nobody.copy()
        self.infos = {agent: {} for agent in agents}
        self._paid = self._over = False
        self._select()
        if self.render_mode == "human":
            self.render()

    def _select(self) -> None:
        """Point at the agent to be asked, or at the first that has to leave."""
        table = self.table
        asked = table.asked
        if asked == OVER:
            self._end(self.terminations)
        elif self.max_cycles is not None and table.ply >= self.max_cycles:
            self._end(self.truncations)
        else:
            self.agent_selection = agent = self.possible_agents[asked]
            self.infos[agent] = info = table.info(asked)
            info["rules"] = self._rules[asked]

    def _end(self, how: dict[str, bool]) -> None:
        self._over = True
        self.agent_selection = self.agents[0]
        for agent, seat in self._seats.items():
            how[agent] = True
            self.infos[agent] = info = self.table.info(seat, acts=False)
            info["rules"] = self._rules[seat]

    def observe(self, agent: str) -> Any:
        """What the agent sees now."""
        if not self.agents:
            raise RuntimeError("no episode goes on: call reset()")
        if (seat := self._seats.get(agent)) is None:
            raise ValueError(f"agent {agent!r}: allowed are {', '.join(self.possible_agents)}")
        return self.table.observation(seat) if self._numeric else Observation(self.table.text(seat))

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Observation, reward since the last turn, terminated, truncated and info of the selected agent."""
        if not self.agents:
            raise RuntimeError("no episode goes on: call reset()")
        agent = self.agent_selection
        seen: Any = None
        if observe:
            table, seat = self.table, self._seats[agent]
            if self._numeric:
                seen = table.observation(seat)
            else:
                seen = Observation(table.text(seat) if table.talks or table.note else table.state.observation(seat))
        return (
            seen,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def step(self, action: Any) -> None:
        """The action of the selected agent; None for one that has to leave.

        Raises TypeError for an action of another type than the space's, RuntimeError where a reset is due.
        """
        if self._over:
            self._leave(action)
            return
        table = self.table
        before = table.earned
        table.answer(table.action(action) if self._numeric else action)
        self._cumulative_rewards[self.agent_selection] = 0.0
        earned = table.earned
        if earned != before:
            self._pay(earned, before)
        elif self._paid:
            self._clear_rewards()
        self._select()
        if self.render_mode == "human":
            self.render()

    def _pay(self, earned: tuple[float, ...], before: tuple[float, ...]) -> None:
        for agent, now, then in zip(self.possible_agents, earned, before, strict=True):
            self.rewards[agent] = reward = now - then
            self._cumulative_rewards[agent] += reward
        self._paid = True

    def _clear_rewards(self) -> None:
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._paid = False

    def _leave(self, action: Any) -> None:
        if not self.agents:
            raise RuntimeError("no episode goes on: call reset()")
        if action is not None:
            raise ValueError("the game is over for this agent: the only action is None")
        gone = self.agents.pop(0)
        del self.terminations[gone], self.truncations[gone], self.infos[gone]
        del self._cumulative_rewards[gone], self.rewards[gone]
        if self._paid:
            self._clear_rewards()
        if self.agents:
            self.agent_selection = self.agents[0]
