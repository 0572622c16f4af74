"""A second checkpoint of a model, made on the spot: one whose answers show by their probability whose they are."""

import json
import shutil
from pathlib import Path

__all__ = ["NORM", "blank"]

NORM = "model.norm.weight"
"""The weights of the last norm of a Llama: all zero, every token is as likely as any other."""


def blank(model: Path, out: Path) -> Path:
    """A copy of the model's folder whose last norm is zero. Raises ValueError where no file has it.

    A safetensors file is eight bytes (the header's length, little-endian), a header of JSON with each tensor's
    offsets into the rest, and the rest.
    """
    shutil.copytree(model, out)
    for path in sorted(out.glob("*.safetensors")):
        with path.open("r+b") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            if NORM in header:
                start, end = header[NORM]["data_offsets"]
                file.seek(8 + length + start)
                file.write(bytes(end - start))
                return out
    raise ValueError(f"{model}: no safetensors file there has {NORM}")
