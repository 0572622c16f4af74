import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.referee import Referee
from arena.tournaments.config import AgentEntry, ConfigError, GameEntry, Tournament, dump, load, parse
from tests.tournaments.players import Counted

SMALL: dict[str, Any] = {"games": ["TicTacToe-v0"], "agents": ["random", "first"]}
FULL = """
name = "one of each"
seed = 7
blocks = 3
concurrency = 4
deadline = 60
truncated = "drop"

[referee]
illegal = "random"
retries = 2

[[games]]
id = "ConnectFour"
blocks = 2
options = { columns = 5 }

[[games]]
id = "TicTacToe-v0"

[[agents]]
spec = "mcts?simulations=5"
name = "tree"

[[agents]]
spec = "random"
"""


def test_reads_everything(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(FULL)
    read = load(tmp_path / "t.toml")
    assert read.games == (GameEntry("ConnectFour-v0", {"columns": 5}, 2), GameEntry("TicTacToe-v0"))
    assert read.agents == (AgentEntry("mcts?simulations=5", "tree"), AgentEntry("random", "random"))
    assert (read.seed, read.blocks, read.deadline, read.truncated) == (7, 3, 60.0, "drop")
    assert read.referee == Referee("random", 2)
    assert [read.blocks_of(entry) for entry in read.games] == [2, 3]


def test_strings_stand_for_tables() -> None:
    read = parse({"games": ["ConnectFour?columns=5&rows=4"], "agents": ["first", "mcts?simulations=9"]})
    assert read.games == (GameEntry("ConnectFour-v0", {"columns": 5, "rows": 4}),)
    assert read.games[0].label == "ConnectFour-v0 (columns=5, rows=4)"
    assert [entry.name for entry in read.agents] == ["first", "mcts?simulations=9"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blokcs": 3}, "unknown config key 'blokcs'. Did you mean 'blocks'? Allowed: agents, anchors, blocks,"),
        ({"games": [{"id": "TicTacToe-v0", "opts": {}}]}, "unknown config key 'games[0].opts'"),
        ({"agents": ["first", {"spek": "random"}]}, "unknown config key 'agents[1].spek'. Did you mean"),
        ({"referee": {"retrys": 1}}, "unknown config key 'referee.retrys'. Did you mean 'referee.retries'?"),
        ({"games": ["TicTacTo"]}, "unknown game 'TicTacTo'. Did you mean 'TicTacToe-v0'?"),
        ({"agents": ["first", "randam"]}, "unknown agent 'randam'. Did you mean 'random'? Allowed: "),
        ({"agents": ["first", "mcts?sims=5"]}, "unknown option of agent mcts 'sims'. Did you mean 'simulations'?"),
        ({"agents": ["first", "http://a:3"]}, "an address alone is no agent: write sglang:http://... or openai:https"),
        ({"agents": ["first", "scripted"]}, "agent 'scripted' needs a target: write scripted:TARGET"),
        ({"agents": ["first", "llm?api_key=1"]}, "it belongs in the environment"),
        ({"games": ["ConnectFour?colums=5"]}, "unknown option of ConnectFour 'colums'. Did you mean 'columns'?"),
        ({"games": [{"id": "ConnectFour", "options": {"columns": "x"}}]}, "must be int"),
        ({"games": [{"id": "ConnectFour", "options": {"columns": 99}}]}, "columns=99"),
        ({"games": []}, "games is missing: write games = "),
        ({"agents": []}, "agents is missing: write agents = "),
        ({"agents": "random"}, "agents must be a list, got 'random': write agents = "),
        ({"games": "TicTacToe"}, "games must be a list, got 'TicTacToe': write games = "),
        ({"games": [3]}, "games[0] must be a table, got '3'"),
        ({"referee": 3}, "referee must be a table"),
        ({"blocks": "many"}, "blocks: expected int, got str"),
        ({"blocks": 0}, "blocks=0: allowed are 1 to 1000000000"),
        ({"games": [{"id": "TicTacToe-v0", "blocks": 0}]}, "games[0].blocks=0: allowed are 1 to 1000000000"),
        ({"blocks": 99999999999999}, "blocks=99999999999999: allowed are 1 to 1000000000"),
        ({"repetitions": 10**30}, "allowed are 1 to 1000000"),
        ({"concurrency": 20_000_000}, "concurrency=20000000: allowed are 1 to 100000"),
        ({"workers": -1}, "workers=-1: allowed are 0 to 1000"),
        ({"void_retries": 10**9}, "void_retries=1000000000: allowed are 0 to 1000"),
        ({"seed": -1}, "seed=-1: allowed are 0 to 4611686018427387903"),
        ({"seed": 1 << 62}, "allowed are 0 to 4611686018427387903"),
        ({"deadline": 0}, "deadline=0.0: allowed are seconds above 0, up to 100000000"),
        ({"turn_seconds": float("nan")}, "turn_seconds=nan: allowed are seconds above 0"),
        ({"turn_seconds": float("inf")}, "turn_seconds=inf: allowed are seconds above 0"),
        ({"max_turns": -3}, "max_turns=-3: allowed are 1 to 1000000000"),
        ({"void_limit": 0}, "void_limit=0.0: allowed are shares above 0"),
        ({"truncated": "maybe"}, "truncated='maybe': allowed are score, drop"),
        ({"referee": {"illegal": "forfit"}}, "referee.illegal='forfit': allowed are forfeit, random, fallback"),
        ({"referee": {"marks": ["star"]}}, "marks=['star']: allowed are answer, boxed, final, bracket"),
        ({"agents": ["random", {"spec": "first", "name": "a\ud800"}]}, "agent name 'a\\ud800' has a lone surrogate"),
        ({"agents": ["random", "scripted:\udfff"]}, "agent 'scripted:\\udfff' has a lone surrogate"),
        ({"name": "\udc80"}, "name '\\udc80' has a lone surrogate, which is no text"),
        ({"agents": ["random", "random"]}, "agent 'random' appears twice"),
        ({"agents": ["mcts", "mcts?simulations=200"]}, "agent 'mcts?simulations=200' is the same agent as 'mcts'"),
        ({"agents": ["mcts?c=2", "mcts?c=2.0"]}, "is the same agent as 'mcts?c=2'"),
        ({"games": ["ConnectFour", "ConnectFour?columns=7"]}, "(columns=7)' is the same game as 'ConnectFour-v0'"),
        ({"games": ["TicTacToe", "TicTacToe-v0"]}, "game 'TicTacToe-v0' appears twice"),
        ({"agents": ["random"]}, "TicTacToe-v0 needs at least 2 agents, got 1"),
    ],
)
def test_refusals_are_one_line_and_name_what_is_allowed(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({**SMALL, **change})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[[", "a = ", "\x00"])
def test_not_toml(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"t\.toml is not TOML"):
        load(tmp_path / "t.toml")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not TOML"):
        load(tmp_path / "bytes.toml")


def test_one_agent_may_do_tasks_alone() -> None:
    assert len(parse({"games": ["Arithmetic"], "agents": ["random"]}).agents) == 1


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(names, names, st.integers(0, 1 << 40), st.booleans())
def test_dump_is_read_back(title: str, agent: str, seed: int, chess960: bool) -> None:
    import tomllib

    asked = parse(
        {
            "name": title,
            "seed": seed,
            "referee": {"retries": 1, "marks": ["answer"]},
            "games": [{"id": "Chess", "options": {"chess960": chess960}}, "IteratedPrisonersDilemma?payoffs=[5,3,1,0]"],
            "agents": [{"spec": "random", "name": agent}, {"spec": "first", "name": f"{agent}!"}],
        }
    )
    assert parse(tomllib.loads(dump(asked))) == asked


def test_dump_leaves_defaults_out() -> None:
    assert dump(parse(SMALL)) == (
        '[[games]]\nid = "TicTacToe-v0"\n\n[[agents]]\nspec = "random"\nname = "random"\n'
        '\n[[agents]]\nspec = "first"\nname = "first"\n'
    )


def test_agents_are_called_by_their_names() -> None:
    asked = parse({"games": ["TicTacToe"], "agents": [{"spec": "random", "name": "dice"}, "first"]})
    assert [entry.make().name for entry in asked.agents] == ["dice", "first"]


def test_one_policy_may_play_under_a_name_of_its_own() -> None:
    asked = parse({**SMALL, "agents": ["mcts", {"spec": "mcts?simulations=200", "name": "twin"}]})
    assert [entry.name for entry in asked.agents] == ["mcts", "twin"]
    assert asked.identities()[1] == asked.identities()[0] + "#2"


def test_names_stay_as_they_were_written() -> None:
    asked = parse({"games": ["ConnectFour?columns=7"], "agents": ["mcts?simulations=200", "random"]})
    assert asked.games[0].label == "ConnectFour-v0 (columns=7)"
    assert asked.agents[0].name == "mcts?simulations=200"


def test_reading_makes_no_agent() -> None:
    parse({**SMALL, "agents": ["counted", "first"]}).identities()
    assert Counted.made == 0


def test_settings_are_json() -> None:
    assert json.loads(json.dumps(Tournament(games=(), agents=()).settings()))["referee"]["illegal"] == "forfeit"


def test_an_agent_may_be_a_table_with_options() -> None:
    entry = {"spec": "mcts?c=2", "options": {"simulations": 5}}
    asked = parse({**SMALL, "agents": [entry, "first"]})
    assert asked.agents[0] == AgentEntry("mcts?c=2&simulations=5", "mcts?c=2&simulations=5")
    assert parse({**SMALL, "agents": [{**entry, "name": "tree"}, "first"]}).agents[0].name == "tree"


@pytest.mark.parametrize(
    ("spec", "options", "said"),
    [
        ("mcts?simulations=4", {"simulations": 5}, "simulations stands in the spec and among its options"),
        ("mcts", {"api_key": "x"}, "it belongs in the environment"),
        ("mcts", {"simulation": 5}, "Did you mean 'simulations'"),
        ("mcts", {"simulations": "many"}, "simulations of agent mcts must be int"),
    ],
)
def test_options_of_a_table_are_checked_as_those_of_a_spec(spec: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse({**SMALL, "agents": [{"spec": spec, "options": options}, "first"]})
