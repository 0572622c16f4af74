"""The fake server and the sides of a comparison, each in a process of its own."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "peer_python", "serving", "side", "stats"]

ROOT = Path(__file__).resolve().parent.parent.parent
_LONGEST = 1800  # seconds that one side may take


@contextmanager
def serving(**options: float) -> Iterator[str]:
    """The address of a server that is there as long as the context; `options` are those of its command line."""
    command = [sys.executable, "-m", "benchmarks.load.server", *[f"--{key}={value}" for key, value in options.items()]]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise RuntimeError("the fake server did not start")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.stdin.close()  # it ends with its standard input
            process.wait(30)


def stats(url: str) -> dict[str, Any]:
    """What the server has counted; the connection that asks is one of its `connections`."""
    with urllib.request.urlopen(f"{url}/stats", timeout=30) as answer:
        told: dict[str, Any] = json.load(answer)
        return told


def side(name: str, *arguments: object, python: str = sys.executable) -> dict[str, Any]:
    """The measurement that `benchmarks.load.NAME_side` prints. RuntimeError, with what it said, if it fails."""
    command = [python, "-m", f"benchmarks.load.{name}_side", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{' '.join(command[1:])} ended with {done.returncode}: {done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def peer_python() -> str:
    """The interpreter that has the peers: `make bench-load` makes it; "" where it is not there."""
    path = Path(os.environ.get("ARENA_LOAD_PYTHON") or ROOT / ".venv-load" / "bin" / "python")
    return str(path) if path.exists() else ""
