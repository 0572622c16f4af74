"""The table of facts about Arena and its peers: our own column, the checks themselves, libraries that are absent."""

import json
import os
import random
import re
import sys
import time
from importlib import metadata
from random import Random
from typing import Any, NoReturn

import pytest

from arena.registry import GAMES, load
from benchmarks.peers import checks
from benchmarks.peers.__main__ import LIBRARIES, ROWS, asked, column, main, markdown
from benchmarks.peers.checks import Broken, Cell, Driver, attempt, continues, own_seed, packages, tally


@pytest.fixture(scope="module")
def ours() -> dict[str, Cell]:
    found = asked("arena")
    assert found["version"] == metadata.version("gymnasium-arena")
    cells: dict[str, Cell] = found["cells"]
    return cells


def test_our_column_has_every_row_in_order(ours: dict[str, Cell]) -> None:
    assert list(ours) == list(ROWS)


@pytest.mark.parametrize("key", ["games", "gymnasium", "pettingzoo", "seeds", "pickles", "any_text"])
def test_what_holds_for_every_id_of_ours(ours: dict[str, Cell], key: str) -> None:
    assert ours[key].failed == ()
    assert ours[key].text == f"all {len(GAMES)}"


def test_our_other_cells(ours: dict[str, Cell]) -> None:
    assert ours["hidden"].text == f"all {sum(not load(game_id).perfect_information for game_id in GAMES)}"
    texts, of, masks = map(int, re.findall(r"\d+", ours["legal"].text))
    assert 1 < masks <= texts < of == len(GAMES)
    assert int(ours["chess"].text.replace(",", "")) > 1000
    brought, seconds = ours["install"].text.split(" · ")
    assert int(brought) <= 30
    assert 0 < float(seconds) < 5


@pytest.mark.parametrize("name", [name for name in LIBRARIES if name != "arena"])
def test_a_peer_is_checked_or_is_not_installed(name: str) -> None:
    found = asked(name, keys=("models",))
    assert set(found["cells"]) == ({"models"} if found["version"] else set())


def test_a_library_that_is_absent_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def absent(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    column("textarena")
    found = json.loads(capsys.readouterr().out)
    assert found["version"] is None
    table = markdown({"textarena": found}).splitlines()
    assert table[0] == "| | TextArena |"
    assert len([line for line in table if line.endswith("| not installed |")]) == len(ROWS)


def test_a_column_that_fails_is_not_hidden() -> None:
    with pytest.raises(RuntimeError, match=r"column of arena failed:[\s\S]*KeyError: 'no such fact'"):
        asked("arena", keys=("no such fact",))


def test_the_command_prints_one_column(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []

    def quick(name: str, python: str = sys.executable) -> dict[str, Any]:
        seen.append((name, python))
        return {"version": "1.2", "python": "3.11.0", "cells": {"games": Cell("all 3", "why"), "seeds": Cell("no")}}

    monkeypatch.setattr("benchmarks.peers.__main__.asked", quick)
    main(["--only", "verifiers", "--python", "verifiers=/there/python"])
    out = capsys.readouterr().out
    assert seen == [("verifiers", "/there/python")]
    assert "| | verifiers 1.2 |" in out
    assert "| all 3 <sup>1</sup> |" in out
    assert "\n1. why\n" in out
    main(["--json", "--only", "arena"])
    assert json.loads(capsys.readouterr().out)["arena"]["cells"]["games"]["note"] == "why"


@pytest.mark.parametrize("value", ["verifiers", "nobody=/there", "arena="])
def test_an_interpreter_must_be_named_right(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--python", value])
    assert "write NAME=PATH with NAME one of arena, textarena" in capsys.readouterr().err


def test_equal_notes_share_a_number() -> None:
    cells = {"games": Cell("1", "a"), "seeds": Cell("2", "b"), "chess": Cell("3", "a")}
    text = markdown({"arena": {"version": "0", "cells": cells}})
    assert [text.count(f"<sup>{n}</sup>") for n in (1, 2, 3)] == [2, 1, 0]
    assert text.endswith("\n1. a\n2. b")


def _refuse() -> None:
    raise ValueError("not so")


def _connect() -> None:
    import socket

    socket.create_connection(("127.0.0.1", 9))


def test_an_attempt_says_what_went_wrong(capfd: pytest.CaptureFixture[str]) -> None:
    assert attempt(lambda: print("unseen")) == ""
    assert attempt(_refuse) == "ValueError: not so"
    assert attempt(lambda: sys.exit(3)) == "SystemExit: 3"
    assert attempt(lambda: os._exit(3)) == "the process dies"
    assert attempt(lambda: time.sleep(60), 0.2) == "takes over 0.2 s"
    assert attempt(_connect) == "OSError: no network here"
    assert capfd.readouterr().out == ""


def test_a_tally_counts_and_names_the_faults() -> None:
    assert tally(["a", "b"], len) == Cell("all 2")

    def work(name: str) -> None:
        if name != "a":
            raise Broken(f"{name} is broken: badly" if name == "b" else "it is")

    assert tally("abc", work) == Cell(
        "1 of 3", "b is broken (1); it is (1)", ("b: b is broken: badly", "c: it is")
    )  # fmt: skip
    assert tally("abc", work, note="because").note == "because"


def _dice(draw: Any) -> Driver:
    return Driver(lambda seed: Random(seed), lambda rng, n: str(draw(rng)))


def _seeding(seed: int) -> Random:
    random.seed(seed)
    return Random(seed)


def test_own_seed_finds_each_fault() -> None:
    own_seed(_dice(lambda rng: rng.random()))
    with pytest.raises(Broken, match="another game"):
        own_seed(_dice(lambda rng: random.SystemRandom().random()))
    with pytest.raises(Broken, match=r"^the global `random` is reseeded$"):
        own_seed(Driver(_seeding, lambda rng, n: str(rng.random())))
    with pytest.raises(Broken, match="reseeded and another game beside it changes it"):
        own_seed(Driver(_seeding, lambda rng, n: str(random.random())))


def test_continues_finds_a_copy_that_does_not() -> None:
    continues(_dice(lambda rng: rng.random()))
    with pytest.raises(Broken, match="goes on otherwise"):
        continues(Driver(Forgetful, lambda it, n: it.next()))


class Forgetful:
    """Pickled by what it was made with."""

    def __init__(self, seed: int) -> None:
        self.seed, self.n = seed, 0

    def next(self) -> str:
        self.n += 1
        return str(self.n)

    def __reduce__(self) -> tuple[Any, ...]:
        return Forgetful, (self.seed,)


def test_packages_follow_requirements_and_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {
        "one": ["two>=1", 'three; extra == "more"', 'never; python_version < "3"'],
        "two": ["One"],
        "three": ["two", 'four; extra == "x"'],
    }
    monkeypatch.setattr(metadata, "requires", needs.get)
    assert packages("one") == 2
    assert packages("one[more]") == 3


def test_rate_counts_moves_per_cpu_second() -> None:
    def play(rng: Random) -> int:
        begin = time.process_time()
        while time.process_time() - begin < 0.01:
            pass
        return 5

    assert 100 < checks.rate(play, 0.05) <= 500
