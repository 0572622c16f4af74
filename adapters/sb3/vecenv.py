"""`ArenaVecEnv`: a batch of games in one process as Stable-Baselines3 wants them."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from arena.adapters.sb3.lanes import Lane, play_lanes
from arena.adapters.sb3.opponents import OpponentPool
from arena.adapters.sb3.trained import mark
from arena.game import Game
from arena.numeric import tokens
from arena.solo import Opponents
from arena.table import History, Setup, draw_seed, seed_of

__all__ = ["ArenaVecEnv"]

_OWN = ("n_envs", "seat", "opponents", "seed", "max_episode_steps")
_KEPT = 1024  # masks that are kept by their list of legal actions
Step = tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]


class ArenaVecEnv(VecEnv):
    """`MaskablePPO("MlpPolicy", ArenaVecEnv("ConnectFour-v0", 16)).learn(100_000)`.

    Arguments: `n_envs`, games side by side; `opponents`, as `arena.env.GameEnv` takes them, or an `OpponentPool`, of
    which every episode draws one; `seat`, a number, "random", or "alternate": game i begins in seat i, and each
    episode takes the next one; `seed`, as by `seed()`; `max_episode_steps`, steps after which an episode is truncated;
    `illegal`, `retries` and `history` as for `GameEnv`; and the game's own options. ValueError says what is allowed.

    Observations are float32 features or uint8 bytes of text, shape (n_envs, ...), actions int, masks one bool array
    (n_envs, actions). A step is your move and all answers to it, so that the reward, float32, is yours: a loss by the
    opponent's move pays -1 to you, at once. A finished game is dealt again in the same step; its info holds
    `terminal_observation`, `TimeLimit.truncated`, `episode` (`r`, `l`, `t`, as `Monitor` writes them), `seat`,
    `opponent` and `score` (1: you earned more than the others on average, 0.5: as much, 0: less; None: alone).

    With seeds s, s + 1, ... and the same actions, game i plays what `gymnasium.make(id, numeric=True)` plays after
    `reset(seed=s + i)` and resets without a seed. Opponents that are networks are asked once a round for all games
    that wait for them; those that wait for a server wait together. It is not pickled: make it anew.
    """

    lanes: Sequence[Lane] = ()  # so that one that could not be made can be closed

    def __init__(
        self,
        game: str | type[Game],
        n_envs: int = 8,
        *,
        opponents: Opponents | OpponentPool = "random",
        seat: int | str = "alternate",
        seed: int | None = None,
        illegal: str = "forfeit",
        retries: int = 0,
        history: History = "full",
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        for name, number in (("n_envs", n_envs), ("max_episode_steps", max_episode_steps)):
            if (number is not None or name == "n_envs") and (type(number) is not int or number < 1):
                raise ValueError(f"{name}={number!r}: allowed are numbers from 1")
        self.setup = setup = Setup(
            game, options, _OWN, illegal=illegal, retries=retries, show_legal=True, history=history, render_mode=None,
            numeric=True,
        )  # fmt: skip
        assert setup.codec is not None  # numeric
        self.codec, self.max_episode_steps = setup.codec, max_episode_steps
        self.pool = opponents if isinstance(opponents, OpponentPool) else None
        first = Lane(setup, seat, "random" if isinstance(opponents, OpponentPool) else opponents, 0)
        self.lanes = [first, *[Lane(setup, seat, first.given, i) for i in range(1, n_envs)]]  # the agents are shared
        space = setup.observation_space()
        mark(space, setup)
        self._seen = np.zeros((n_envs, *space.shape), space.dtype)  # type: ignore[misc]  # a Box has a shape
        self._masks = np.ones((n_envs, len(self.codec.table)), np.bool_)
        self._rows: dict[Sequence[str], NDArray[np.bool_]] = {}
        self._rngs: list[np.random.Generator | None] = [None] * n_envs
        self._actions: list[int] | None = None
        self._since = time.time()
        super().__init__(n_envs, space, setup.action_space())
        if seed is not None:
            self.seed(seed_of(seed))

    def reset(self) -> NDArray[Any]:
        """Deal all games anew, from the seeds that `seed` gave, else from streams that the last ones fixed."""
        for lane, seed in zip(self.lanes, self._seeds, strict=True):
            self._begin(lane, seed)
        self._reset_seeds()
        play_lanes(self.lanes)
        return self._look()

    def step_async(self, actions: Any) -> None:
        """Take the actions, one integer a game. Raises ValueError or TypeError before anything is played."""
        given = np.asarray(actions)
        if given.shape != (self.num_envs,):
            raise ValueError(f"actions of shape {given.shape} were given for {self.num_envs} games")
        if given.dtype.kind not in "iu":
            raise TypeError(f"a numeric action is an integer, got {given.dtype}")
        highest = len(self.codec.table) - 1
        if given.min() < 0 or given.max() > highest:
            raise ValueError(f"actions {given.min()} to {given.max()}: allowed are 0 to {highest}")
        self._actions = given.tolist()

    def step_wait(self) -> Step:
        """Observations, rewards, whether each episode is over, and infos; see `stable_baselines3`'s `VecEnv`."""
        if self._actions is None:
            raise ValueError("no step was begun: call step_async(actions) first")
        actions, self._actions = self._actions, None
        for lane, action in zip(self.lanes, actions, strict=True):
            lane.say(action)
        play_lanes(self.lanes)
        rewards, dones = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = []
        begun = []
        for i, lane in enumerate(self.lanes):
            reward, terminated = lane.pay()
            rewards[i] = reward
            truncated = not terminated and lane.length == self.max_episode_steps
            info: dict[str, Any] = {"TimeLimit.truncated": truncated}
            if terminated or truncated:
                dones[i] = True
                info |= self._ended(lane)
                self._begin(lane)
                begun.append(lane)
            infos.append(info)
        if begun:
            play_lanes(begun)
        return self._look(), rewards, dones, infos

    def step(self, actions: Any) -> Step:
        """`step_async` and `step_wait` in one."""
        self.step_async(actions)
        return self.step_wait()

    def _begin(self, lane: Lane, seed: int | None = None) -> None:
        rng = self._rngs[lane.number]
        if seed is not None or rng is None:
            rng = self._rngs[lane.number] = seeding.np_random(None if seed is None else seed_of(seed))[0]
        if seed is not None:
            lane.rewind()  # a seed fixes all that follows
        if self.pool is not None:
            lane.opponent = self.pool.draw()
            lane.given = lane.opponent.agent
        lane.begin(draw_seed(rng) if seed is None else seed_of(seed))

    def _ended(self, lane: Lane) -> dict[str, Any]:
        """What stands in the info of a game that is over."""
        score = lane.score()
        if self.pool is not None and lane.opponent is not None and score is not None:
            self.pool.record(lane.opponent, lane.seat, score)
        verdict = lane.table.verdicts[lane.seat]
        return {
            "terminal_observation": self._observation(lane),
            "episode": {
                "r": round(lane.total, 6), "l": lane.length, "t": round(time.time() - self._since, 6)
            },
            "seat": lane.seat,
            "opponent": lane.opponent.key if lane.opponent is not None else "",
            "score": score,
            "verdict": verdict,
        }  # fmt: skip

    def _observation(self, lane: Lane) -> NDArray[Any]:
        text = "" if self.codec.features is not None else lane.table.text(lane.seat)
        return self.codec.observation(lane.table.state, lane.seat, text)

    def _look(self) -> NDArray[Any]:
        """Write down what each game shows now; a copy of it."""
        seen, masks, rows, featured = self._seen, self._masks, self._rows, self.codec.features is not None
        for i, lane in enumerate(self.lanes):
            table, seat = lane.table, lane.seat
            seen[i] = table.state.features(seat) if featured else tokens(table.text(seat))
            legal = table.legal if table.asked == seat else ()
            row = rows.get(legal or ())
            masks[i] = self._row(legal or ()) if row is None else row
        return seen.copy()

    def _row(self, legal: Sequence[str]) -> NDArray[np.bool_]:
        """The mask of a list of legal actions, all ones for none; the latest are kept."""
        if len(self._rows) >= _KEPT:
            self._rows.clear()
        row = self._rows[legal] = self.codec.mask(tuple(legal)).view(np.bool_)
        return row

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, shape (n_envs, actions)."""
        return self._masks.copy()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds s, s + 1, ... for the games, from the next reset on; None: new ones are drawn."""
        if seed is None:
            self._rngs = [None] * self.num_envs
            self._reset_seeds()
        else:
            self._seeds = [seed_of(seed) + i for i in range(self.num_envs)]
        return self._seeds

    def state(self) -> dict[str, Any]:
        """Streams of seeds and whose turn each seat is, as JSON can hold it; games in progress are not in it."""
        streams = [None if rng is None else rng.bit_generator.state for rng in self._rngs]
        return {"streams": streams, "seats": [lane.alternates for lane in self.lanes]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave; the next reset deals from these streams. Raises ValueError for another size."""
        if len(state["streams"]) != self.num_envs:
            raise ValueError(f"the state is that of {len(state['streams'])} games, here are {self.num_envs}")
        self._reset_seeds()
        self._rngs = [None if given is None else seeding.np_random(0)[0] for given in state["streams"]]
        for rng, given in zip(self._rngs, state["streams"], strict=True):
            if rng is not None:
                rng.bit_generator.state = given
        for lane, seats in zip(self.lanes, state["seats"], strict=True):
            lane.alternates = list(seats)

    def set_options(self, options: Any = None) -> None:
        """Nothing can be set between episodes. Raises ValueError for any option."""
        if any(options if isinstance(options, list) else [options]):
            raise ValueError("reset takes no options: give them to ArenaVecEnv")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Of every game: `action_masks`, as sb3-contrib asks, or `render`. Raises AttributeError for another."""
        if method_name == "action_masks" and not (method_args or method_kwargs):
            masks = self.action_masks()
            return list(masks) if indices is None else [masks[i] for i in self._get_indices(indices)]
        if method_name == "render" and not (method_args or method_kwargs):
            return [self.lanes[i].table.state.render() for i in self._get_indices(indices)]
        raise AttributeError(f"{method_name!r} cannot be called: allowed are action_masks and render")

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of every game: `action_masks`, `game` (the position), `seat` or `render_mode`. Raises AttributeError."""
        return [self._attribute(attr_name, self.lanes[i]) for i in self._get_indices(indices)]

    def _attribute(self, name: str, lane: Lane) -> Any:
        if name == "render_mode":
            return None
        if name == "action_masks":
            return lambda: self._masks[lane.number].copy()
        if name == "seat":
            return lane.seat
        if name == "game":
            return lane.table.state
        raise AttributeError(f"a game has no {name!r}: allowed are action_masks, game, render_mode, seat")

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> NoReturn:
        """Refused with AttributeError: games are what the arguments made them."""
        raise AttributeError(f"{attr_name!r} cannot be set: make another ArenaVecEnv")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """True for `Monitor`, whose statistics are in the infos; False for anything else."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[None]:
        """There are no pictures: `env_method("render")` gives text."""
        return [None] * self.num_envs

    def close(self) -> None:
        """Let go of what the games and the agents hold."""
        for lane in self.lanes:
            lane.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an ArenaVecEnv is not pickled: make another one with the same arguments")
