"""What CONTRIBUTING and the Makefile promise."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.repository import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TARGETS = ("demo", "test", "lint", "bench", "docs", "clean", "test-ci", "help")
MARKERS = ("oracle", "slow", "browser", "postgres", "sglang", "train")


def shell(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command at the root, with little more than these variables in its environment."""
    environment.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_game_of_five_minutes_is_short() -> None:
    block = re.search(r"```python\n(# nim\.py\n.*?)```", CONTRIBUTING, re.DOTALL)
    assert block is not None
    assert len(block[1].splitlines()) <= 60


def test_help_lists_the_targets() -> None:
    listed = {line.split()[0] for line in shell("make", "help").stdout.splitlines()}
    assert listed >= {*TARGETS, *(f"test-{marker}" for marker in MARKERS)}


def test_every_target_named_in_contributing_exists() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    known = {*phony[1].split(), *(f"test-{marker}" for marker in MARKERS)}
    named = set(re.findall(r"`make ([a-z0-9-]+)", CONTRIBUTING))
    assert named - known == set()
    assert named >= set(TARGETS) - {"clean"}


def test_the_fast_suite_leaves_out_every_marker() -> None:
    wanted = f'-m "not ({" or ".join(MARKERS)})"'
    assert wanted in shell("make", "-n", "test").stdout


@pytest.mark.parametrize(("minor", "extra"), [("11", "[sb3]"), ("13", "")])
def test_torch_comes_with_python_311_only(tmp_path: Path, minor: str, extra: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho 3.{minor}\n", encoding="utf-8")
    python.chmod(0o755)
    told = shell("make", "-n", "test", f"PYTHON={python}", f"VENV={tmp_path}/venv").stdout
    assert f'--editable ".{extra}" --group test' in told


def test_without_a_new_enough_python_make_says_what_to_do(tmp_path: Path) -> None:
    make = shell("which", "make").stdout.strip()
    (tmp_path / "sh").symlink_to("/bin/sh")
    told = shell(make, "-n", "demo", f"DEMO_VENV={tmp_path}/venv", PATH=str(tmp_path))
    assert told.returncode != 0
    assert "Python 3.11 or newer was not found; name one: make demo PYTHON=" in told.stderr


def test_without_ensurepip_make_says_what_to_do(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\ncase $2 in *version*) echo 3.11;; *) exit 1;; esac\n", encoding="utf-8")
    python.chmod(0o755)
    told = shell("make", "demo", f"PYTHON={python}", f"DEMO_VENV={tmp_path}/venv")
    assert told.returncode != 0
    assert "apt-get install python3-venv (or python3.11-venv)" in told.stdout


@pytest.mark.parametrize("script", ["run", "apt", "pythons", "wheel"])
def test_scripts_of_ci_are_strict_and_parse(script: str) -> None:
    path = ROOT / ".ci" / script
    assert path.stat().st_mode & 0o111
    assert "\nset -euo pipefail\n" in path.read_text(encoding="utf-8")
    assert shell("bash", "-n", str(path)).returncode == 0


def test_apt_asks_for_nothing_that_is_there() -> None:
    assert shell(".ci/apt", "bash", "make").returncode == 0
