"""Files and folders that are there whole or not at all, and the state of random generators as JSON."""

import base64
import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["generators", "replacing", "restore_generators"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside this one to write to, file or folder; it takes the name once all is written.

    What a kill left behind earlier is taken away. A folder must not be there yet.
    """
    written = path.with_name(f".new-{path.name}")
    _remove(written)
    yield written
    written.replace(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def generators() -> dict[str, Any]:
    """The generators that Stable-Baselines3 draws from: torch's, numpy's and Python's global ones."""
    kind, words, position, has_gauss, gauss = np.random.get_state()
    version, state, normal = random.getstate()
    return {
        "torch": base64.b64encode(torch.get_rng_state().numpy().tobytes()).decode(),
        "numpy": [kind, np.asarray(words).tolist(), position, has_gauss, gauss],
        "python": [version, list(state), normal],
    }


def restore_generators(state: Mapping[str, Any]) -> None:
    """Take up what `generators` gave."""
    torch.set_rng_state(torch.tensor(list(base64.b64decode(state["torch"])), dtype=torch.uint8))
    kind, words, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((kind, np.array(words, np.uint32), position, has_gauss, gauss))
    version, numbers, normal = state["python"]
    random.setstate((version, tuple(numbers), normal))
