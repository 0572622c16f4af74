"""Who may import whom, and what `import arena` may cost."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import ROOMS, ROOT, module_name, sources

RULES_MAY_SEE = {"arena.game", "arena.chance", "arena.task", "arena.text"}
ROOM_MAY_SEE = {"adapters": {"agents", "tools"}, "agents": {"tools"}, "tournaments": set[str]()}
SB3 = {
    "evaluation",
    "lanes",
    "network",
    "odds",
    "opponents",
    "player",
    "sb3",
    "selfplay",
    "saving",
    "trained",
    "training",
    "vecenv",
}
EXTRA = {  # heavy packages, and the modules (by their last name) that exist for them
    "art": set[str](),
    "fastapi": {"web"},
    "minari": set[str](),
    "open_spiel": {"openspiel"},
    "pyspiel": {"openspiel"},
    "ray": {"ray"},
    "sb3_contrib": SB3,
    "sglang": set[str](),
    "stable_baselines3": SB3,
    "textarena": {"textarena"},
    "torch": {*SB3, "generating", "prefixes", "trl"},
    "transformers": {"generating", "prefixes", "trl"},
    "trl": {"trl"},
    "verifiers": set[str](),
}
LATER = ("scipy", "sqlalchemy", "jinja2", "rich", "click", "chess", *EXTRA)
FILES = sources("arena", *ROOMS)


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module a file names in an import, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "arena")


def at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements that run when the module is imported: function bodies left out."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def room_of(name: str) -> str:
    """The room a module is in, or "" for the core."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""


def allowed(importer: str, imported: str) -> bool:
    """Whether one module of ours may import another."""
    room, other = room_of(importer), room_of(imported)
    if importer.startswith(("arena.cli", "arena.__main__")) or (room and room == other):
        return True
    if imported.startswith("arena.cli"):
        return False
    if room in {"games", "tools"}:
        return any(imported == seen or imported.startswith(f"{seen}.") for seen in RULES_MAY_SEE)
    return not other or other in ROOM_MAY_SEE.get(room, set())


@pytest.mark.parametrize(
    ("importer", "imported", "verdict"),
    [
        ("arena.games.board.chess", "arena.game", True),
        ("arena.games.board.chess", "arena.games.board.grid", True),
        ("arena.games.board.chess", "arena.registry", False),
        ("arena.games.board.chess", "arena.tools", False),
        ("arena.tools.calculator", "arena.task", True),
        ("arena.agents.mcts", "arena.match", True),
        ("arena.agents.mcts", "arena.games.board.chess", False),
        ("arena.agents.llm", "arena.tools.codec", True),
        ("arena.agents.llm", "arena.adapters.models.sglang", False),
        ("arena.adapters.sb3", "arena.agents.simple", True),
        ("arena.adapters.datasets.chat", "arena.tools.codec", True),
        ("arena.adapters.sb3", "arena.tournaments.store", False),
        ("arena.tournaments.runner", "arena.match", True),
        ("arena.tournaments.runner", "arena.agents.simple", False),
        ("arena.match", "arena.games", False),
        ("arena.match", "arena.cli.main", False),
        ("arena.cli.main", "arena.tournaments.store", True),
    ],
)
def test_the_rule(importer: str, imported: str, verdict: bool) -> None:
    assert allowed(importer, imported) is verdict


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_who_imports_whom(path: Path) -> None:
    name, tree = module_name(path), ast.parse(path.read_text(encoding="utf-8"))
    ours = {seen for seen in imports(tree) if seen.startswith("arena.")}
    assert {seen for seen in ours if not allowed(name, seen)} == set()


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_heavy_packages_stay_in_the_module_that_exists_for_them(path: Path) -> None:
    last, tree = module_name(path).rpartition(".")[2], ast.parse(path.read_text(encoding="utf-8"))
    bare = [node for node in at_import(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    heavy = {name.partition(".")[0] for node in bare for name in imports(node)} & EXTRA.keys()
    assert {name for name in heavy if last not in EXTRA[name]} == set()


def test_imports_inside_functions_do_not_count_as_import_time() -> None:
    tree = ast.parse("import a\ndef f():\n    import torch\nclass C:\n    import b\nif x:\n    import c\n")
    found = {name for node in at_import(tree) if isinstance(node, ast.Import) for name in imports(node)}
    assert found == {"a", "b", "c"}


WATCH = """
import json, sys
done = []
def hook(event, args):
    if event == "open":
        path, mode, flags = args
        writes = any(c in "wax+" for c in mode) if isinstance(mode, str) else bool(flags & 3)
        if writes and "__pycache__" not in str(path):
            done.append(f"open {path}")
    elif event.startswith(("socket.", "subprocess.", "urllib.")) or event in ("os.mkdir", "os.system", "os.fork"):
        if event != "os.mkdir" or "__pycache__" not in str(args[0]):
            done.append(f"{event} {args}")
sys.addaudithook(hook)
exec(sys.argv[1])
seen = list(done)
print(json.dumps([seen, sorted(sys.modules)]))
"""


def watched(code: str) -> tuple[list[str], set[str]]:
    """What a fresh interpreter wrote, opened and started while it ran the code, and the modules it then had."""
    command = [sys.executable, "-P", "-c", WATCH, code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    seen, modules = json.loads(done.stdout)
    return seen, set(modules)


def test_import_arena_is_light_writes_nothing_and_opens_no_socket() -> None:
    seen, modules = watched("import arena")
    assert seen == []
    assert modules & set(LATER) == set()


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("import os; open(os.devnull, 'w')", "open"),
        ("import os; os.open(os.devnull, os.O_WRONLY)", "open"),
        ("import socket; socket.socket()", "socket"),
        ("import subprocess, sys; subprocess.run([sys.executable, '-V'], capture_output=True)", "subprocess"),
    ],
)
def test_the_watch_sees(code: str, event: str) -> None:
    assert [entry for entry in watched(code)[0] if entry.startswith(event)]


def test_every_module_imports_without_the_extras() -> None:
    names = [n for n in map(module_name, FILES) if not any(n.rpartition(".")[2] in own for own in EXTRA.values())]
    code = f"import importlib, sys\nsys.modules |= dict.fromkeys({list(EXTRA)})\n"
    seen, modules = watched(code + f"[importlib.import_module(name) for name in {names}]")
    assert seen == []
    assert set(names) <= modules


def test_what_lacks_its_extra_says_which_to_install() -> None:
    code = "import sys\nsys.modules['stable_baselines3'] = None\nimport arena.adapters.sb3"
    command = [sys.executable, "-P", "-c", code]
    told = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stderr.splitlines()[-1]
    assert told.endswith("arena.adapters.sb3 needs stable_baselines3: pip install 'gymnasium-arena[sb3]'")
