"""Memory does not grow with what is exported."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.repository import ROOT

pytestmark = pytest.mark.slow


def exported(*asked: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.adapters.datasets.growing", *asked]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("spec", "kind", "advantage"),
    [("turns", "parquet", "none"), ("turns", "jsonl.zst", "rae"), ("groups", "jsonl", "group")],
)
def test_ten_times_the_turns_take_no_more_memory(spec: str, kind: str, advantage: str, scale: int) -> None:
    """A million turns in the full version. Held in memory, an episode of eight turns takes about 10 kB."""
    pytest.importorskip("resource")
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    turns = 100_000 * scale
    few, many = (exported(spec, kind, str(count), advantage) for count in (turns // 10, turns))
    for told in (few, many):
        print(f"{spec} {kind} {advantage}: {told}")
    assert many["turns"] >= turns
    assert many["megabytes"] < few["megabytes"] + 48
