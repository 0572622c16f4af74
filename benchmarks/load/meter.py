"""CPU time, wall time and memory of one side, measured from inside its process. Needs nothing but Python."""

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["Meter", "files", "peak_megabytes", "sockets"]


class Meter:
    """Measures from the moment it is made; children that have ended count too."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), _cpu()

    def tell(self, turns: int, **more: Any) -> None:
        """Print the result as one line of JSON."""
        wall, cpu = time.perf_counter() - self.wall, _cpu() - self.cpu
        figures = {"turns": turns, "cpu": cpu / turns * 1e6, "rate": turns / wall, "megabytes": peak_megabytes()}
        print(json.dumps({**figures, **more}), flush=True)


def _cpu() -> float:
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def peak_megabytes() -> float:
    """The most memory the process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


def files(wanted: int) -> int:
    """Raise the limit of open files towards `wanted`; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = min(wanted, hard) if hard != resource.RLIM_INFINITY else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def sockets() -> int:
    """How many sockets the process has open (Linux; elsewhere 0)."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return 0
    return sum(_target(entry).startswith("socket:") for entry in folder.iterdir())


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""  # the folder's own, closed meanwhile
