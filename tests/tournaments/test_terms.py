"""Schedules, stopping rules, anchors and endpoints of a configuration: what is read, refused and written back."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.tournaments.config import AgentEntry, ConfigError, Tournament, dump, load, parse
from arena.tournaments.terms import (
    Adaptive,
    Gauntlet,
    Knockout,
    Listed,
    RoundRobin,
    Schedule,
    Sprt,
    Stop,
    Swiss,
    schedule_of,
    stop_of,
)

SMALL: dict[str, Any] = {"games": ["TicTacToe-v0"], "agents": ["random", "first", "mcts?simulations=1"]}
ALL = """
schedule = { kind = "gauntlet", anchors = ["first"] }
stop = { interval = 90, games = 99, sprt = { elo0 = -5, elo1 = 5, model = "normalized", agents = ["first", "dice"] } }
anchors = { "first" = 900, dice = 800.5 }
endpoints = { "127.0.0.1:30000" = 16 }
stalled = 600
store = "postgresql://somewhere/games"
games = ["TicTacToe"]

[[agents]]
spec = "random"
name = "dice"
concurrency = 3

[[agents]]
spec = "first"
"""


def test_reads_and_writes_all_terms(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(ALL)
    read = load(tmp_path / "t.toml")
    assert read.schedule == Gauntlet(("first",))
    assert read.stop == Stop(90, None, Sprt(-5, 5, model="normalized", agents=("first", "dice")), 99)
    assert (read.anchors, read.endpoints) == ({"first": 900.0, "dice": 800.5}, {"127.0.0.1:30000": 16})
    assert (read.stalled, read.store) == (600.0, "postgresql://somewhere/games")
    assert read.agents == (AgentEntry("random", "dice", concurrency=3), AgentEntry("first", "first"))
    (tmp_path / "again.toml").write_text(dump(read))
    assert load(tmp_path / "again.toml") == read


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("round-robin", RoundRobin()),
        ("gauntlet", Gauntlet()),
        ("gauntlet?anchors=first,random", Gauntlet(("first", "random"))),
        ("swiss", Swiss()),
        ({"kind": "swiss", "rounds": 5}, Swiss(5)),
        ("swiss?rounds=5", Swiss(5)),
        ("knockout?extra=0&third=true", Knockout(0, third=True)),
        ({"kind": "knockout", "seeding": "rated"}, Knockout(seeding="rated")),
        ("adaptive?uniform=0.1", Adaptive(0.1)),
        (
            "list?tables=random|first,first|mcts?simulations=1",
            Listed((("random", "first"), ("first", "mcts?simulations=1"))),
        ),
        ({"kind": "list", "tables": [["random", "first"]]}, Listed((("random", "first"),))),
    ],
)
def test_a_schedule_is_a_word_a_line_or_a_table(given: Any, expected: Schedule) -> None:
    read = parse({**SMALL, "schedule": given})
    assert read.schedule == expected
    assert parse(tomllib.loads(dump(read))) == read
    assert msgspec.json.decode(msgspec.json.encode(read), type=Tournament) == read


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Stop()),
        ("interval=100,games=2000,sprt=0:50", Stop(100, games=2000, sprt=Sprt(0, 50))),
        ("sprt=-1.5:2:0.1:0.2:normalized", Stop(sprt=Sprt(-1.5, 2, 0.1, 0.2, "normalized"))),
        ({"ranks": 0.9, "tokens": 5, "dollars": 1, "minutes": 0.5}, Stop(None, 0.9, None, None, 5, 1, 0.5)),
    ],
)
def test_stopping_rules_are_a_line_or_a_table(given: Any, expected: Stop) -> None:
    read = parse({**SMALL, "stop": given})
    assert read.stop == expected
    assert parse(tomllib.loads(dump(read))) == read


TEAM = ["random", "first", "mcts?simulations=1", "mcts?simulations=2"]
SPRT = {"elo0": 0, "elo1": 5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "swis"}, "unknown schedule 'swis'. Did you mean 'swiss'? Allowed: adaptive, gauntlet, knockout,"),
        ({"schedule": 3}, "schedule must be a table, got '3'"),
        ({"schedule": {"rounds": 3}}, "schedule.kind is missing: allowed are round-robin, gauntlet,"),
        ({"schedule": {"kind": "swis"}}, "unknown schedule 'swis'. Did you mean 'swiss'?"),
        ({"schedule": {"kind": ["swiss"]}}, "unknown schedule"),
        ({"schedule": {"kind": "swiss", "round": 3}}, "config key 'schedule.round'. Did you mean 'schedule.rounds'?"),
        ({"schedule": {"kind": "swiss", "extra": 3}}, "unknown config key 'schedule.extra'"),
        ({"schedule": "swiss?round=3"}, "unknown option of schedule swiss 'round'. Did you mean 'rounds'?"),
        ({"schedule": "swiss?rounds"}, "'rounds' has no value: write NAME=VALUE"),
        ({"schedule": "swiss?rounds=1&rounds=2"}, "'rounds' stands there twice"),
        ({"schedule": "swiss?rounds=0"}, "schedule.rounds=0: allowed are 1 to 100000"),
        ({"schedule": "swiss?rounds=many"}, "schedule.rounds: expected `int"),
        ({"schedule": "adaptive?uniform=1.5"}, "schedule.uniform=1.5: allowed are 0 to 1"),
        ({"schedule": {"kind": "adaptive", "uniform": float("nan")}}, "schedule.uniform=nan: allowed are 0 to 1"),
        ({"schedule": "knockout?extra=-1"}, "schedule.extra=-1: allowed are 0 to"),
        ({"schedule": "knockout?seeding=luck"}, "schedule.seeding='luck': allowed are listed, rated"),
        ({"schedule": "knockout", "games": ["Arithmetic"]}, "Arithmetic-v0 has 1 seats for agents: a knockout needs"),
        ({"schedule": "gauntlet?anchors=randam"}, "agent in schedule.anchors 'randam'. Did you mean 'random'?"),
        ({"schedule": "gauntlet?anchors=first,first"}, "schedule.anchors has 'first' twice"),
        ({"schedule": "list"}, "schedule.tables is missing: write tables ="),
        ({"schedule": "list?tables=random|frist"}, "agent in schedule.tables[0] 'frist'. Did you mean 'first'?"),
        ({"schedule": "list?tables=random|random"}, "schedule.tables[0] has an agent twice"),
        ({"schedule": "list?tables=random|first,first|random"}, "schedule.tables[1] is the same table as [0]"),
        ({"schedule": "list?tables=random"}, "TicTacToe-v0 has 2 seats for agents, and no table"),
        ({"schedule": "list?tables=random|first,first"}, "has a table of 1, and no game of as many seats"),
        ({"stop": 5}, "stop must be a table, got '5'"),
        ({"stop": ""}, "no stopping rule: write NAME=VALUE,... of interval, ranks, sprt, games"),
        ({"stop": "intervall=5"}, "unknown stopping rule 'intervall'. Did you mean 'interval'?"),
        ({"stop": {"game": 5}}, "unknown config key 'stop.game'. Did you mean 'stop.games'?"),
        ({"stop": {"sprt": 5}}, "stop.sprt must be a table, got '5'"),
        ({"stop": {"sprt": {"elo2": 5}}}, "unknown config key 'stop.sprt.elo2'"),
        ({"stop": "sprt=5"}, "sprt='5': write elo0:elo1:alpha:beta:model"),
        ({"stop": "interval=0"}, "stop.interval=0.0: allowed are numbers above 0"),
        ({"stop": {"dollars": float("nan")}}, "stop.dollars=nan: allowed are numbers above 0"),
        ({"stop": {"minutes": float("inf")}}, "stop.minutes=inf: allowed are numbers above 0"),
        ({"stop": "ranks=0.5"}, "stop.ranks=0.5: allowed are probabilities above 0.5, below 1"),
        ({"stop": "games=0"}, "stop.games=0: allowed are 1 to"),
        ({"stop": "tokens=-1"}, "stop.tokens=-1: allowed are 1 to"),
        ({"stop": "sprt=5:5"}, "stop.sprt.elo1=5: allowed are numbers above elo0, which is 5"),
        ({"stop": {"sprt": {"elo0": float("-inf")}}}, "stop.sprt.elo0=-inf: allowed are -1000 to 1000"),
        ({"stop": "sprt=0:101:0.05:0.05:normalized"}, "stop.sprt.elo1=101.0: allowed are -100 to 100"),
        ({"stop": "sprt=0:51:0.05:0.05:normalized", "repetitions": 12}, "stop.sprt.elo1=51.0: allowed are -50 to 50"),
        ({"stop": "sprt=0:5:0.5"}, "stop.sprt.alpha=0.5: allowed are chances above 0, below 0.5"),
        ({"stop": "sprt=0:5:0.1:0"}, "stop.sprt.beta=0.0: allowed are chances above 0"),
        ({"stop": "sprt=0:5:0.1:0.1:bayes"}, "stop.sprt.model='bayes': allowed are logistic, normalized"),
        ({"stop": {"sprt": {**SPRT, "agents": ["first"]}}}, "stop.sprt.agents must be two names, got 1"),
        ({"stop": {"sprt": {**SPRT, "agents": ["first", "first"]}}}, "stop.sprt.agents has 'first' twice"),
        ({"stop": {"sprt": {**SPRT, "agents": ["first", "rand"]}}}, "agent in stop.sprt.agents 'rand'"),
        ({"stop": "sprt=0:5", "games": ["Arithmetic"]}, "stop.sprt needs a game of two seats"),
        ({"anchors": {"frist": 1000}}, "unknown agent in anchors 'frist'. Did you mean 'first'?"),
        ({"anchors": {"first": float("nan")}}, "anchors.first=nan: allowed are -100000 to 100000"),
        ({"endpoints": {"localhost": 4}}, "endpoints 'localhost': write host and port, such as 127.0.0.1:30000"),
        ({"endpoints": {"http://a:1/": 4}}, "write host and port"),
        ({"endpoints": {"a:1": 0}}, "endpoints.a:1=0: allowed are 1 to 100000"),
        ({"stalled": 0}, "stalled=0.0: allowed are seconds above 0"),
        ({"store": "games.db"}, "store must be the URL of a PostgreSQL database: write postgresql://HOST/NAME"),
        ({"store": "postgresql://me:secret@a/b"}, "store carries a password: it belongs in the environment"),
        ({"agents": ["random", {"spec": "first", "concurrency": 0}]}, "agents[1].concurrency=0: allowed are 1 to"),
    ],
)  # fmt: skip
def test_refusals_are_one_line_and_name_what_is_allowed(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({**SMALL, **change})
    assert message.replace("`", "") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_tables_are_of_the_games_sizes() -> None:
    games = ["TicTacToe", "LiarsDice?players=3", "Arithmetic"]
    tables = [["random", "first"], ["first", "random", "mcts?simulations=1"]]
    assert parse({**SMALL, "games": games, "schedule": {"kind": "list", "tables": tables}})
    with pytest.raises(ConfigError, match="LiarsDice-v0 has 3 seats for agents, and no table"):
        parse({**SMALL, "games": games, "schedule": {"kind": "list", "tables": tables[:1]}})


def test_old_configurations_are_still_read() -> None:
    old = b'{"games":[{"id":"TicTacToe-v0"}],"agents":[{"spec":"random","name":"random"},{"spec":"first"}],"blocks":3}'
    read = msgspec.json.decode(old, type=Tournament)
    assert (read.schedule, read.stop, read.anchors, read.store) == (RoundRobin(), Stop(), {}, "")


def test_the_usual_terms_are_not_written() -> None:
    assert dump(parse({**SMALL, "schedule": "round-robin", "stop": {}, "anchors": {}})) == dump(parse(SMALL))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda name: name == name.strip()
)


@given(names, names)
def test_names_with_separators_can_be_written(first: str, second: str) -> None:
    from urllib.parse import quote

    text = f"{quote(first, safe='')}|{quote(second, safe='')}"
    assert schedule_of(f"list?tables={text},x|y")["tables"] == [[first, second], ["x", "y"]]
    assert schedule_of(f"gauntlet?anchors={quote(second, safe='')}") == {"kind": "gauntlet", "anchors": [second]}


@given(names)
def test_any_name_is_written_and_read_back_as_a_key(name: str) -> None:
    asked = parse({**SMALL, "agents": [{"spec": "random", "name": name}, "mcts?simulations=7"], "anchors": {name: 1}})
    assert parse(tomllib.loads(dump(asked))) == asked


@given(st.text(max_size=40))
def test_lines_give_a_table_or_one_line_of_reason(text: str) -> None:
    for read, ahead in ((schedule_of, "swiss?"), (schedule_of, ""), (stop_of, "")):
        try:
            said = str(read(ahead + text))
        except ConfigError as error:
            said = str(error)
        assert said
        assert "\n" not in said
