"""What the tests of the repository itself share: where it is, and what is tracked."""

import subprocess
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
ROOMS = ("adapters", "agents", "games", "tools", "tournaments")


def tracked() -> list[PurePosixPath]:
    """Every tracked path that is there; a link counts as one path."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [PurePosixPath(name) for name in listed.split("\0") if name]
    return [path for path in paths if (ROOT / path).is_symlink() or (ROOT / path).exists()]


def sources(*folders: str) -> list[Path]:
    """The Python files below the folders of the root, links not followed, sorted."""
    found = {path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    return sorted(path for path in found if not any(parent.is_symlink() for parent in path.parents))


def module_name(path: Path) -> str:
    """The name a file of `arena/` or a room is imported by.

    >>> module_name(ROOT / "games" / "board" / "__init__.py")
    'arena.games.board'
    """
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(("arena", *parts) if parts[0] in ROOMS else parts)
