"""A path gets its name when all is written; whatever stops the writing, a kill included, leaves nothing half."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from arena.adapters.datasets.placing import placed


def test_a_file_and_a_folder(tmp_path: Path) -> None:
    with placed(tmp_path / "deep" / "x.txt") as path:
        path.write_text("all")
        assert not (tmp_path / "deep" / "x.txt").exists()
    assert (tmp_path / "deep" / "x.txt").read_text() == "all"
    (tmp_path / "empty").mkdir()
    with placed(tmp_path / "empty") as path:
        path.mkdir()
        (path / "y").touch()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "deep",
        "deep/x.txt",
        "empty",
        "empty/y",
    ]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def fail(path: Path) -> None:
        path.mkdir()
        (path / "half").touch()
        raise error

    with pytest.raises(error), placed(tmp_path / "x") as path:
        fail(path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file exists"), placed(tmp_path / "file"):
        pass
    with pytest.raises(ValueError, match="is not empty"), placed(tmp_path):
        pass


def test_what_came_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="exists"), placed(tmp_path / "x"):
        (tmp_path / "x").write_text("another's")
    assert (tmp_path / "x").read_text() == "another's"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


HANGS = """
import sys, time
from pathlib import Path
from arena.adapters.datasets.placing import placed
with placed(Path(sys.argv[1])) as path:
    path.mkdir()
    (path / "half").touch()
    print("half", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks on folders")
def test_a_kill_leaves_nothing_at_the_name_and_what_it_leaves_the_next_removes(tmp_path: Path) -> None:
    out = tmp_path / "odd [name]*"
    process = subprocess.Popen([sys.executable, "-c", HANGS, str(out)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"half\n"
    with placed(out) as path:
        path.mkdir()
        assert len(list(tmp_path.iterdir())) == 2, "the other lives"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert len(list(tmp_path.iterdir())) == 2
    out.rmdir()
    with placed(out) as path:
        path.mkdir()
        assert len(list(tmp_path.iterdir())) == 1, "what the killed one left is gone"
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
