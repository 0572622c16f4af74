"""The table: `python -m benchmarks.peers [--json] [--python NAME=PATH] [--only NAME]`.

Every column comes from a process of its own. `--python verifiers=/tmp/v/bin/python` runs one in another interpreter,
for a library that cannot share an environment with the others, or to see it as a clean install leaves it.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.checks import Cell, Facts, dump

ROOT = Path(__file__).parents[2]
LIBRARIES = {
    "arena": ("Arena", "gymnasium-arena"),
    "textarena": ("TextArena", "textarena"),
    "pettingzoo": ("PettingZoo", "pettingzoo"),
    "verifiers": ("verifiers", "verifiers"),
    "openspiel": ("OpenSpiel", "open-spiel"),
}
"""Heading and distribution, by the name used at the command line."""
NEEDED = {"pettingzoo": ("chess", "pygame", "pyspiel", "rlcard", "shimmy")}
"""Modules without which a library's column cannot be checked: those of its extra."""
ROWS = {
    "games": "Games playable without a network, of those registered",
    "gymnasium": "Passes Gymnasium's `check_env` (Arena: and its text survives `AsyncVectorEnv`)",
    "pettingzoo": "Passes PettingZoo's `api_test`",
    "seeds": "Seeded game: same alone and beside others, global `random` untouched",
    "pickles": "Pickled mid-game, goes on identically",
    "legal": "Lists legal actions",
    "hidden": "Hidden information drawn anew, for search",
    "any_text": "Games in which no answer, whatever its text, raises or hangs",
    "chess": "Random chess, moves per CPU second",
    "pictures": "Pictures for models that see",
    "models": "For training and language models",
    "install": "Packages installed · CPU seconds to a first game",
}
ABSENT = "not installed"
_START = "import sys; sys.path.append(sys.argv[1]); from benchmarks.peers.__main__ import column; column(*sys.argv[2:])"


def column(name: str, *keys: str) -> None:
    """Print one library's version and cells as JSON; called in the library's own interpreter."""
    if (version := _version(name)) is None:
        print(json.dumps({"version": None, "python": platform.python_version(), "cells": {}}))
        return
    facts: Facts = import_module(f"benchmarks.peers.of_{name}").FACTS
    cells = {key: facts[key]() for key in keys or ROWS}
    print(f'{{"version": "{version}", "python": "{platform.python_version()}", "cells": {dump(cells)}}}')


def _version(name: str) -> str | None:
    if not all(find_spec(module) for module in NEEDED.get(name, ())):
        return None
    try:
        return metadata.version(LIBRARIES[name][1])
    except metadata.PackageNotFoundError:
        return None


def asked(name: str, python: str = sys.executable, keys: tuple[str, ...] = ()) -> dict[str, Any]:
    """A library's column, checked now in a process of its own. Raises RuntimeError if that process fails."""
    command = [python, "-W", "ignore", "-P", "-c", _START, str(ROOT), name, *keys]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the column of {name} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    cells = found["cells"].items()
    found["cells"] = {key: Cell(cell["text"], cell["note"], tuple(cell["failed"])) for key, cell in cells}
    return found


def markdown(columns: Mapping[str, Mapping[str, Any]]) -> str:
    """The table with numbered footnotes."""
    notes: dict[str, int] = {}
    heads = [f"{LIBRARIES[name][0]} {found['version'] or ''}".strip() for name, found in columns.items()]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for key, title in ROWS.items():
        cells = [_cell(found["cells"].get(key, Cell(ABSENT)), notes) for found in columns.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += ["", *(f"{number}. {note}" for note, number in notes.items())]
    return "\n".join(lines)


def _cell(cell: Cell, notes: dict[str, int]) -> str:
    if not cell.note:
        return cell.text
    return f"{cell.text} <sup>{notes.setdefault(cell.note, len(notes) + 1)}</sup>"


def _interpreter(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if name not in LIBRARIES or not path:
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=PATH with NAME one of {', '.join(LIBRARIES)}")
    return name, path


def main(arguments: list[str] | None = None) -> None:
    """Check every library and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--json", action="store_true", help="all that was found, with each failure")
    parser.add_argument("--python", action="append", default=[], type=_interpreter, metavar="NAME=PATH")
    parser.add_argument("--only", action="append", choices=LIBRARIES, metavar="NAME", help="this library's column")
    given = parser.parse_args(arguments)
    pythons = dict(given.python)
    columns = {name: asked(name, pythons.get(name, sys.executable)) for name in given.only or LIBRARIES}
    if given.json:
        plain = {
            name: {**found, "cells": {key: cell._asdict() for key, cell in found["cells"].items()}}
            for name, found in columns.items()
        }
        print(json.dumps(plain, indent=1, ensure_ascii=False))
        return
    print(markdown(columns))
    print("\nPython " + ", ".join(f"{found['python']} ({name})" for name, found in columns.items()))


if __name__ == "__main__":
    main()
