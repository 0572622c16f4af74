"""Lets SGLang 0.5.23 and torchvision import beside a CPU-only torch, without triton. Nothing of theirs is edited.

The environment's `sglang_cpu.pth` calls `install()` at the start of every interpreter, SGLang's child processes
included.
"""

import os
import platform
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch


def install() -> None:
    """Ask for SGLang's CPU paths, and be there when it is imported. Python reads .pth files twice: once is enough."""
    os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
    if not any(isinstance(finder, Before) for finder in sys.meta_path):
        sys.meta_path.insert(0, Before())


class Before(MetaPathFinder):
    """Finds nothing; does what has to be done before a package is first imported."""

    def __init__(self) -> None:
        self.todo = {"torchvision": declare_operators, "sglang": stand_in_for_triton}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Nothing, ever: the other finders go on."""
        prepare = self.todo.pop(fullname, None)
        if prepare is not None:
            prepare()
        return None


def declare_operators() -> None:
    """Torchvision's wheel has its operators for CUDA torch only, and refuses to load where they are unknown."""
    torch: Any = import_module("torch")
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    KEPT.append(library)


KEPT: list[object] = []
"""A library's operators go when it does."""


def stand_in_for_triton() -> None:
    """SGLang has a stand-in for triton (1 GB, and of no use on a CPU), but puts it up on Apple's machines only."""
    torch: Any = import_module("torch")
    stubs = _stubs()
    with ExitStack() as pretend:
        pretend.enter_context(patch.object(sys, "platform", "darwin"))
        pretend.enter_context(patch.object(platform, "machine", lambda: "arm64"))
        pretend.enter_context(patch.object(torch.backends.mps, "is_available", lambda: True))
        pretend.enter_context(patch.object(stubs, "_patch_non_blocking", lambda: None))
        stubs.install_platform_stubs()


def _stubs() -> ModuleType:
    """`sglang._platform_stubs` by its path, as SGLang itself cannot be imported yet. Raises ImportError."""
    package = PathFinder.find_spec("sglang")
    if package is None or package.origin is None:
        raise ImportError("sglang is not installed here")
    spec = spec_from_file_location("_sglang_platform_stubs", Path(package.origin).with_name("_platform_stubs.py"))
    if spec is None or spec.loader is None:
        raise ImportError("this sglang has no _platform_stubs.py: the shims are for version 0.5.23")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
