"""The second checkpoint that tests of weight updates load."""

import json
import struct
from pathlib import Path

import pytest

from tests.sglang.blank import NORM, blank


def folder(path: Path, **tensors: list[float]) -> Path:
    """A model of float32 tensors."""
    path.mkdir()
    header, data = {}, b""
    for name, values in tensors.items():
        start, data = len(data), data + struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [start, len(data)]}
    told = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(len(told).to_bytes(8, "little") + told + data)
    (path / "config.json").write_text("{}", encoding="utf-8")
    return path


def values(path: Path, name: str) -> list[float]:
    body = (path / "model.safetensors").read_bytes()
    length = int.from_bytes(body[:8], "little")
    start, end = json.loads(body[8 : 8 + length])[name]["data_offsets"]
    return list(struct.unpack(f"<{(end - start) // 4}f", body[8 + length + start : 8 + length + end]))


def test_only_the_last_norm_is_zero(tmp_path: Path) -> None:
    model = folder(tmp_path / "model", **{"a": [1.0, 2.0], NORM: [3.0, 4.0, 5.0], "z": [6.0]})
    copy = blank(model, tmp_path / "copy")
    assert [values(copy, name) for name in ("a", NORM, "z")] == [[1.0, 2.0], [0.0, 0.0, 0.0], [6.0]]
    assert values(model, NORM) == [3.0, 4.0, 5.0]
    assert (copy / "config.json").read_text(encoding="utf-8") == "{}"


def test_a_model_without_such_a_norm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no safetensors file there has model\.norm\.weight"):
        blank(folder(tmp_path / "model", a=[1.0]), tmp_path / "copy")
