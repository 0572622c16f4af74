"""What the two PettingZoo faces share: agents by name, their spaces, the seeds of episodes, pictures."""

from random import Random
from typing import Any

from gymnasium import Space

from arena.game import Game
from arena.table import RENDER_MODES, Setup, Table, seed_of

__all__ = ["OWN", "Observation", "Seated", "Seeds"]

OWN = ("max_cycles",)
"""Arguments that these faces take beside those of every face."""


class Observation(str):
    """Text with the `dtype` that PettingZoo's `api_test` looks for."""

    __slots__ = ()
    dtype = str


class Seated:
    """Seat p is agent `player_p`; the rest of an environment is its face's."""

    metadata: dict[str, Any]
    setup: Setup
    table: Table
    possible_agents: list[str]

    def _sit_down(self, setup: Setup, max_cycles: Any, *, everyone: bool) -> None:
        """`everyone`: all seats look at every ply (parallel). Raises ValueError for another `max_cycles`."""
        self.setup, self.table = setup, Table(setup, everyone=everyone)
        self.metadata = {
            "name": setup.id, "render_modes": RENDER_MODES, "render_fps": 1, "is_parallelizable": everyone,
        }  # fmt: skip
        self.render_mode = setup.render_mode
        self.max_cycles = _max_cycles(max_cycles)
        self.seeds = Seeds()
        self.possible_agents = [f"player_{seat}" for seat in range(setup.players)]
        self.agents: list[str] = []
        self._observation_spaces = {agent: setup.observation_space() for agent in self.possible_agents}
        self._action_spaces = {agent: setup.action_space() for agent in self.possible_agents}

    @property
    def game(self) -> Game:
        """The true position. Raises RuntimeError before the first reset."""
        if not hasattr(self.table, "state"):
            raise RuntimeError("no episode was begun: call reset()")
        return self.table.state

    def observation_space(self, agent: str) -> Space[Any]:
        """The space of the agent's observations, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """The space of the agent's actions, always the same object."""
        return self._action_spaces[agent]

    def render(self) -> Any:
        """The whole table as an onlooker who may know everything sees it."""
        self.game  # noqa: B018 - says so where there is nothing to show yet
        return self.table.render()

    def close(self) -> None:
        """Let go of what the game holds."""
        self.table.close()


def _max_cycles(value: Any) -> int | None:
    if value is None or (type(value) is int and value > 0):
        plies: int | None = value
        return plies
    raise ValueError(f"max_cycles={value!r}: allowed are None and numbers from 1")


class Seeds:
    """The seeds of an environment's episodes: those given, else drawn from a stream that the last given one fixes."""

    def __init__(self) -> None:
        self.given: int | None = None
        self.rng: Random | None = None

    def next(self, seed: int | None) -> int:
        """The seed of the next episode."""
        if seed is not None:
            self.given, self.rng = seed_of(seed), None
            return self.given
        if self.rng is None:
            self.rng = Random() if self.given is None else Random((4 << 64) + self.given)
        return self.rng.getrandbits(64)
