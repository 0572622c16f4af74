"""CPU seconds of a whole process: `import arena` and `arena --help`, beside what they stand on and beside TextArena."""

import os
import subprocess
import sys

from benchmarks.timing import ROUNDS, Figure, Spread, absent

__all__ = ["imports"]

OURS = (("import arena", ("-c", "import arena"), 0.3), ("arena --help", ("-m", "arena", "--help"), 0.5))
BESIDE = (
    ("python alone", "pass", ()),
    ("import gymnasium, pettingzoo", "import gymnasium, pettingzoo", ("gymnasium", "pettingzoo")),
    ("import textarena", "import textarena", ("textarena",)),
    ("import pyspiel", "import pyspiel", ("pyspiel",)),
)


def imports(seconds: float) -> list[Figure]:
    """The interpreter's own start is part of each figure."""
    there = [(work, ("-c", code)) for work, code, needs in BESIDE if not absent(*needs)]
    commands = [*[(work, arguments) for work, arguments, _ in OURS], *there]
    rounds = ROUNDS if seconds >= 1 else 1
    spent: list[list[float]] = [[] for _ in commands]
    for _ in range(rounds):
        for times, (_, arguments) in zip(spent, commands, strict=True):
            times.append(_process(arguments))
    goals = {work: goal for work, _, goal in OURS}
    figures = [
        Figure(work, "s", min(times), None, Spread.of(times), goals.get(work), at_most=True)
        for (work, _), times in zip(commands, spent, strict=True)
    ]
    return figures + [Figure(work, "s", note=absent(*needs)) for work, _, needs in BESIDE if absent(*needs)]


def _process(arguments: tuple[str, ...]) -> float:
    """User and system seconds of one Python process, from its start to its end. OSError if it fails."""
    process = subprocess.Popen([sys.executable, "-P", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise OSError(f"python {' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
