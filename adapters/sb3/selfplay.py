"""Self-play: the learner meets what it has been, and is rated while it learns."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from arena.adapters.sb3.evaluation import Row, rows_of, total
from arena.adapters.sb3.network import Policy
from arena.adapters.sb3.opponents import OpponentPool, Record
from arena.adapters.sb3.player import NetworkAgent, SB3Agent, is_masked
from arena.adapters.sb3.saving import replacing

__all__ = ["Rate", "SelfPlayCallback"]

Rate = Callable[[Sequence[Row]], Mapping[str, float]]
"""Elo by player, from all results so far."""


class SelfPlayCallback(BaseCallback):
    """Every so many steps a copy of the policy joins the pool that `ArenaVecEnv` draws opponents from.

    pool = OpponentPool({"latest": 1, "prioritised": 1, "minimax?depth=2": 0.5})
    model = MaskablePPO("MlpPolicy", ArenaVecEnv("ConnectFour-v0", 16, opponents=pool))
    model.learn(200_000, SelfPlayCallback(pool, every=10_000))

    `every`: steps between snapshots; the first is taken before the first step. `folder`: snapshots are saved there as
    `step-N.zip`, which play as `sb3:` agents; what the pool thins out is deleted. `gate`: a snapshot joins only if the
    learner has scored at least so much (1 a win, 0.5 a draw) in its last games; it is decided at the first look after
    `gate_games` of them, and counted anew from there. `deterministic`: snapshots play their likeliest action instead of
    drawing; those of a DQN, which has no odds, always do.

    `rate`: a function from results to Elo by player, asked at every look. The games since the last look are those of
    the player "step N", N being the step of the look: the policy was still changing while they were played. Ratings go
    to the logger (`selfplay/rating`, `selfplay/score`, `selfplay/snapshots`), to the pool (sampler "near"), and, one
    JSON object a line, to the file `log`.

    Steps are the model's: to learn on with the same pool, `learn(..., reset_num_timesteps=False)`. ValueError says what
    is allowed; a pool that draws by "near" needs `rate`, or ratings that it has already.
    """

    def __init__(
        self,
        pool: OpponentPool,
        every: int = 10_000,
        *,
        folder: str | Path | None = None,
        gate: float = 0.0,
        gate_games: int = 100,
        deterministic: bool = False,
        rate: Rate | None = None,
        log: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if type(every) is not int or every < 1:
            raise ValueError(f"every={every!r}: allowed are numbers from 1")
        if isinstance(gate, bool) or not isinstance(gate, int | float) or not 0 <= gate <= 1:
            raise ValueError(f"gate={gate!r}: allowed are 0 to 1")
        if type(gate_games) is not int or gate_games < 1:
            raise ValueError(f"gate_games={gate_games!r}: allowed are numbers from 1")
        if "near" in pool.mixture and rate is None and not pool.ratings:
            raise ValueError('the pool draws by "near", which needs ratings: give SelfPlayCallback a rate=')
        self.pool, self.every, self.gate, self.gate_games = pool, every, float(gate), gate_games
        self.deterministic, self.rate = deterministic, rate
        self.folder = None if folder is None else Path(folder)
        self.log = None if log is None else Path(log)
        self.rows: list[Row] = []
        """All results so far."""
        self.next = 0
        """The step of the next look."""
        self.proven = Record()
        """What the gate will look at."""

    def _on_training_start(self) -> None:
        """Raises ValueError for a pool that is ahead of the model."""
        ahead = [known.key for known in self.pool.snapshots if (known.step or 0) > self.num_timesteps]
        if ahead:
            raise ValueError(
                f"the pool holds {ahead[-1]}, the model is at step {self.num_timesteps}: to go on, "
                "learn(..., reset_num_timesteps=False); to begin anew, make another pool"
            )
        if not self.pool.snapshots:
            self._add()
        if self.next <= self.num_timesteps:
            self._plan()

    def _plan(self) -> None:
        self.next = (self.num_timesteps // self.every + 1) * self.every

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.next:
            self.look()
            self._plan()
        return True

    def _on_training_end(self) -> None:
        self.tidy()

    def look(self) -> None:
        """Rate the learner by its games since the last look, and let a snapshot of it join the pool."""
        pool, name = self.pool, f"step {self.num_timesteps}"
        recent = pool.take()
        record = total([(result, games) for (_, _, result), games in recent.items()])
        self.rows += rows_of(name, recent)
        passes = self._passes(record)
        if self.rate is not None and self.rows:
            pool.ratings = {player: round(float(elo), 2) for player, elo in self.rate(self.rows).items()}
            pool.rating = pool.ratings.get(name, pool.rating)
        if passes and all(known.step != self.num_timesteps for known in pool.snapshots):
            self._add()
        self._tell(record.games, record.mean, passes)

    def _passes(self, record: Record) -> bool:
        if not self.gate:
            return True
        self.proven = Record(*[a + b for a, b in zip(self.proven, record, strict=True)])
        if self.proven.games < self.gate_games:
            return False
        mean, self.proven = self.proven.mean, Record()
        return mean >= self.gate

    def _add(self) -> None:
        step = self.num_timesteps
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.file(step)) as path:
                self.model.save(path)
        self.pool.add(step, self._snapshot(step, Policy.of(self.model), is_masked(self.model)))

    def _snapshot(self, step: int, policy: Policy, masked: bool) -> NetworkAgent:
        agent = NetworkAgent(policy, masked, self.deterministic or policy.valued)
        agent.name = f"step {step}"
        return agent

    def file(self, step: int) -> Path:
        """Where the snapshot of a step is. Raises ValueError without a folder."""
        if self.folder is None:
            raise ValueError("snapshots are not saved: give SelfPlayCallback a folder")
        return self.folder / f"step-{step}.zip"

    def _tell(self, games: int, mean: float, joined: bool) -> None:
        pool = self.pool
        self.logger.record("selfplay/snapshots", len(pool.snapshots))
        if games:
            self.logger.record("selfplay/score", mean)
        if pool.rating is not None:
            self.logger.record("selfplay/rating", pool.rating)
        if self.log is None:
            return
        line = {
            "step": self.num_timesteps,
            "rating": pool.rating,
            "games": games,
            "score": round(mean, 4),
            "joined": joined,
            "snapshots": len(pool.snapshots),
            "ratings": pool.ratings,
        }
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def tidy(self) -> None:
        """Delete the files of snapshots that are no longer in the pool."""
        if self.folder is None:
            return
        kept = {self.file(known.step) for known in self.pool.snapshots if known.step is not None}
        for path in self.folder.glob("step-*.zip"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def state(self) -> dict[str, Any]:
        """What goes on after a restart, the pool included, as JSON can hold it."""
        rows = [list(row) for row in self.rows]
        return {"next": self.next, "rows": rows, "proven": list(self.proven), "pool": self.pool.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave; snapshots are read from the folder. Raises ValueError if one is missing."""
        self.next, self.rows = state["next"], [Row(*row) for row in state["rows"]]
        self.proven = Record(*state["proven"])
        self.pool.restore(state["pool"], self._saved)

    def _saved(self, step: int) -> NetworkAgent:
        agent = SB3Agent(str(self.file(step)), deterministic=True)
        return self._snapshot(step, agent.policy, agent.masked)
