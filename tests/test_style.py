"""The limits of the style guide, kept by measuring."""

import ast
import io
import re
import tokenize
from pathlib import Path
from statistics import quantiles

import pytest

from tests.repository import ROOMS, ROOT, sources

VENDORED = (ROOT / "tests" / "fakes" / "sglang_api_types.py",)  # unchanged from its source, under its own licence
CODE = sources("arena", *ROOMS)
TESTS = [path for path in sources("tests") if path not in VENDORED]
ALL = [*CODE, *TESTS, *sources("benchmarks", "docs", "examples", ".ci"), ROOT / "conftest.py"]
SILENCED = re.compile(r"#\s*(type:\s*ignore|noqa|pragma:\s*no)")
RULE = r"type: ignore\[[\w, -]+\]|noqa: [A-Z]+\d+(?:, [A-Z]+\d+)*|pragma: no (?:cover|branch)"
REASONED = re.compile(rf"# (?:{RULE})\W+.*[a-z]{{2}}")


def function_lengths(source: str) -> list[int]:
    """Lines of every function, from `def` to its last line, docstring included."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]


def lines(path: Path) -> int:
    """Lines that are not blank."""
    return sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def silencers(source: str) -> list[str]:
    """Comments that silence a tool."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT and SILENCED.search(token.string)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_and_so_are_its_functions(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 400
    assert max(function_lengths(source), default=0) <= 60


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_silencing_a_tool_names_the_rule_and_the_reason(path: Path) -> None:
    comments = silencers(path.read_text(encoding="utf-8"))
    assert [comment for comment in comments if not REASONED.match(comment)] == []


def test_functions_are_short_on_the_whole() -> None:
    lengths = [n for path in CODE for n in function_lengths(path.read_text(encoding="utf-8"))]
    tenths = quantiles(lengths, n=10, method="inclusive")
    print(f"{len(lengths)} functions: p50 {tenths[4]:g}, p90 {tenths[8]:g}, longest {max(lengths)} lines")
    assert tenths[4] <= 8
    assert tenths[8] <= 25


def test_there_is_at_least_as_much_test_as_code() -> None:
    code, tests = sum(map(lines, CODE)), sum(map(lines, TESTS))
    print(f"code {code} lines, tests {tests} lines: {tests / code:.2f}")
    assert tests >= code


def test_type_ignores_are_rare() -> None:
    comments = [c for path in ALL for c in silencers(path.read_text(encoding="utf-8")) if "type:" in c]
    total = sum(map(lines, ALL))
    print(f"{len(comments)} type: ignore in {total} lines")
    assert len(comments) * 1000 < total


def test_the_measures() -> None:
    assert sorted(function_lengths("def f():\n    x = 1\n    def g(): return x\n    return g\n")) == [1, 4]
    ignore = "# type" + ": ignore"
    assert silencers(f'x = "{ignore}"\ny = 1  {ignore}[a]  # why\n') == [f"{ignore}[a]  # why"]
    assert REASONED.match(f"{ignore}[arg-type]  # why")
    assert REASONED.match("# noqa: S301  our own bytes")
    assert REASONED.match("# noqa: S301, S603 - our own bytes")
    assert not REASONED.match(f"{ignore}[arg-type]")
    assert not REASONED.match(f"{ignore}  # why")
    assert not REASONED.match("# noqa: S301, D102")
    assert not REASONED.match("# noqa")
