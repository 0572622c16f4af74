import errno
import sys
from pathlib import Path

import pytest

from arena.cli.errors import naming
from arena.cli.output import program


def called(monkeypatch: pytest.MonkeyPatch, path: str) -> str:
    monkeypatch.setattr(sys, "argv", [path, "demo"])
    return program()


def test_the_program_is_named_as_it_can_be_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "my other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "arena").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "one"))
    assert called(monkeypatch, "one/arena") == "arena"
    assert called(monkeypatch, str(tmp_path / "one/arena")) == "arena"
    assert called(monkeypatch, "my other/arena") == "'my other/arena'"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert called(monkeypatch, "one/arena") == "one/arena"
    assert called(monkeypatch, str(tmp_path / "arena/__main__.py")) == f"{sys.executable} -m arena"
    assert called(monkeypatch, "/usr/bin/pytest") == "arena"
    assert called(monkeypatch, "none/arena") == "arena"


def test_an_error_without_a_file_is_given_its_name() -> None:
    with pytest.raises(OSError, match="No space left") as caught, naming("page.html"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == "page.html"
    with pytest.raises(FileNotFoundError) as missing, naming("page.html"):
        Path("none.txt").read_text()
    assert missing.value.filename == "none.txt"
    with pytest.raises(OSError, match=r"^odd$") as odd, naming("page.html"):
        raise OSError("odd")
    assert odd.value.filename is None
