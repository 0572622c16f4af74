"""Cache: answers at temperature 0, kept in a folder so that the same question is asked (and paid) once.

One JSON object a line in `answers.jsonl`. Every record is one write that begins and ends with a line end, to a file
opened for appending: several processes may share a folder, and a line cut by a crash spoils nothing but itself.
"""

import os
import threading
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar
from weakref import WeakValueDictionary

import msgspec

from arena.model import Completion, ModelError, Request

__all__ = ["Cache", "Held", "question_key"]

FILE = "answers.jsonl"


class _Record(msgspec.Struct, frozen=True):
    key: str
    answers: msgspec.Raw


_record = msgspec.json.Decoder(_Record)
_answers = msgspec.json.Decoder(tuple[Completion, ...])
_encoder = msgspec.json.Encoder(order="deterministic")


class Cache:
    """The answers in one folder. What other processes add while this one runs is not seen before the next start."""

    _open: ClassVar["WeakValueDictionary[Path, Cache]"] = WeakValueDictionary()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, folder: str | Path) -> None:
        """The folder is made if need be. Raises ModelError if that, or reading it, is not possible."""
        self.path = Path(folder) / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._known = self._read()
        except OSError as error:
            raise ModelError(f"cache={folder}: {error.strerror}: name a folder that can be written") from error

    @classmethod
    def at(cls, folder: str | Path) -> "Cache":
        """The cache all users of this folder share."""
        path = Path(folder).resolve()
        with cls._lock:
            found = cls._open.get(path)
            if found is None:
                found = cls._open[path] = cls(path)
            return found

    def __len__(self) -> int:
        return len(self._known)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def get(self, key: str) -> tuple[Completion, ...] | None:
        """The answers to a question, None where they are not known. They took no time and cost nothing."""
        kept = self._known.get(key)
        if kept is None:
            return None
        try:
            answers = _answers.decode(kept)
        except (msgspec.DecodeError, UnicodeDecodeError):
            del self._known[key]  # written by something else: it is asked again
            return None
        return tuple(msgspec.structs.replace(a, usage=_free(a.usage)) for a in answers)

    def put(self, key: str, answers: Sequence[Completion]) -> None:
        """Keep the answers, unless one was aborted. Raises ModelError if they cannot be written."""
        if key in self._known or not answers or any(a.finish == "abort" for a in answers):
            return
        kept = _encoder.encode(answers)
        line = b"\n%b\n" % _encoder.encode(_Record(key, msgspec.Raw(kept)))
        try:
            os.write(self._file, line)
        except OSError as error:
            raise ModelError(f"{self.path}: {error.strerror}: answers cannot be kept") from error
        self._known[key] = kept

    def _read(self) -> dict[str, bytes]:
        known = {}
        with self.path.open("rb") as lines:
            for line in lines:
                try:
                    record = _record.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue  # empty, or cut by a crash
                known[record.key] = bytes(record.answers)
        return known


class Held(msgspec.Struct, frozen=True):
    """What is served at a model's endpoints, as far as it says so: tomorrow they may serve something else."""

    names: list[tuple[str, ...]]
    """What each server calls the model."""
    tokens: list[tuple[str, ...]] = []
    """By what its tokenizer and chat template are known."""
    versions: list[str] = []
    """Of its weights."""

    def gave(self, answers: Sequence[Completion]) -> bool:
        """Whether the answers are of these weights, as far as they say."""
        told = {version for answer in answers for _, version in answer.weight_versions}
        return not any(self.versions) or told <= set(self.versions)


def question_key(identity: str, request: Request) -> str | None:
    """What a question is kept under: all that its answer depends on. None: its answer is drawn, or it has none."""
    if request.sampling.temperature != 0:
        return None
    same = msgspec.structs.replace(request, id="", affinity="", priority=None)
    return blake2b(_encoder.encode((identity, same)), digest_size=16).hexdigest()


def _free(usage: dict[str, float]) -> dict[str, float]:
    return {**usage, "seconds": 0.0, **({"cost": 0.0} if "cost" in usage else {}), "cached_answer": 1}
