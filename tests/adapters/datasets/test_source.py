"""Files of episodes as a source."""

from pathlib import Path

import pytest

from arena.adapters.datasets.source import Files, is_file
from arena.episode import EpisodeError, write
from arena.game import replace
from tests.adapters.datasets.toys import games


def test_files_and_folders_of_them_can_be_read_again(tmp_path: Path) -> None:
    episodes = games(4)
    write(tmp_path / "b.jsonl", episodes[2:])
    write(tmp_path / "a.jsonl.zst", episodes[:2])
    write(tmp_path / ".hidden.jsonl", episodes)
    (tmp_path / "notes.txt").write_text("no episode")
    source = Files(tmp_path)
    assert list(source) == list(source) == episodes
    assert list(Files(tmp_path / "b.jsonl", str(tmp_path / "a.jsonl.zst"))) == episodes[2:] + episodes[:2]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no file that ends in .jsonl or .jsonl.zst"):
        Files(tmp_path)
    with pytest.raises(ValueError, match=r"x.csv: allowed are names that end in"):
        Files(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        list(Files(tmp_path / "none.jsonl"))
    (tmp_path / "odd.jsonl").write_text("{}\n")
    with pytest.raises(EpisodeError, match=r"odd.jsonl:1: not an episode"):
        list(Files(tmp_path / "odd.jsonl"))
    write(tmp_path / "wrong.jsonl", [replace(games(1)[0], forfeits=(7,))])
    with pytest.raises(EpisodeError, match="turns and forfeits name seats that exist"):
        list(Files(tmp_path / "wrong.jsonl"))


def test_names_of_files() -> None:
    assert is_file(Path("a/b.jsonl"))
    assert not is_file("b.json")
    assert not is_file("jsonl")
