"""The Gymnasium face: one seat is yours, agents hold the others and move inside `step`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from arena.game import Game
from arena.solo import Opponents, Solo
from arena.table import RENDER_MODES, History, Setup, draw_seed, seed_of

__all__ = ["GameEnv"]

OWN = ("seat", "opponents")
METADATA = {"render_modes": RENDER_MODES, "render_fps": 1}


class GameEnv(gymnasium.Env[Any, Any]):
    """`gymnasium.make("arena/ConnectFour-v0", seat=0, opponents="random")`.

    Arguments: `seat`, a number or "random" (drawn at each reset); `opponents`, a spec string or `Agent` for all other
    seats, or a list with one for each (house seats may be left out); `illegal`, `retries`, `show_legal`: see
    `arena.referee.Referee`, for opponents too; `history`: "full" (all you have seen, then the position), "new" (what
    came since your last action) or the number of last events; `render_mode`: None, "ansi" (`render()` returns the
    whole table as an onlooker sees it) or "human" (it is printed at each step); `numeric`: see `arena.numeric`; and
    the game's own options. ValueError says what is allowed. Agents given as objects work, but such a spec does not
    survive JSON.

    An action is any `str`. The reward is the change of your return, by what others do too. `info`: `legal_actions`
    (None: open text, or not shown), `player`, `turn` (how many you have had), `verdict` on your last action (and
    `reason`, if it was not legal), `retries_left`, and at reset `rules`. A retry is a step: reward 0, the same
    observation headed by the reason. Your forfeit ends the episode at the least return; the forfeit of the other of
    two in a zero-sum game at the greatest.

    `reset(seed=s)` deals as `arena.match.play(seed=s)` does, and the same agents play the same; without a seed, one
    is drawn from `np_random`. `reset` takes no options. A reset may land on a finished game (you never got a turn):
    the first step then ignores its action, pays, and terminates. An opponent that raises, raises out of `step` or
    `reset`: then reset. Gymnasium knows no void episode.
    """

    metadata: dict[str, Any] = METADATA

    def __init__(
        self,
        game: str | type[Game],
        seat: int | str = 0,
        opponents: Opponents = "random",
        illegal: str = "forfeit",
        retries: int = 0,
        show_legal: bool = True,
        history: History = "full",
        render_mode: str | None = None,
        numeric: bool = False,
        **options: Any,
    ) -> None:
        self.setup = Setup(
            game, options, OWN, illegal=illegal, retries=retries, show_legal=show_legal, history=history,
            render_mode=render_mode, numeric=numeric,
        )  # fmt: skip
        self.render_mode = render_mode
        self.solo = Solo(self.setup, seat, opponents)
        self.observation_space = self.setup.observation_space()
        self.action_space = self.setup.action_space()

    @property
    def game(self) -> Game:
        """The true position. Raises ResetNeeded before the first reset."""
        if not hasattr(self.solo.table, "state"):
            raise ResetNeeded("no episode was begun: call reset()")
        return self.solo.table.state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """See `gymnasium.Env.reset`. Raises ValueError for a seed out of range and for any option."""
        if options:
            named = ", ".join(map(str, options))
            raise ValueError(f"reset takes no options (got {named}): give them to gymnasium.make")
        if seed is not None:
            super().reset(seed=seed_of(seed))
        self.solo.deal(draw_seed(self.np_random) if seed is None else seed_of(seed))
        if self.render_mode == "human":
            self.render()
        solo = self.solo
        return solo.observation(), {**solo.info(), "rules": self.setup.rules[solo.seat]}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`. Raises ResetNeeded once it is over, TypeError for an action of another type."""
        solo = self.solo
        reward, over = solo.act(action)
        if self.render_mode == "human":
            self.render()
        return solo.observation(), reward, over, False, solo.info()

    def render(self) -> Any:
        """The whole table as an onlooker who may know everything sees it."""
        self.game  # noqa: B018 - says so where there is nothing to show yet
        return self.solo.table.render()

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now (`numeric=True`), as sb3-contrib's MaskablePPO asks."""
        return self.solo.table.mask(self.solo.seat).view(np.bool_)

    def close(self) -> None:
        """Let go of what the game and the agents hold."""
        self.solo.close()
