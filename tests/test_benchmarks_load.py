"""The load benchmark measures what it says, on a few matches; how fast anything is, is not asserted here."""

import asyncio
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from arena.episode import Attempt, Turn
from arena.match import play_sync
from arena.registry import GAMES
from arena.testing import check_game
from benchmarks import __main__ as command
from benchmarks.load import (
    arena_side,
    calls,
    client_side,
    faults_side,
    floor_side,
    meter,
    processes,
    record_side,
    slow_side,
    table,
    tables,
    texts,
    trouble,
)
from benchmarks.load.game import ID, Relay, known
from benchmarks.load.server import Faults, Generate, Server, Tokenize
from benchmarks.load.words import LAST, Words

ROUTES = pytest.mark.parametrize("route", table.ROUTES)
LOAD = ("load", "load_many", "load_peers", "load_faults", "load_slow")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """The benchmark's game is known while a test runs only: other tests are about all there are."""
    yield
    GAMES.pop(ID, None)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with processes.serving(latency=0.001) as address:
        yield address


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_the_game_keeps_the_contract() -> None:
    check_game(Relay)
    episode = play_sync(known(), ["first", "random"], 3)
    assert len(episode.turns) == texts.PLIES
    assert len({turn.observation for turn in episode.turns}) == texts.PLIES
    with pytest.raises(ValueError, match="allowed are 2 to 1000"):
        play_sync(Relay, ["first", "first"], 0, {"plies": 1})


def test_words_are_tokens_that_can_be_told_apart() -> None:
    words = Words()
    said = [("user", "say [m:a.0.1] now"), ("assistant", "[m:b.1.2]"), ("user", "more")]
    whole, begun = words.render(said, True), words.render(said[:2], False)
    assert whole[: len(begun)] == begun
    assert words.last_mark(whole) == "[m:b.1.2]"
    assert words.last_mark(words.encode("none")) == ""
    ids = words.encode("Straße 1234567890\n!")
    back = {number: word for word, number in words.ids.items()}
    assert "".join([back[number] for number in ids]) == "Straße 1234567890\n!"


def test_an_answer_carries_the_last_mark_and_a_legal_action() -> None:
    server = Server()
    texts_of = ["[m:old.0.0] then [m:c0ffee.1.7] answer"]
    ids = json.loads(server.tokenized(Tokenize(prompt=texts_of)))["tokens"][0]
    native = json.loads(server.generated(Generate(ids, "r1", True, True)))
    chat = json.loads(server.chat(json.dumps({"messages": texts_of, "logprobs": True}, separators=(",", ":")).encode()))
    answer, choice = native["text"], chat["choices"][0]
    assert answer == choice["message"]["content"]
    assert "[m:c0ffee.1.7]" in answer
    assert answer[-10] in Relay.initial(Random(0)).legal_actions(0)
    assert native["output_ids"][-1] == LAST
    assert [entry[1] for entry in native["meta_info"]["output_token_logprobs"]] == native["output_ids"]
    assert (native["prompt_token_ids"], native["meta_info"]["id"]) == (ids, "r1")
    assert len(choice["logprobs"]["content"]) > 3


def test_faults_are_drawn_in_their_shares_and_repeat() -> None:
    one, two = [Server(faults=Faults(0.05, 0.02, 0.01, seed=7)) for _ in range(2)]
    drawn = [one.fault() for _ in range(20_000)]
    assert drawn == [two.fault() for _ in range(20_000)]
    shares = {kind: drawn.count(kind) / len(drawn) for kind in ("500", "503", "hang", "drop", "cut")}
    assert shares == pytest.approx({"500": 0.025, "503": 0.025, "hang": 0.02, "drop": 0.005, "cut": 0.005}, abs=0.005)
    assert {Server().fault() for _ in range(100)} == {""}


def test_the_server_counts_and_knows_its_routes(url: str) -> None:
    before = processes.stats(url)
    with urllib.request.urlopen(f"{url}/v1/models", timeout=10) as answer:
        assert {card["id"] for card in json.load(answer)["data"]} >= {"left", "right"}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{url}/nowhere", timeout=10)
    after = processes.stats(url)
    assert after["/nowhere"] == before.get("/nowhere", 0) + 1
    assert after["connections"] == 1


@ROUTES
def test_what_is_recorded_is_asked_again(
    route: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(record_side.main(route, url, str(tmp_path), 3))
    told(capsys)
    asked, posted = calls.load_asked(tmp_path / "asked"), calls.load(tmp_path / "calls")
    assert [sum(each.request is not None for each in match) for match in asked] == [texts.PLIES] * 3
    assert {len(match) for match in posted} == {2 * texts.PLIES if route == "native" else texts.PLIES}
    assert [len(match) for match in asked] == [len(match) for match in posted]
    assert len({msgspec.msgpack.encode(match) for match in asked}) == 3
    before = processes.stats(url)
    asyncio.run(client_side.main(route, url, str(tmp_path / "asked"), 16))
    assert told(capsys)["turns"] == 3 * texts.PLIES
    asyncio.run(floor_side.main(url, str(tmp_path / "calls")))
    assert told(capsys)["calls"] == sum(map(len, posted))
    path = "/generate" if route == "native" else "/v1/chat/completions"
    assert processes.stats(url)[path] - before[path] >= 2 * 3 * texts.PLIES


@ROUTES
def test_our_side_plays_all_matches_at_once(route: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    arena_side.main(route, url, 6, 16)
    found = told(capsys)
    assert found["turns"] == 6 * texts.PLIES
    assert found["cpu"] > 0
    assert found["megabytes"] > 10


@ROUTES
def test_with_faults_every_match_ends_and_nothing_is_left(route: str, capsys: pytest.CaptureFixture[str]) -> None:
    with processes.serving(errors=0.05, hangs=0.02, drops=0.01, latency=0.001, seed=3) as url:
        faults_side.main(route, url, 2, 6, 0.2)
        found, seen = told(capsys), processes.stats(url)
    assert (found["left"], found["foreign"], found["tasks"], found["sockets"]) == (0, 0, [], 0)
    assert found["finished"] + found["given_up"] == 2
    assert found["kept"] == found["finished"]
    assert seen["connections"] == 1
    assert sum(seen.get(kind, 0) for kind in ("500", "503", "hang", "drop", "cut")) > 0


def test_a_reply_of_another_seat_is_seen() -> None:
    own = Turn(0, 0, "Your mark is [m:a.0.0].", "4", (Attempt("[m:a.0.0] <answer>4</answer>"),))
    other = Turn(1, 1, "Your mark is [m:a.1.1].", "4", (Attempt("[m:a.0.0] <answer>4</answer>"), Attempt("none")))
    episode = play_sync(known(), ["first", "first"])
    episode.turns = [own, other]
    assert faults_side.foreign(episode) == 2


def test_a_slow_model_beside_a_fast_one(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slow_side, "WAVES", 1)
    with processes.serving(latency=0.1) as slow:
        asyncio.run(slow_side.main("native", url, slow, 2))
    found = told(capsys)
    assert found["slow"] == found["running"] == 2


def test_the_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    made = {
        "arena": {"cpu": 200.0, "rate": 50.0, "megabytes": 300.0},
        "client": {"cpu": 120.0, "rate": 80.0, "megabytes": 90.0},
        "floor": {"cpu": 100.0, "rate": 90.0, "megabytes": 60.0},
        "verifiers": {"cpu": 8000.0, "rate": 1.0, "megabytes": 300.0, "version": "0.1.14", "errors": 0},
        "inspect": {"cpu": 16000.0, "rate": 1.0, "megabytes": 700.0, "version": "0.3", "errors": 0},
        "faults": {"left": 0, "finished": 7, "given_up": 1, "voids": 3, "reasons": {"hang": 3}, "foreign": 0,
                   "kept": 7, "tasks": ["t"], "sockets": 1},
        "slow": {"alone": 1.0, "beside": 1.05, "running": 8},
        "record": {},
    }  # fmt: skip
    for module in (tables, trouble):
        monkeypatch.setattr(module, "side", lambda name, *_, **__: made[name])
        monkeypatch.setattr(module, "serving", lambda **_: nullcontext("http://127.0.0.1:1"))
    monkeypatch.setattr(tables, "peer_python", lambda: sys.executable)
    monkeypatch.setattr(trouble, "stats", lambda url: {"connections": 2, "hang": 5})
    command.main(["--only", ",".join(LOAD), "--secs", "0.01"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for part in (
        "over our client's calls alone 200 120 80 us 80 to 80 <= 100 reached",
        "over bare aiohttp 200 100 100 us",
        "turns/s beside our client alone 50 80 0.625 x 0.625 to 0.625 >= 0.5 reached",
        "verifiers 0.1.14 200 8,000 40 x",
        "tasks and sockets left over 3 - 3 3 to 3 <= 0 falls short: faults: 5 hang",
        "void attempts 3",
        "1.05 x 1.05 to 1.05 <= 1.1 reached",
    ):
        assert any(part in line for line in lines), part


def test_peers_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARENA_LOAD_PYTHON", str(tmp_path / "none"))
    assert [figure.note for figure in tables.peers(0.01)] == ["not installed: make bench-load"] * 2


def test_the_meter(capsys: pytest.CaptureFixture[str]) -> None:
    meter.Meter().tell(10, extra=1)
    found = told(capsys)
    assert found.keys() == {"turns", "cpu", "rate", "megabytes", "extra"}
    assert meter.files(1) >= 1
    before = meter.sockets()
    with urllib.request.urlopen("data:,x") as nothing:
        assert nothing.read() == b"x"
    assert meter.sockets() == before


def test_a_side_that_fails_says_so() -> None:
    with pytest.raises(RuntimeError, match="allowed are native, chat"):
        processes.side("arena", "pigeon", "http://127.0.0.1:1", 2, 2)


def test_every_table_of_load_is_known() -> None:
    others = {name for name in command.BENCHMARKS if name.startswith(("grpo", "sb3"))}  # those that learn
    assert {*LOAD, *command.USUAL} == set(command.BENCHMARKS) - others
