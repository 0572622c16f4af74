"""The journal of `examples.train_llm`: what is finished is not done again, what was cut off begins anew."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil")

from examples.train_llm.journal import Journal, cpu_seconds

BURN = "import time\nwhile time.process_time() < 0.4: pass"


class Work:
    """Leaves a file and counts how often it was asked to; `fails`: the first time, half-way."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails, self.count = fails, 0

    def __call__(self, place: Path) -> dict[str, Any]:
        self.count += 1
        place.mkdir()
        (place / f"part-{self.count}").touch()
        if self.fails and self.count == 1:
            raise KeyboardInterrupt
        return {"count": self.count}


def test_a_finished_stage_is_read(tmp_path: Path) -> None:
    work = Work()
    first = Journal(tmp_path / "run", {"seed": 1}).stage("sft", work)
    again = Journal(tmp_path / "run", {"seed": 1}).stage("sft", work)
    assert work.count == 1
    assert again == first
    assert first["count"] == 1


def test_a_stage_that_was_cut_off_begins_anew(tmp_path: Path) -> None:
    journal, work = Journal(tmp_path / "run", {}), Work(fails=True)
    with pytest.raises(KeyboardInterrupt):
        journal.stage("sft", work)
    assert journal.result("sft") is None
    assert journal.stage("sft", work)["count"] == 2
    assert [path.name for path in (tmp_path / "run" / "sft").iterdir()] == ["part-2"]


def test_runs_of_other_terms_do_not_mix(tmp_path: Path) -> None:
    Journal(tmp_path / "run", {"seed": 1})
    with pytest.raises(ValueError, match="run of other terms"):
        Journal(tmp_path / "run", {"seed": 2})


def test_seconds_of_processes_that_were_started_count(tmp_path: Path) -> None:
    def work(place: Path) -> dict[str, Any]:
        subprocess.run([sys.executable, "-c", BURN], check=True)
        return {}

    assert Journal(tmp_path, {}).stage("records", work)["cpu_seconds"] >= 0.3


def test_seconds_of_processes_that_still_run_count() -> None:
    before = cpu_seconds()
    told = f"{BURN}\nprint(flush=True)\nimport sys\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", told], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        assert cpu_seconds() - before >= 0.3
        running.communicate()
