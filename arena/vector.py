"""The vector face: many episodes as a list of values in one process, equal to Gymnasium's own vector environments."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from arena.env import OWN
from arena.game import Game
from arena.solo import Opponents, Solo, play_on
from arena.table import RENDER_MODES, History, Setup, draw_seed, seed_of

__all__ = ["GameVectorEnv"]

Flags = NDArray[np.bool_]
SOMETIMES = ("rules", "reason")  # keys that not every info has


class GameVectorEnv(VectorEnv[Any, Any, Any]):
    """`gymnasium.make_vec("arena/ConnectFour-v0", num_envs=64)`.

    Arguments are those of `arena.env.GameEnv` and: `autoreset_mode`, "NextStep" (default), "SameStep" or "Disabled"
    (then `reset(options={"reset_mask": mask})`), as Gymnasium names them; `max_episode_steps`, steps after which an
    episode is truncated. Observations are a tuple of texts (numeric: one array), actions a sequence of `num_envs`.
    Step by step the same as `SyncVectorEnv` over `GameEnv` with the same seeds; opponents that wait for a server
    are asked in all episodes at once.
    """

    episodes: Sequence[Solo] = ()  # so that one that could not be made can be closed

    def __init__(
        self,
        game: str | type[Game],
        num_envs: int = 1,
        seat: int | str = 0,
        opponents: Opponents = "random",
        illegal: str = "forfeit",
        retries: int = 0,
        show_legal: bool = True,
        history: History = "full",
        render_mode: str | None = None,
        numeric: bool = False,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        if type(num_envs) is not int or num_envs < 1:
            raise ValueError(f"num_envs={num_envs!r}: allowed are numbers from 1")
        if max_episode_steps is not None and (type(max_episode_steps) is not int or max_episode_steps < 1):
            raise ValueError(f"max_episode_steps={max_episode_steps!r}: allowed are None and numbers from 1")
        own = (*OWN, "num_envs", "autoreset_mode", "max_episode_steps")
        self.setup = setup = Setup(
            game, options, own, illegal=illegal, retries=retries, show_legal=show_legal, history=history,
            render_mode=render_mode, numeric=numeric,
        )  # fmt: skip
        self.num_envs, self.render_mode, self.max_episode_steps = num_envs, render_mode, max_episode_steps
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = {"render_modes": RENDER_MODES, "render_fps": 1, "autoreset_mode": self.autoreset_mode}
        first = Solo(setup, seat, opponents)
        rest = [Solo(setup, seat, first.given) for _ in range(num_envs - 1)]  # the agents are shared
        self.episodes = [first, *rest]
        self.single_observation_space = setup.observation_space()
        self.single_action_space = setup.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._rngs: list[np.random.Generator | None] = [None] * num_envs
        self._steps = [0] * num_envs
        self._begun = False
        self._done = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """See `gymnasium.vector.VectorEnv.reset`: seed `s` gives `s, s + 1, ...`; `options` may hold `reset_mask`."""
        n = self.num_envs
        if isinstance(seed, np.ndarray):
            seed = seed.tolist()
        if seed is None or not isinstance(seed, Sequence):
            seed = [None] * n if seed is None else [seed_of(seed) + i for i in range(n)]
        if len(seed) != n:
            raise ValueError(f"{len(seed)} seeds were given for {n} environments")
        chosen = self._chosen(options or {})
        for i in chosen:
            self._begin(i, seed[i])
        play_on([self.episodes[i] for i in chosen])
        self._done[chosen], self._begun = False, True
        infos: dict[str, Any] = {}
        for i in chosen:
            infos = self._add_info(infos, self._first_info(i), i)
        return self._observations(), infos

    def _chosen(self, options: dict[str, Any]) -> list[int]:
        if unknown := sorted(options.keys() - {"reset_mask"}):
            raise ValueError(f"reset option {unknown[0]!r}: allowed is 'reset_mask'; the game's go to make_vec")
        mask = options.get("reset_mask")
        if mask is None:
            return list(range(self.num_envs))
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask must be a numpy array of {self.num_envs} bools")
        if not mask.any():
            raise ValueError("reset_mask must have at least one True")
        if not mask.all() and not self._begun:
            raise ResetNeeded("no episode was begun: call reset() without a mask first")
        return [int(i) for i in np.flatnonzero(mask)]

    def _begin(self, i: int, seed: int | None = None) -> None:
        rng = self._rngs[i]
        if seed is not None or rng is None:
            rng = self._rngs[i] = seeding.np_random(None if seed is None else seed_of(seed))[0]
        self.episodes[i].begin(draw_seed(rng) if seed is None else seed_of(seed))
        self._steps[i] = 0

    def _first_info(self, i: int) -> dict[str, Any]:
        solo = self.episodes[i]
        return {**solo.info(), "rules": self.setup.rules[solo.seat]}

    def step(
        self, actions: Sequence[Any] | NDArray[Any]
    ) -> tuple[Any, NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """See `gymnasium.vector.VectorEnv.step`. Raises ValueError unless there are `num_envs` actions.

        Raises TypeError for an action of another type than the space's, before anything was played.
        """
        n = self.num_envs
        if len(actions) != n:
            raise ValueError(f"{len(actions)} actions were given for {n} environments")
        again = self._again()
        playing = [i for i in range(n) if i not in again]
        for i in playing:
            self.episodes[i].check(actions[i])
        for i in again:
            self._begin(i)
        for i in playing:
            self.episodes[i].say(actions[i])
        play_on(self.episodes)
        rewards = np.zeros(n)
        terminated, truncated = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        for i in playing:
            rewards[i], terminated[i] = self.episodes[i].pay()
            self._steps[i] += 1
            truncated[i] = self.max_episode_steps is not None and self._steps[i] >= self.max_episode_steps
        self._done = terminated | truncated
        finals = self._restarted() if self.autoreset_mode is AutoresetMode.SAME_STEP else {}
        if self.render_mode == "human":
            self.render()
        return self._observations(), rewards, terminated, truncated, self._infos(again, finals)

    def _again(self) -> set[int]:
        """The episodes that begin anew in this step."""
        done = {int(i) for i in np.flatnonzero(self._done)}
        if done and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ValueError(f"episodes {sorted(done)} are over: reset(options={{'reset_mask': mask}}) first")
        return done if self.autoreset_mode is AutoresetMode.NEXT_STEP else set()

    def _restarted(self) -> dict[int, dict[str, Any]]:
        """Begin the finished episodes anew; what they ended with."""
        done = [int(i) for i in np.flatnonzero(self._done)]
        ended = [self.episodes[i] for i in done]
        finals = {
            i: {"final_obs": solo.observation(), "final_info": solo.info()} for i, solo in zip(done, ended, strict=True)
        }
        for i in done:
            self._begin(i)
        play_on(ended)
        return finals

    def _infos(self, again: set[int], finals: dict[int, dict[str, Any]]) -> dict[str, Any]:
        begun = again | finals.keys()
        rows = [self._first_info(i) if i in begun else solo.info() for i, solo in enumerate(self.episodes)]
        always = [key for key in rows[0] if key not in SOMETIMES]
        infos = _columns(rows, always)
        for i, row in enumerate(rows):
            if len(row) > len(always):
                infos = self._add_info(infos, {key: row[key] for key in SOMETIMES if key in row}, i)
        for i, final in finals.items():
            infos = self._add_info(infos, final, i)
        return infos

    def _observations(self) -> Any:
        seen = [solo.observation() for solo in self.episodes]
        return tuple(seen) if self.setup.codec is None else np.stack(seen)

    def render(self) -> tuple[Any, ...]:
        """The table of every episode. Raises ResetNeeded before the first reset."""
        if not self._begun:
            raise ResetNeeded("no episode was begun: call reset()")
        return tuple([solo.table.render() for solo in self.episodes])

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, a row an episode (`numeric=True`)."""
        return np.stack([solo.table.mask(solo.seat) for solo in self.episodes]).view(np.bool_)

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of what the games and the agents hold."""
        for solo in self.episodes:
            solo.close()


def _columns(rows: list[dict[str, Any]], keys: list[str]) -> dict[str, Any]:
    """What `VectorEnv._add_info` makes of keys that all infos have, at a third of the cost."""
    columns: dict[str, Any] = {}
    for key in keys:
        values = [row[key] for row in rows]
        if isinstance(values[0], int):
            column = np.array(values)
        elif isinstance(values[0], np.ndarray):
            column = np.stack(values)
        else:
            column = np.empty(len(rows), object)
            for i, value in enumerate(values):
                column[i] = value  # one by one: a list of tuples would become a matrix
        columns[key], columns[f"_{key}"] = column, np.ones(len(rows), np.bool_)
    return columns


def _mode(value: Any) -> AutoresetMode:
    try:
        return AutoresetMode(value)
    except ValueError:
        allowed = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise ValueError(f"autoreset_mode={value!r}: allowed are {allowed}") from None
