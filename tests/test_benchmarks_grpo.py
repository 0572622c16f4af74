"""The benchmark of games for a GRPOTrainer: it says when something is missing, and a small version runs."""

from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import timing


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(timing, "find_spec", lambda name: None)
    command.main(["--only", "grpo", "--secs", "0.001"])
    assert "torch is not installed" in capsys.readouterr().out
    assert "grpo" not in command.USUAL


@pytest.mark.train
def test_a_small_version_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("trl")
    command.main(["--only", "grpo", "--secs", "0.01"])
    told = capsys.readouterr().out
    assert "16 games at once, beside the same forward passes alone" in told
    assert "16 games at once, beside model.generate on the same prompts" in told
    assert "games/CPU-s" in told
