"""Sources: where episodes of an export come from. Any iterable of episodes is one; it is read once."""

from collections.abc import Iterator
from pathlib import Path

from arena.episode import Episode, read, validate

__all__ = ["SUFFIXES", "Files", "is_file"]

SUFFIXES = (".jsonl", ".jsonl.zst")


def is_file(path: str | Path) -> bool:
    """Whether the name is that of a file of episodes.

    >>> is_file("runs/demo/episodes.jsonl.zst"), is_file("runs/demo")
    (True, False)
    """
    return str(path).endswith(SUFFIXES)


class Files:
    """The episodes of `.jsonl` and `.jsonl.zst` files and of folders of them, file by file, names in order.

    Files are what `arena.episode.write`, `arena export --format jsonl` and `arena.rollouts.collect` leave. Every
    episode is checked (`arena.episode.validate`). Can be read again.
    """

    def __init__(self, *paths: str | Path) -> None:
        """Raises ValueError for a folder without such files, or another kind of file."""
        self.files = [file for path in paths for file in _files(Path(path))]

    def __iter__(self) -> Iterator[Episode]:
        """Raises EpisodeError for what is no episode, or contradicts itself."""
        for file in self.files:
            for episode in read(file):
                validate(episode)
                yield episode


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not is_file(path):
            raise ValueError(f"{path}: allowed are names that end in .jsonl or .jsonl.zst, and folders of such files")
        return [path]
    found = sorted(file for file in path.iterdir() if is_file(file) and not file.name.startswith("."))
    if not found:
        raise ValueError(f"{path} holds no file that ends in .jsonl or .jsonl.zst")
    return found
