"""A whole training run in a folder: checkpoints, metrics, evaluations; the same call goes on with it after a kill."""

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from arena.adapters.sb3.evaluation import evaluate, total
from arena.adapters.sb3.network import Policy
from arena.adapters.sb3.opponents import OpponentPool, Record
from arena.adapters.sb3.player import NetworkAgent, algorithm_class, is_masked, load_model
from arena.adapters.sb3.saving import generators, replacing, restore_generators
from arena.adapters.sb3.selfplay import Rate, SelfPlayCallback
from arena.adapters.sb3.vecenv import ArenaVecEnv
from arena.registry import AgentSpec, make_agent, make_game

__all__ = ["Plan", "Progress", "Stopped", "Training", "settings"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained, and how; a run's folder keeps it, and is gone on with only by the same plan."""

    game: str
    options: dict[str, Any] = {}
    algorithm: str = "MaskablePPO"
    opponents: dict[str, float] = msgspec.field(default_factory=lambda: {"latest": 1.0, "uniform": 1.0})
    """The mixture of an `OpponentPool`."""
    n_envs: int = 16
    net: tuple[int, ...] = (64, 64)
    lr: float | None = None
    """The learning rate; None: as `settings` has it."""
    seed: int = 0
    every: int = 10_000
    """Steps between snapshots of the learner."""


class Progress(NamedTuple):
    """How far a run is."""

    step: int
    steps: int
    reward: float | None
    """Mean of the last hundred episodes."""
    rating: float | None
    scores: Mapping[str, Record]
    """The last evaluation, by opponent."""


class Stopped(Exception):
    """The run was asked to stop; all is saved."""


def settings(algorithm: str, n_envs: int) -> dict[str, Any]:
    """Arguments for an algorithm of Stable-Baselines3 that suit `n_envs` games on a CPU; what is not named is theirs.

    PPO: rollouts of 1,024 steps, whatever `n_envs` is, in batches of 256, whose gradients cost a third of those of
    four batches of 64, at a learning rate of 0.001 to make up for them; Adam in torch's fused build, which computes
    the same. DQN: a replay buffer that fits into memory.
    """
    if algorithm in ("PPO", "MaskablePPO"):
        optimizer = {"optimizer_kwargs": {"eps": 1e-5, "fused": True}}
        steps = max(2, 1024 // n_envs)
        return {"n_steps": steps, "batch_size": 256, "learning_rate": 1e-3, "policy_kwargs": optimizer}
    if algorithm == "DQN":
        return {"buffer_size": 100_000, "learning_starts": 1_000, "policy_kwargs": {}}
    return {"policy_kwargs": {}}


class Training:
    """`Training(plan, folder).run(100_000)`; the same again goes on where the last checkpoint was.

    In the folder: `run.json`, the plan; `model.zip`, the latest policy, which plays as `sb3:folder/model.zip`;
    `checkpoints/`, the last whole one: model, optimizer, pool, counts, generators; `opponents/`, snapshots;
    `metrics.jsonl` and `ratings.jsonl`; `tensorboard/`, where that is installed. Lines that were written after the
    last checkpoint are cut off when a run goes on.

    What goes on is the same but for these: games in progress are dealt anew, so that the run is not, bit for bit,
    the one that was never stopped; and a DQN begins with an empty replay buffer.

    `rate`: as for `SelfPlayCallback`. `watch`: called with `Progress` at every rollout. Raises ValueError for what
    the plan may not be, or a folder that holds another run.
    """

    def __init__(
        self,
        plan: Plan,
        folder: str | Path,
        *,
        rate: Rate | None = None,
        watch: Callable[[Progress], None] | None = None,
        save_every: int = 20_000,
        eval_every: int = 20_000,
        anchors: tuple[str, ...] = ("random",),
        games: int = 100,
    ) -> None:
        for name, number in (("save_every", save_every), ("eval_every", eval_every), ("games", games)):
            if type(number) is not int or number < 1:
                raise ValueError(f"{name}={number!r}: allowed are numbers from 1")
        _check(plan)
        for name in (*anchors, *plan.opponents):
            if AgentSpec.parse(name).name == "human":
                raise ValueError(f"{name} cannot be trained against: nobody answers between the steps")
        for anchor in anchors:
            make_agent(anchor)
        self.plan, self.folder, self.watch = plan, Path(folder), watch
        self.save_every, self.eval_every, self.anchors, self.games = save_every, eval_every, anchors, games
        self._check_plan()
        self.stopping = False
        """Set it, and the run ends, all saved, before its next rollout."""
        self.pool = OpponentPool(plan.opponents, seed=plan.seed)
        self.env = self._env()
        self.selfplay = _SelfPlay(
            self.pool, plan.every, folder=self.folder / "opponents", rate=rate, log=self.folder / "ratings.jsonl"
        )
        self.scores: dict[str, Record] = {}
        self.saved = -1
        """The step of the last checkpoint."""
        self.evaluated = 0
        self.alone = len(self.env.lanes[0].agents) == len(self.env.setup.game.house)

    def _env(self) -> ArenaVecEnv:
        plan = self.plan
        return ArenaVecEnv(
            plan.game, plan.n_envs, opponents=self.pool, seed=plan.seed, illegal=self.illegal, **plan.options
        )

    @property
    def illegal(self) -> str:
        """What the referee does about illegal moves: an algorithm that is shown no masks makes them all the time."""
        return "forfeit" if self.plan.algorithm == "MaskablePPO" else "random"

    def _fresh(self) -> Any:
        plan = self.plan
        own = settings(plan.algorithm, plan.n_envs)
        own["policy_kwargs"]["net_arch"] = list(plan.net)
        if plan.lr is not None:
            own["learning_rate"] = plan.lr
        return algorithm_class(plan.algorithm)("MlpPolicy", self.env, seed=plan.seed, device="cpu", **own)

    def run(self, steps: int) -> Progress:
        """Train until `steps` are done in all, rounded up to a whole rollout; gives where it ended.

        Raises `Stopped` after `stopping` was set, ValueError where another process trains in the folder.
        """
        if type(steps) is not int or steps < 1:
            raise ValueError(f"steps={steps!r}: allowed are numbers from 1")
        self.steps = steps
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder):
            self._check_plan()
            with replacing(self.folder / "run.json") as path:
                path.write_bytes(msgspec.json.format(msgspec.json.encode(self.plan)))
            self.model = model = self._resumed() or self._fresh()
            self.model.set_logger(self._logger())
            if model.num_timesteps < steps:
                callback = CallbackList([self.selfplay, _Keeper(self)])
                model.learn(steps - model.num_timesteps, callback, reset_num_timesteps=model.num_timesteps == 0)
                self.evaluate()
                self.save()
                if self.watch is not None:
                    self.watch(self.progress())
            model.logger.close()
        return self.progress()

    def _check_plan(self) -> None:
        """Raise ValueError where the folder holds another run, or something else."""
        path, plan = self.folder / "run.json", self.plan
        if not path.exists():
            if any(self.folder.glob("[!.]*")):
                raise ValueError(f"{self.folder} holds other things than a run: name a new folder")
            return
        with _readable(path):
            known = msgspec.json.decode(path.read_bytes(), type=Plan)
        differing = [name for name in plan.__struct_fields__ if getattr(known, name) != getattr(plan, name)]
        if differing:
            told = ", ".join([f"{name} {getattr(known, name)!r}, not {getattr(plan, name)!r}" for name in differing])
            raise ValueError(f"{self.folder} holds a run with {told}: for another plan, name a new folder")

    def step(self) -> int:
        """The step of the last whole checkpoint, 0 where there is none."""
        path = self._checkpoint()
        return 0 if path is None else _step_of(path)

    def _checkpoint(self) -> Path | None:
        return max((self.folder / "checkpoints").glob("step-*"), key=_step_of, default=None)

    def _resumed(self) -> Any:
        """The model as the last checkpoint has it, pool and generators too; None: there is none."""
        path = self._checkpoint()
        if path is None:
            if (self.folder / "model.zip").exists():
                raise ValueError(f"{self.folder} has a model and no checkpoint to go on from: name a new folder")
            for name in ("metrics.jsonl", "ratings.jsonl"):
                (self.folder / name).unlink(missing_ok=True)
            return None
        with _readable(path):
            state = msgspec.json.decode((path / "state.json").read_bytes())
            model = load_model(path / "model.zip", self.plan.algorithm, env=self.env, seed=self.plan.seed)
        self.selfplay.restore(state["selfplay"])
        self.env.restore(state["env"])
        self.scores = {name: Record(*counts) for name, counts in state["scores"].items()}
        self.evaluated, self.saved = state["evaluated"], model.num_timesteps
        for name in ("metrics.jsonl", "ratings.jsonl"):
            _cut(self.folder / name, model.num_timesteps)
        self.selfplay.tidy()
        self._publish(path)  # a kill may have come between the checkpoint and this
        restore_generators(state["generators"])
        return model

    def _publish(self, checkpoint: Path) -> None:
        """Put the model of a checkpoint where `sb3:` finds it."""
        with replacing(self.folder / "model.zip") as path:
            shutil.copyfile(checkpoint / "model.zip", path)

    def save(self) -> None:
        """Write a checkpoint, and the model where `sb3:` finds it; older checkpoints go."""
        step = self.model.num_timesteps
        if step == self.saved:
            return
        folder = self.folder / "checkpoints"
        folder.mkdir(exist_ok=True)
        state = {
            "selfplay": self.selfplay.state(),
            "env": self.env.state(),
            "scores": self.scores,
            "evaluated": self.evaluated,
            "generators": generators(),
        }
        with replacing(folder / f"step-{step}") as path:
            path.mkdir()
            self.model.save(path / "model.zip")
            (path / "state.json").write_bytes(msgspec.json.encode(state))
        for old in folder.glob("step-*"):
            if old.name != f"step-{step}":
                shutil.rmtree(old)
        self._publish(folder / f"step-{step}")
        self.selfplay.tidy()
        self.saved = step

    def evaluate(self) -> None:
        """Play the anchors as `sb3:` plays, and log the scores at this step; a game for one has its rewards already."""
        plan, model = self.plan, self.model
        self.evaluated = model.num_timesteps
        if self.alone:
            return
        agent = NetworkAgent(Policy.of(model), is_masked(model), deterministic=True)
        for name in self.anchors:
            counts = evaluate(
                agent, plan.game, name, self.games, seed=plan.seed, options=plan.options, illegal=self.illegal
            )
            self.scores[name] = total([(result, games) for (_, result), games in counts.items()])
        # At once: the next line of the logger is that of the next rollout, and after the last there is none.
        means: dict[str, Any] = {f"eval/{name}": self.scores[name].mean for name in self.anchors}
        for writer in model.logger.output_formats:
            writer.write(means, dict.fromkeys(means, ()), model.num_timesteps)

    def progress(self) -> Progress:
        """How far it is."""
        rewards = [episode["r"] for episode in self.model.ep_info_buffer or ()]
        mean = sum(rewards) / len(rewards) if rewards else None
        return Progress(self.model.num_timesteps, self.steps, mean, self.pool.rating, dict(self.scores))

    def between(self) -> None:
        """What is due between two rollouts. Raises Stopped."""
        step = self.model.num_timesteps
        if step // self.eval_every > self.evaluated // self.eval_every:
            self.evaluate()
        if self.watch is not None:
            self.watch(self.progress())
        stopping = self.stopping  # read once: a signal may set it at any moment
        if stopping or step // self.save_every > self.saved // self.save_every:
            self.save()
        if stopping:
            self.model.logger.close()
            raise Stopped

    def _logger(self) -> Logger:
        writers: list[KVWriter] = [_Lines(self.folder / "metrics.jsonl")]
        if find_spec("tensorboard") is not None:
            writers.append(TensorBoardOutputFormat(str(self.folder / "tensorboard")))
        return Logger(str(self.folder), writers)


class _SelfPlay(SelfPlayCallback):
    """Snapshots that were thinned out are deleted after a checkpoint alone: until then the last one may need them."""

    def _on_training_end(self) -> None:
        pass


class _Keeper(BaseCallback):
    """Between two rollouts the model is whole: all that was seen has been learnt."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self.training_run = training

    def _on_rollout_start(self) -> None:
        self.training_run.between()

    def _on_step(self) -> bool:
        return True


class _Lines(KVWriter):
    """One JSON object a line, added to what is there."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", encoding="utf-8")

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """See `KVWriter.write`."""
        numbers = {key: value for key, value in key_values.items() if not isinstance(value, str)}
        line = {"step": step, **{key: round(float(value), 6) for key, value in sorted(numbers.items())}}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def close(self) -> None:
        """See `KVWriter.close`."""
        self.file.close()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What is damaged is named."""
    try:
        yield
    except (msgspec.DecodeError, ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read ({error}): name a new folder") from error


def _check(plan: Plan) -> None:
    """Raise ValueError for what neither the game nor the pool will refuse."""
    algorithm_class(plan.algorithm)
    make_game(plan.game, 0, plan.options)  # ArenaVecEnv has arguments of its own that are no options of a game
    if plan.lr is not None and not (isfinite(plan.lr) and plan.lr > 0):
        raise ValueError(f"lr={plan.lr!r}: allowed are finite numbers above 0")
    if not all(type(size) is int and size > 0 for size in plan.net):
        raise ValueError(f"net={plan.net!r}: allowed are sizes from 1")
    if not 0 <= plan.seed < 1 << 32:
        raise ValueError(f"seed={plan.seed}: allowed are 0 to 2**32 - 1")


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def _cut(path: Path, step: int) -> None:
    """Leave the lines up to a step; one that was cut in the middle goes too."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except ValueError:  # the process was killed while it wrote
            continue
    with replacing(path) as written:
        written.write_text("".join([f"{line}\n" for line in kept]), encoding="utf-8")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder is ours alone; the lock ends with the process, however that ends."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"another process trains in {folder}") from None
        yield
