"""The wheel and the sdist: nothing tracked is left out, nothing else gets in, and both say the same."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

import arena.version
from tests.repository import ROOMS, ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]


class Built(NamedTuple):
    """Archives of a copy of the tracked files."""

    sdist: Path
    wheel: Path
    """Built from the sdist."""
    direct: Path
    """Built from a copy without links, as a checkout on Windows has it."""


def copy_tracked(target: Path, links: bool) -> Path:
    """Copy the tracked files; without links, git writes where they point to as text."""
    for path in tracked():
        source, copy = ROOT / path, target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink() and not links:
            copy.write_text(str(source.readlink()), encoding="utf-8")
        else:
            shutil.copy2(source, copy, follow_symlinks=False)
    return target


def build(tree: Path, out: Path, *options: str) -> None:
    """Run the build front end on a tree."""
    command = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", str(out), *options, str(tree)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build everything once."""
    work = tmp_path_factory.mktemp("packaging")
    build(copy_tracked(work / "linked", links=True), work / "out")
    build(copy_tracked(work / "plain", links=False), work / "direct", "--wheel")
    (sdist,), (wheel,) = (work / "out").glob("*.tar.gz"), (work / "out").glob("*.whl")
    (direct,) = (work / "direct").glob("*.whl")
    return Built(sdist, wheel, direct)


def shipped() -> set[PurePosixPath]:
    """Every tracked file of `arena/` and the rooms, by the path it is installed to."""
    own = [path for path in tracked() if path.parts[0] == "arena" and not (ROOT / path).is_symlink()]
    rooms = [PurePosixPath("arena") / path for path in tracked() if path.parts[0] in ROOMS]
    return {*own, *rooms}


def crcs(wheel: Path) -> dict[str, int]:
    """Check sums by name. RECORD lists the others, in any order."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist() if not entry.filename.endswith("/RECORD")}


def test_the_wheel_holds_every_tracked_file_and_no_other(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = {PurePosixPath(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert names == shipped()


def test_the_wheel_from_the_sdist_equals_the_one_from_a_tree_without_links(built: Built) -> None:
    assert crcs(built.wheel) == crcs(built.direct)


def test_arena_is_the_only_top_level_name(built: Built) -> None:
    tops = {name.partition("/")[0] for name in crcs(built.wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"arena"}


def test_the_sdist_holds_the_rooms_once_and_no_links(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        assert not [member.name for member in archive if member.issym() or member.islnk()]
        names = [PurePosixPath(*PurePosixPath(member.name).parts[1:]) for member in archive if member.isfile()]
    assert len(names) == len(set(names))
    packaged = {name for name in names if name.parts[0] in (*ROOMS, "arena")}
    assert {PurePosixPath("arena") / name if name.parts[0] in ROOMS else name for name in packaged} == shipped()
    others = {str(name) for name in names if name not in packaged and "egg-info" not in name.parts[0]}
    assert others == {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}


def test_every_package_is_listed() -> None:
    folders = {path.parent for path in shipped() if path.name == "__init__.py"}
    assert sorted(SETUPTOOLS["packages"]) == sorted(".".join(folder.parts) for folder in folders)


def test_every_folder_with_python_in_it_is_a_package() -> None:
    folders = {path.parent for path in shipped() if path.suffix == ".py"}
    assert {folder for folder in folders if folder / "__init__.py" not in shipped()} == set()


def test_the_rooms_are_mapped_and_linked() -> None:
    assert SETUPTOOLS["package-dir"] == {f"arena.{room}": room for room in ROOMS}
    for room in ROOMS:
        assert (ROOT / "arena" / room).readlink() == Path("..") / room


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_refuses_its_bare_name(room: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {room}"], cwd=ROOT, capture_output=True, text=True)
    assert f"import arena.{room}, not {room}" in done.stderr


def test_every_folder_of_the_tests_is_a_package() -> None:
    folders = {path.parent for path in tracked() if path.parts[0] == "tests" and path.suffix == ".py"}
    assert [folder for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []


def test_the_metadata_of_the_wheel(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (info,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(f"{info}/METADATA").decode()
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert b"arena = arena.cli.main:main" in archive.read(f"{info}/entry_points.txt")
    assert "License-Expression: MIT" in metadata
    assert "Requires-Python: >=3.11" in metadata


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["project"]["version"]
    assert version == arena.version.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
