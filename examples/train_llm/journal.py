"""Journal: the stages of a run. What is finished is read, not done again; what was cut off begins anew."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

from examples.train_llm.plan import Refused

__all__ = ["Journal", "cpu_seconds"]


def cpu_seconds() -> float:
    """Of this process and of all that it has started, and those in turn: searches play in processes of their own."""
    here = psutil.Process()
    return sum(sum(_spent(process)) for process in (here, *here.children(recursive=True)))


def _spent(process: Any) -> tuple[float, ...]:
    """Its own seconds, and those of its children that have ended; none for one that is gone, as its parent has them."""
    try:
        return tuple(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return ()


class Journal:
    """The folder of one run: `<stage>.json` says what came of a stage, the folder `<stage>` is what it left."""

    def __init__(self, folder: Path, terms: object) -> None:
        """Raises Refused where the folder holds a run of other `terms` (JSON values)."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        told, path = msgspec.json.encode(terms, order="sorted"), folder / "terms.json"
        if path.exists() and path.read_bytes() != told:
            raise Refused(f"{folder} holds a run of other terms ({path}); name another folder or remove this one")
        path.write_bytes(told)

    def result(self, stage: str) -> dict[str, Any] | None:
        """What came of a stage; None: it is not finished."""
        path = self.folder / f"{stage}.json"
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.exists() else None

    def stage(self, stage: str, work: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """The result of a stage, with its `cpu_seconds` (of this machine's CPU, processes it started included).

        `work` is given a folder that is not there yet and returns JSON values.
        """
        done = self.result(stage)
        if done is not None:
            return done
        place = self.folder / stage
        if place.exists():
            shutil.rmtree(place)
        start = cpu_seconds()
        done = {**work(place), "cpu_seconds": cpu_seconds() - start}
        part = self.folder / f"{stage}.json.part"
        part.write_bytes(msgspec.json.format(msgspec.json.encode(done)))
        part.replace(self.folder / f"{stage}.json")
        return done
