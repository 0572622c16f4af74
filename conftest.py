"""Runs the Python blocks of README, CONTRIBUTING and docs with sybil, each document in an empty folder of its own.

A Python or TOML block whose first line is a comment with a file name (`# nim.py`) is written to that file, so that a
later block can `import nim`, as the reader would. Other Python blocks are executed, top to bottom, in one namespace.
"""

import contextlib
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser
from xdist.scheduler import LoadScopeScheduling

import arena.registry

# Some packages (cint, which openpipe-art brings) install a folder `tests` of their own: here it is ours.
sys.path.insert(0, str(Path(__file__).parent))
importlib.import_module("tests")
del sys.path[0]

FILE = re.compile(r"# (\w+\.(?:py|toml))\n")


class Blocks(PythonCodeBlockParser):
    """Python blocks; those with a file's name on top are written, not run."""

    def __call__(self, document: Document) -> Iterable[Region]:
        """The blocks of a document."""
        for region in super().__call__(document):
            if FILE.match(str(region.parsed)):
                region.evaluator = write
            yield region


def named_toml(document: Document) -> Iterable[Region]:
    """TOML blocks with a file's name on top."""
    return (region for region in CodeBlockParser("toml", write)(document) if FILE.match(str(region.parsed)))


def write(example: Example) -> None:
    """Write the block to the file its first line names."""
    name = FILE.match(str(example.parsed))
    assert name is not None
    Path(name[1]).write_text(str(example.parsed), encoding="utf-8")


def enter(namespace: dict[str, Any]) -> None:
    """Before a document: an empty working folder, importable."""
    stack = contextlib.ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    stack.enter_context(contextlib.chdir(folder))
    stack.callback(sys.path.remove, folder)
    stack.callback(_forget, set(sys.modules), dict(arena.registry.GAMES))
    sys.path.insert(0, folder)
    namespace["__name__"], namespace[CLOSE] = "__main__", stack.close


def leave(namespace: dict[str, Any]) -> None:
    """After a document: the process as it was."""
    close: Callable[[], None] = namespace[CLOSE]
    close()


CLOSE = "__leave__"


def _forget(modules: set[str], games: dict[str, str]) -> None:
    """Drop what the document imported from its own folder, and the ids it registered."""
    here = os.getcwd()  # noqa: PTH109  compared with __file__, a str
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(here):
            del sys.modules[name]
    arena.registry.GAMES.clear()
    arena.registry.GAMES.update(games)


pytest_collect_file = Sybil(
    parsers=[Blocks(), named_toml], patterns=["README.md", "CONTRIBUTING.md", "docs/*.md"], setup=enter, teardown=leave
).pytest()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Hook of xdist: tests go to the workers one by one, the blocks of a document together and in order.

    xdist's own marks for groups have no effect on pytest 9 (a node's id can no longer be changed).
    """
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: nodeid.partition("::")[0] if ".md::" in nodeid else nodeid
    return scheduler
