"""Report: what the runs have shown, as text, from nothing but their journals."""

from collections.abc import Callable, Sequence
from typing import Any

from examples.train_llm.intervals import Interval, interval

__all__ = ["advantage", "goals", "returns", "tell"]

Run = dict[str, Any]
"""By stage what came of it: "figures" and "rating" are read here."""
_BEFORE, _AFTER = "sft", "grpo"


def returns(run: Run, model: str, decoding: str = "sampled") -> float:
    """Mean return over all games of the figures, as many against each opponent."""
    told = run["figures"][model][decoding].values()
    return float(sum(each["returns"] for each in told) / len(told))


def advantage(runs: Sequence[Run], decoding: str = "sampled") -> Interval:
    """Mean return after GRPO less that of SFT alone, paired by run."""
    return interval([returns(run, _AFTER, decoding) - returns(run, _BEFORE, decoding) for run in runs])


def _rate(run: Run, model: str, opponent: str, what: str, decoding: str) -> float:
    told = run["figures"][model][decoding][opponent]
    return float(told[what] / told["games"])


def _illegal(run: Run, model: str, decoding: str) -> float:
    told = run["figures"][model][decoding].values()
    return float(sum(each["illegal"] for each in told) / sum(each["games"] for each in told))


_LINES: dict[str, Callable[[Run, str, str], float]] = {
    "games lost by an illegal reply": _illegal,
    "won against random": lambda run, model, way: _rate(run, model, "random", "won", way),
    "drawn against random": lambda run, model, way: _rate(run, model, "random", "drawn", way),
    "drawn against minimax": lambda run, model, way: _rate(run, model, "minimax", "drawn", way),
    "mean return, both": returns,
}


def goals(runs: Sequence[Run]) -> dict[str, bool]:
    """What was to be reached by the mean of the runs, in free decoding, and whether it was."""
    mean = {name: interval([line(run, _AFTER, "sampled") for run in runs]).mean for name, line in _LINES.items()}
    seconds = [sum(stage["cpu_seconds"] for stage in run.values()) for run in runs]
    return {
        "illegal under 5 %": mean["games lost by an illegal reply"] < 0.05,
        "over 70 % won against random": mean["won against random"] > 0.70,
        "over 20 % drawn against perfect play": mean["drawn against minimax"] > 0.20,
        "GRPO above SFT, its interval above zero": advantage(runs).above_zero,
        "every run within 15 CPU-minutes": max(seconds) <= 900,
    }


def tell(runs: dict[int, Run]) -> str:
    """All of it, in Markdown."""
    found = list(runs.values())
    parts = [f"{len(found)} run(s), seeds {', '.join(map(str, runs))}; ± is half a 95 % interval over runs.\n"]
    for way, told in (("sampled", "Free decoding at temperature 1"), ("greedy", "The likeliest token, always")):
        parts.append(f"| {told} | SFT alone | SFT, then GRPO | difference, paired by run |\n|---|---|---|---|")
        for name, line in _LINES.items():
            before, after = ([line(run, model, way) for run in found] for model in (_BEFORE, _AFTER))
            change = [b - a for a, b in zip(before, after, strict=True)]
            cells = [_shown(name, values, sign) for values, sign in ((before, ""), (after, ""), (change, "+"))]
            parts.append(f"| {name} | {' | '.join(cells)} |")
        parts.append("")
    parts += [_ratings(runs), _costs(runs)]
    parts += [f"- {'reached' if reached else 'NOT reached'}: {goal}" for goal, reached in goals(found).items()]
    return "\n".join(parts) + "\n"


def _shown(name: str, values: Sequence[float], sign: str) -> str:
    """A share in percent, a return as it is; the mean over runs, and half of its interval where there are several."""
    scale, digits, unit = (1, 2, "") if "return" in name else (100, 1, " %")
    found = interval([value * scale for value in values])
    half = f" ± {found.half:.{digits}f}" if len(values) > 1 else ""
    return f"{found.mean:{sign}.{digits}f}{half}{unit}"


def _ratings(runs: dict[int, Run]) -> str:
    """A table of each run's tournament, an agent a line."""
    names = [row["name"] for row in next(iter(runs.values()))["rating"]["rows"]]
    lines = ["| Elo | " + " | ".join(f"seed {seed}" for seed in runs) + " |", "|---|" + "---|" * len(runs)]
    for name in names:
        rows = [next(row for row in run["rating"]["rows"] if row["name"] == name) for run in runs.values()]
        lines.append(f"| {name} | " + " | ".join(_elo(row["elo"], row["half"]) for row in rows) + " |")
    gaps = [_elo(run["rating"]["difference"], run["rating"]["half"]) for run in runs.values()]
    lines.append("| grpo less sft | " + " | ".join(gaps) + " |")
    return "\n".join([*lines, ""])


def _elo(value: float, half: float | None) -> str:
    return f"{value:.0f}" if half is None else f"{value:.0f} ± {half:.0f}"


def _costs(runs: dict[int, Run]) -> str:
    """CPU seconds by stage."""
    stages = list(next(iter(runs.values())))
    lines = ["| CPU seconds | " + " | ".join(stages) + " | all |", "|---|" + "---|" * (len(stages) + 1)]
    for seed, run in runs.items():
        spent = [run[stage]["cpu_seconds"] for stage in stages]
        lines.append(f"| seed {seed} | " + " | ".join(f"{s:.0f}" for s in (*spent, sum(spent))) + " |")
    return "\n".join([*lines, ""])
