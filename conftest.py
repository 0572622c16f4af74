"""Runs the Python blocks of README, CONTRIBUTING and docs with sybil, each document in an empty folder of its own.

A Python or TOML block whose first line is a comment with a file name (`# nim.py`) is written to that file, so that a
later block can `import nim`, as the reader would. Other Python blocks are executed, top to bottom, in one namespace;
blocks whose language is `py` are only shown.

A document that begins with `<!-- tested with: train -->` needs the packages of that extra: its blocks have the marker
of that name, and its `bash` blocks are run, too.
"""

import contextlib
import os
import re
import subprocess
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

FILE = re.compile(r"# (\w+\.(?:py|toml))\n")
TOGETHER = re.compile(r"\.md::|tests/examples/")
MARKER = re.compile(r"<!-- tested with: (\w+) -->\n")


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


def marker_of(path: Path) -> str:
    """The marker that a document asks for in its first line, or ""."""
    told = MARKER.match(path.read_text(encoding="utf-8")) if path.suffix == ".md" else None
    return told[1] if told else ""


def commands(document: Document) -> Iterable[Region]:
    """Bash blocks of documents that have a marker."""
    return CodeBlockParser("bash", run)(document) if marker_of(Path(document.path)) else ()


def run(example: Example) -> None:
    """Run the block as the reader would in a terminal, with the `arena` of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = subprocess.run(  # noqa: S603 - our own documents
        ["bash", "-euo", "pipefail", "-c", str(example.parsed)],  # noqa: S607 - as the reader has it
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, f"{example.parsed}\n{told.stdout}\n{told.stderr}"


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
    parsers=[Blocks(), named_toml, commands],
    patterns=["README.md", "CONTRIBUTING.md", "docs/*.md"],
    setup=enter,
    teardown=leave,
).pytest()


@pytest.hookimpl(tryfirst=True)  # before those of other markers are deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Blocks have the marker of their document."""
    for item in items:
        if item.path.suffix == ".md" and (marker := marker_of(item.path)):
            item.add_marker(marker)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Hook of xdist: tests go to the workers one by one, the blocks of a document together and in order.

    So do the tests of an example, which share what it has learned.

    xdist's own marks for groups have no effect on pytest 9 (a node's id can no longer be changed).
    """
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: nodeid.partition("::")[0] if TOGETHER.search(nodeid) else nodeid
    return scheduler
