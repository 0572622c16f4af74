"""`arena train sb3`: a policy learns a game by Stable-Baselines3, against others and itself."""

import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from arena.cli.errors import Failure, naming, plain, refusing
from arena.cli.main import LazyGroup
from arena.cli.output import program, stdout
from arena.registry import AgentSpec, canonical

if TYPE_CHECKING:
    from arena.adapters.sb3 import training as sb3_training

__all__ = ["elo", "mixture_of", "sb3", "train"]

SELF = {kind: {kind: 1.0} for kind in ("latest", "near", "prioritised", "uniform")}
"""What `self:KIND` draws; `self` alone is half of each of two."""
BOTH = {"latest": 0.5, "uniform": 0.5}
STOPPED = 130  # exit code, as after Ctrl-C
_WEIGHTED = re.compile(r"(?:([0-9.]+)\*)?(.+)", re.DOTALL)
_OUTCOMES = {"first": 0, "draw": 1, "second": 2}
_ANCHOR = "random"  # at 1000, where it has played


class _Train(LazyGroup):
    table: ClassVar = {"sb3": ("arena.cli.train:sb3", "Train by Stable-Baselines3, or go on with it.")}


@click.group(cls=_Train, no_args_is_help=True)
def train() -> None:
    """Train a policy that then plays as an agent.

    \b
    arena train sb3 ConnectFour-v0 --steps 100000 --opponent random --opponent self --out runs/c4
    arena tournament run --game ConnectFour-v0 --agent sb3:runs/c4/model.zip --agent random
    """


@click.command()
@click.argument("game", metavar="GAME[?KEY=VALUE&...]")
@click.option(
    "--steps", default=100_000, show_default=True, help="The learner's steps, in all; rounded up to a whole rollout."
)
@click.option("--opponent", "opponents", multiple=True, metavar="[WEIGHT*]SPEC",
              help="An agent, self (half latest, half uniform), or self:latest, self:uniform, self:prioritised, "
              "self:near; may be repeated.  [default: self]")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False), help="The run's folder.  [default: runs/GAME-ALGORITHM]")
@click.option("--algorithm", default="MaskablePPO", show_default=True, help="MaskablePPO, PPO, A2C or DQN.")
@click.option("--n-envs", default=16, show_default=True, help="Games side by side.")
@click.option("--net", default="64,64", show_default=True, help="Sizes of the hidden layers.")
@click.option("--lr", type=float, help="Learning rate.  [default: what suits the algorithm]")
@click.option("--seed", default=0, show_default=True)
@click.option("--snapshot-every", default=10_000, show_default=True, help="Steps between copies that join `self`.")
@click.option("--save-every", default=20_000, show_default=True, help="Steps between checkpoints.")
@click.option("--eval-every", default=20_000, show_default=True, help="Steps between games against the anchors.")
@click.option("--anchor", "anchors", multiple=True, metavar="SPEC", help="Whom to be measured by.  [default: random]")
@click.option(
    "--eval-games", default=100, show_default=True, help="Games against each anchor; over 64, in whole batches of 64."
)
def sb3(game: str, steps: int, out: str | None, **given: Any) -> int:
    """Train a policy on the numeric face of GAME; the same command again goes on where it was.

    \b
    arena train sb3 TicTacToe --steps 30000
    arena train sb3 'ConnectFour-v0?columns=5&rows=4' --opponent 2*self --opponent 'minimax?depth=2'
    arena train sb3 KuhnPoker --opponent self:uniform --out runs/kuhn
    """
    training = _needed()
    with refusing():
        plan = _plan(training, game, given)
        folder = out or f"runs/{plan.game}-{plan.algorithm}".lower()
        console = stdout()
        with naming(folder), _following(console, steps, given["eval_every"]) as watch:
            run = training.Training(
                plan, folder, rate=elo, watch=watch, save_every=given["save_every"], eval_every=given["eval_every"],
                anchors=given["anchors"] or (_ANCHOR,), games=given["eval_games"],
            )  # fmt: skip
            if find_spec("tensorboard") is None:
                click.echo("without TensorBoard, which is not installed: pip install tensorboard", err=True)
            if 0 < run.step() < steps:
                console.print(f"going on after step {run.step()}", markup=False)
            elif run.step():
                console.print(f"trained for {run.step():,} steps already: a larger --steps goes on", markup=False)
            with _interrupts(run):
                try:
                    done = run.run(steps)
                except training.Stopped:
                    done = None
    if done is None:
        step = run.progress().step
        console.print(
            f"stopped at step {step:,}, all saved in {plain(folder)}: the same command goes on",
            markup=False,
            soft_wrap=True,
        )
        return STOPPED
    _tell(console, done, plan, Path(folder))
    return 0


def _needed() -> Any:
    """The module that trains. Raises Failure where its packages are missing."""
    try:
        import torch

        from arena.adapters.sb3 import training
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        raise Failure(f"arena train sb3 needs {name}: pip install 'gymnasium-arena[sb3]'") from error
    torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
    # Rounding makes the check of probabilities fail now and then, in the middle of a long run.
    torch.distributions.Distribution.set_default_validate_args(False)
    return training


def _plan(training: Any, game: str, given: Mapping[str, Any]) -> "sb3_training.Plan":
    spec = AgentSpec.parse(game)
    if spec.target:
        raise ValueError(f"{game!r} is no game: write ID or ID?KEY=VALUE&...")
    plan: sb3_training.Plan = training.Plan(
        game=canonical(spec.name),
        options=dict(spec.options),
        algorithm=given["algorithm"],
        opponents=mixture_of(given["opponents"] or ("self",)),
        n_envs=given["n_envs"],
        net=_sizes(given["net"]),
        lr=given["lr"],
        seed=given["seed"],
        every=given["snapshot_every"],
    )
    return plan


def mixture_of(opponents: Iterable[str]) -> dict[str, float]:
    """Weights by sampler or spec, from what `--opponent` named.

    >>> mixture_of(["3*random", "self", "self:latest"])
    {'random': 3.0, 'latest': 1.5, 'uniform': 0.5}

    Raises ValueError for a weight that is no number and a kind of self that is unknown.
    """
    mixture: dict[str, float] = {}
    for text in opponents:
        found = _WEIGHTED.fullmatch(text)
        if found is None:
            raise ValueError("--opponent: write an agent, or self")
        weight, name = _number(found[1] or "1", text), found[2]
        head, _, kind = name.partition(":")
        if head == "self" and kind and kind not in SELF:
            raise ValueError(f"--opponent {text}: allowed are self, self:{', self:'.join(SELF)}")
        for part, share in (SELF.get(kind, BOTH) if head == "self" else {name: 1.0}).items():
            mixture[part] = mixture.get(part, 0.0) + weight * share
    return mixture


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--opponent {whole}: {text!r} is no weight") from None


def _sizes(text: str) -> tuple[int, ...]:
    sizes = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if not all(0 < size <= 1 << 16 for size in sizes):
        raise ValueError(f"--net {text}: write sizes such as 64,64")
    return tuple(sizes)


def elo(rows: Sequence[tuple[str, str, str, int]]) -> dict[str, float]:
    """Ratings by player, of rows (first, second, "first" | "draw" | "second", games); random has 1000 if it played."""
    from arena.tournaments.ratings import Results, rate

    players = tuple(dict.fromkeys([name for row in rows for name in row[:2]]))
    number = {name: i for i, name in enumerate(players)}
    first = np.array([number[row[0]] for row in rows], np.int64)
    second = np.array([number[row[1]] for row in rows], np.int64)
    outcome = np.array([_OUTCOMES[row[2]] for row in rows], np.int64)
    alike, clusters = np.zeros(len(rows), np.int64), np.arange(len(rows), dtype=np.int64)
    times = np.array([row[3] for row in rows], np.float64)
    results = Results(players, ("game",), alike, first, second, outcome, clusters, None, times)
    rated = rate(results, "fisher", anchors={_ANCHOR: 1000.0} if _ANCHOR in number else None)
    return dict(zip(players, map(float, rated.elo), strict=True))


@contextmanager
def _interrupts(run: "sb3_training.Training") -> Iterator[None]:
    """The first Ctrl-C lets the rollout end and saves; the second is a KeyboardInterrupt at once."""

    def caught(number: int, frame: FrameType | None) -> None:
        if run.stopping:
            raise KeyboardInterrupt
        run.stopping = True
        line = "\n" if sys.stderr.isatty() else ""  # a bar may stand on this one
        click.echo(f"{line}stopping: this rollout ends first, Ctrl-C again ends at once", err=True)

    if current_thread() is not main_thread():  # a signal cannot be caught here
        yield
        return
    before = signal.signal(signal.SIGINT, caught)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _following(console: Console, steps: int, every: int) -> Iterator[Callable[["sb3_training.Progress"], None]]:
    """What to call at every rollout: a bar on a terminal, a line every so many steps elsewhere."""
    if not console.is_terminal:
        yield _Lines(console, every)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(
        TextColumn("steps"), *columns, TextColumn("{task.fields[facts]}", markup=False), console=console
    ) as bar:
        task = bar.add_task("steps", total=steps, facts="")
        yield lambda progress: bar.update(task, completed=progress.step, facts=_facts(progress))


class _Lines:
    """A line every so many steps; the last is left to the summary."""

    def __init__(self, console: Console, every: int) -> None:
        self.console, self.every, self.told = console, every, -1

    def __call__(self, progress: "sb3_training.Progress") -> None:
        at = progress.step // max(1, self.every)
        if at > self.told >= 0 and progress.step < progress.steps:
            told = ", ".join(filter(None, [f"{progress.step}/{progress.steps} steps", _facts(progress)]))
            self.console.print(told, markup=False, soft_wrap=True)
        self.told = at


def _facts(progress: "sb3_training.Progress") -> str:
    facts = [] if progress.reward is None else [f"reward {progress.reward:+.2f}"]
    facts += [] if progress.rating is None else [f"{progress.rating:.0f} Elo"]
    facts += [f"{record.mean:.0%} against {plain(name)}" for name, record in progress.scores.items()]
    return ", ".join(facts)


def _tell(console: Console, done: "sb3_training.Progress", plan: "sb3_training.Plan", folder: Path) -> None:
    for name, (wins, draws, losses) in done.scores.items():
        console.print(f"against {plain(name)}: {wins} won, {draws} drawn, {losses} lost", markup=False)
    facts = [] if done.rating is None else [f"{done.rating:.0f} Elo in training"]
    facts += [] if done.reward is None else [f"mean reward {done.reward:+.2f}"]
    console.print(f"trained {done.step} steps ({', '.join(facts)})" if facts else f"trained {done.step} steps")
    query = "&".join([f"{key}={value}" for key, value in plan.options.items()])
    game = shlex.quote(f"{plan.game}?{query}" if query else plan.game)
    agent = shlex.quote(f"sb3:{folder / 'model.zip'}")
    console.print(
        f"let it play: {program()} tournament run --game {game} --agent {agent} --agent random",
        markup=False,
        soft_wrap=True,
    )
