"""Our figures beside those of other libraries: `python -m benchmarks [--only NAME,...] [--secs S] [--json FILE]`."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import (
    aec,
    coverage,
    faces,
    grpo,
    learning,
    match,
    pairing,
    ratings,
    rollouts,
    rules,
    startup,
    store,
    tournament,
)
from benchmarks.load import tables, trouble
from benchmarks.report import machine, table, write_json
from benchmarks.timing import ROUNDS, Figure


class Benchmark(NamedTuple):
    """One table."""

    title: str
    columns: tuple[str, str]
    run: Callable[[float], list[Figure]]


BENCHMARKS = {
    "openspiel": Benchmark(
        "Bare rules with text and legal list, beside OpenSpiel with text and legal strings (k actions/CPU-s)",
        ("Arena", "OpenSpiel"), rules.against_openspiel,
    ),
    "textarena": Benchmark(
        "Bare rules with text and legal list, beside TextArena's raw loop without a list (k actions/CPU-s)",
        ("Arena", "TextArena"), rules.against_textarena,
    ),
    "aec": Benchmark(
        "AEC face, beside PettingZoo classic (k actions/CPU-s)", ("Arena", "PettingZoo"), aec.against_pettingzoo
    ),
    "gym_make": Benchmark(
        "gymnasium.make with its default wrappers, beside the bare env (k own actions/CPU-s)",
        ("make", "bare"), faces.gym_make,
    ),
    "faces": Benchmark(
        "Faces, beside the bare rules (k actions/CPU-s; result: us added to an action)",
        ("face", "rules"), faces.beside_rules,
    ),
    "match": Benchmark(
        "Match with record and hash chain, over the bare rules (CPU us/action)", ("match", "rules"), match.over_rules
    ),
    "at_once": Benchmark(
        "Matches at once in one process, all episodes kept (CPU us/step, peak kB/match)", ("best", ""), match.at_once
    ),
    "rollouts": Benchmark(
        "Episodes collected in groups of 8, over bare matches that are gathered (CPU us/episode)",
        ("collect", "play"), rollouts.over_play,
    ),
    "tournament": Benchmark(
        "Tournament with its store, beside play_sync alone (games/CPU-s)", ("runner", "match"), tournament.beside_match
    ),
    "pairing": Benchmark(
        "Games that schedules save at equal width of the intervals (spread: 95 % interval over repetitions)",
        ("ours", "beside"), pairing.savings,
    ),
    "coverage": Benchmark(
        "Share of 95 % intervals that hold the truth (spread: its interval), beside half-draw Bradley-Terry, no seats",
        ("Arena", "half-draw"), coverage.intervals,
    ),
    "store": Benchmark(
        "The store at 100,000 games: reading (CPU-s), storing beside bare sqlite3 inserts (games/CPU-s)",
        ("ours", "sqlite3"), store.at_scale,
    ),
    "ratings": Benchmark(
        "Ratings with intervals, and bootstraps, beside arena-rank and FastChat's bootstrap (CPU-s)",
        ("Arena", "peer"), ratings.beside_peers,
    ),
    "startup": Benchmark("Start of a process (CPU-s)", ("best", ""), startup.imports),
    "sb3": Benchmark(
        "MaskablePPO learns Connect Four on ArenaVecEnv, beside PettingZoo's classic game (k agent steps/CPU-s)",
        ("Arena", "beside"), learning.steps,
    ),
    "sb3_strength": Benchmark(
        "Share of games it then wins, likeliest move, seats in turn (result: difference; spread: 95 % over seeds)",
        ("Arena", "beside"), learning.win_rates,
    ),
    "sb3_poker": Benchmark(
        "Self-play of MaskablePPO against its past (exploitability, exact; spread: lowest and highest of the seeds)",
        ("average", "last"), learning.curves,
    ),
    "grpo": Benchmark(
        "A small language model's games for a GRPOTrainer, with records and sequences (CPU ms a turn of the model)",
        ("Arena", "beside"), grpo.rollouts,
    ),
    "load": Benchmark(
        "Matches of two language models at once, 20 turns each, with their store, at a fake server of 20 ms",
        ("Arena", "beside"), tables.turns,
    ),
    "load_many": Benchmark("Ten thousand such matches at once (peak MB of the process)", ("best", ""), tables.many),
    "load_peers": Benchmark(
        "The same turns by the chat route, beside other libraries (CPU us a turn, 1,024 conversations at once)",
        ("Arena", "peer"), tables.peers,
    ),
    "load_faults": Benchmark(
        "A server that fails: 5 % errors, 2 % hangs, 1 % dropped connections (counts)", ("seen", ""), trouble.faults
    ),
    "load_slow": Benchmark(
        "A fast model's matches (20 ms) beside as many of a slow one's (2 s) (seconds a match)",
        ("beside", "alone"), trouble.slow,
    ),
}  # fmt: skip
USUAL = tuple(name for name in BENCHMARKS if not name.startswith(("grpo", "load", "sb3")))
"""What runs where nothing else is asked for: the others take half an hour each, `make bench-load`, `make bench-sb3`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print table after table, and write the JSON file if one was asked for."""
    asked = _parser().parse_args(arguments)
    print("\n".join(f"{key}: {value}" for key, value in machine().items()))
    print(f"{asked.secs:g} CPU-s a side and line in {ROUNDS} rounds that take turns; columns: the best round;")
    print("result: the median of the rounds' ratios or differences; spread: their quartiles\n")
    figures: dict[str, list[Figure]] = {}
    for name in asked.only:
        benchmark = BENCHMARKS[name]
        figures[name] = benchmark.run(asked.secs)
        print(table(benchmark.title, benchmark.columns, figures[name]), flush=True)
    if asked.json:
        write_json(asked.json, figures)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", type=_names, default=USUAL, metavar="NAME,...", help=f"some of: {', '.join(BENCHMARKS)}"
    )
    parser.add_argument(
        "--secs", type=_seconds, default=2.0, metavar="S", help="CPU seconds for each side of each line (default 2)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if bad := [name for name in names if name not in BENCHMARKS]:
        raise argparse.ArgumentTypeError(f"{', '.join(bad)}: allowed are {', '.join(BENCHMARKS)}")
    return names


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text}: allowed are numbers above 0, up to 3600")
    return seconds


if __name__ == "__main__":
    main()
