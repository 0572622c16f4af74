"""Kept: a file of finished episodes to which a run that was killed goes on adding."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from arena.episode import Episode, EpisodeError, Outcome, validate

__all__ = ["Kept"]

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Episode)


class _Head(msgspec.Struct):
    """What of an episode says which one it is."""

    outcome: Outcome
    group_id: str = ""
    sample: int = 0


_head = msgspec.json.Decoder(_Head)


class Kept:
    """The episodes of a `.jsonl` file by group and sample; each is appended as soon as it is given.

    Of those that are there only their places are held in memory. A last line that was torn when a run was killed is cut
    off. Void episodes are told in the file too, and do not count as finished.
    """

    def __init__(self, path: str | Path) -> None:
        """Raises ValueError for another kind of file, or one that another run is writing, EpisodeError for a line."""
        self.path = Path(path)
        if self.path.suffix != ".jsonl":
            raise ValueError(f"out={str(path)!r}: allowed are files that end in .jsonl, to which lines can be appended")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        try:
            self._lock()
            self._places = dict(self._read())
        except BaseException:
            self._file.close()
            raise

    def get(self, group: str, sample: int) -> Episode | None:
        """The finished episode, or None: it is yet to be played. Raises EpisodeError for one that does not hold."""
        place = self._places.get((group, sample))
        if place is None:
            return None
        self._file.seek(place)
        line = self._file.readline()
        try:
            episode = _decoder.decode(line)
            validate(episode)
        except (msgspec.DecodeError, RecursionError, EpisodeError) as error:
            what = error if isinstance(error, EpisodeError) else f"not an episode: {error}"
            raise EpisodeError(f"{self.path}:{self._number(place)}: group {group}, sample {sample}: {what}") from error
        return episode

    def add(self, episode: Episode) -> None:
        """Append it; once this returns, the end of this process does not undo it."""
        self._file.write(_encoder.encode(episode) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Let another run write."""
        self._file.close()

    def _lock(self) -> None:
        """Where the system has such locks; the end of the process lets go of it."""
        with contextlib.suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(f"out={str(self.path)!r}: another run is writing this file") from None

    def _number(self, place: int) -> int:
        """Of the line that begins there, from 1."""
        self._file.seek(0)
        number = 1
        while self._file.tell() < place:
            self._file.readline()
            number += 1
        return number

    def _read(self) -> Iterator[tuple[tuple[str, int], int]]:
        self._file.seek(0)
        place = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                self._file.truncate(place)
                return
            try:
                head = _head.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise EpisodeError(f"{self.path}:{number}: not an episode: {error}") from error
            if head.outcome != "void":
                yield (head.group_id, head.sample), place
            place += len(line)
