"""Course: one run from records to ratings, stage by stage, and all runs together."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from arena.agent import Agent
from examples.train_llm import decoder, picture
from examples.train_llm.figures import OPPONENTS, measure, player
from examples.train_llm.journal import Journal, cpu_seconds
from examples.train_llm.learning import imitate, improve, rows_of
from examples.train_llm.opponents import Remembering
from examples.train_llm.plan import SAMPLING, Purpose, Size, seeds
from examples.train_llm.rating import rate
from examples.train_llm.records import make_records
from examples.train_llm.report import tell

__all__ = ["STAGES", "Course", "train_all"]

STAGES = ("records", "sft", "grpo", "figures", "rating")
Bar = Callable[[int, int], None]


def train_all(out: Path, run_numbers: Sequence[int], size: Size, checkpoint: str = "") -> str:
    """Every run, then `out/report.md` and `out/curves.svg`; the report comes back, and is printed.

    Raises Refused for a checkpoint that cannot be used and for a folder that holds other runs.
    """
    console, runs = Console(stderr=True), {}
    for number in run_numbers:
        course = Course(out / f"seed-{number}", number, size, checkpoint)
        with _bars(console) as bars:
            runs[number] = course.run(bars)
    told = tell(runs)
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.md").write_text(told, encoding="utf-8")
    picture.write([run["sft"]["curve"] + run["grpo"]["curve"] for run in runs.values()], out / "curves.svg")
    print(told)
    print(f"{out / 'report.md'}, {out / 'curves.svg'}")
    return told


def _bars(console: Console) -> Progress:
    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*shown, console=console)


class _Bar:
    """The bar of one stage."""

    def __init__(self, bars: Progress, title: str) -> None:
        self._bars, self._task = bars, bars.add_task(title, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._bars.update(self._task, completed=done, total=total)


class Course:
    """One run in its folder."""

    def __init__(self, folder: Path, number: int, size: Size, checkpoint: str) -> None:
        self.number, self.size, self.checkpoint = number, size, checkpoint
        self.journal = Journal(folder, {"run": number, "size": msgspec.to_builtins(size), "checkpoint": checkpoint})
        self.folder = folder

    def run(self, bars: Progress) -> dict[str, Any]:
        """What came of every stage, by name; only what is not finished is done."""
        works = {
            "records": self._records,
            "sft": self._sft,
            "grpo": self._grpo,
            "figures": self._figures,
            "rating": self._rating,
        }
        found = {}
        for stage in STAGES:
            bar = _Bar(bars, f"seed {self.number} {stage}")
            found[stage] = self.journal.stage(stage, partial(works[stage], bar=bar))
            bar(1, 1)
        return found

    def _records(self, place: Path, bar: Bar) -> dict[str, Any]:
        return make_records(place, self.number, self.size, bar)

    def _sft(self, place: Path, bar: Bar) -> dict[str, Any]:
        rows = rows_of(self.folder / "records" / "rows")
        if self.checkpoint:
            model, tokenizer = decoder.load(self.checkpoint)
        else:
            told = (message["content"] for row in rows for message in row["messages"])
            model, tokenizer = decoder.make(told, self.number)
        curve = _Curve("sft", model, tokenizer, self.number, self.size.look, 0.0)
        curve.look(0)
        log = imitate(model, tokenizer, rows, self.number, self.size, curve.look, bar, place / "trainer")
        decoder.save(model, tokenizer, place / "model")
        return {"parameters": model.num_parameters(), "curve": curve.points, "log": log}

    def _grpo(self, place: Path, bar: Bar) -> dict[str, Any]:
        model, tokenizer = decoder.load(self.folder / "sft" / "model")
        before = (self.journal.result("sft") or {})["curve"][-1]["seconds"]
        curve = _Curve("grpo", model, tokenizer, self.number, self.size.look, before)
        log = improve(model, tokenizer, self.number, self.size, curve.look, bar, place / "trainer")
        decoder.save(model, tokenizer, place / "model")
        return {"curve": curve.points, "log": log}

    def _figures(self, place: Path, bar: Bar) -> dict[str, Any]:
        """Both models, both ways of decoding, the same deals."""
        found: dict[str, Any] = {}
        ways = {"sampled": SAMPLING.temperature, "greedy": 0.0}
        jobs = [(model, way, opponent) for model in ("sft", "grpo") for way in ways for opponent in OPPONENTS]
        for at, (name, way, opponent) in enumerate(jobs):
            bar(at, len(jobs))
            model, tokenizer = decoder.load(self.folder / name / "model")
            told = _measured(model, tokenizer, opponent, "figures", self.number, self.size.games, ways[way])
            found.setdefault(name, {}).setdefault(way, {})[opponent] = told
        return found

    def _rating(self, place: Path, bar: Bar) -> dict[str, Any]:
        models = {name: self.folder / name / "model" for name in ("sft", "grpo")}
        return rate(place, self.number, self.size, models, bar)


class _Curve:
    """Looks at a model while it learns; what a look costs is no time of learning."""

    def __init__(self, stage: str, model: Any, tokenizer: Any, number: int, games: int, before: float) -> None:
        self.stage, self.model, self.tokenizer, self.number, self.games = stage, model, tokenizer, number, games
        self.points: list[dict[str, Any]] = []
        self.opponents: dict[str, str | Agent] = {"random": "random", "minimax": Remembering()}
        self.start = cpu_seconds() - before

    def look(self, step: int) -> None:
        """Add a point."""
        now = cpu_seconds()
        point: dict[str, Any] = {"stage": self.stage, "step": step, "seconds": now - self.start}
        for opponent, agent in self.opponents.items():
            point[opponent] = _measured(
                self.model, self.tokenizer, agent, "curve", self.number, self.games, SAMPLING.temperature
            )
        self.points.append(point)
        self.start += cpu_seconds() - now


def _measured(
    model: Any, tokenizer: Any, opponent: str | Agent, purpose: Purpose, number: int, games: int, temperature: float
) -> dict[str, Any]:
    """Figures as JSON values."""
    agent = player(model, tokenizer, number, temperature)
    return dict(msgspec.to_builtins(measure(agent, opponent, seeds(purpose, number, max(1, games // 2)))))
