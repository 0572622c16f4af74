"""Ids, specs, options: found by name, refused with what is allowed."""

import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from random import Random
from typing import Any

import pytest

import arena
import arena.registry
from arena.agent import Agent
from arena.env import GameEnv
from arena.game import Game
from arena.games.board.tictactoe import TicTacToe
from arena.registry import (
    AGENTS,
    GAMES,
    AgentSpec,
    agent_names,
    canonical,
    frozen,
    game_ids,
    id_of,
    load,
    make_agent,
    make_game,
    options_of,
    register,
    register_agent,
)


@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_every_id_loads_and_says_what_it_is(game_id: str) -> None:
    game = load(game_id)
    assert issubclass(game, Game)
    assert id_of(game) == game_id
    assert game.tags
    assert make_game(game_id, 3) == make_game(game, Random(3))


TARGETS = {"scripted": ":1|2", "sglang": ":http://127.0.0.1:1", "openai": ":http://127.0.0.1:1/v1?model=m"}


@pytest.mark.parametrize("name", sorted(set(AGENTS) - {"sb3", "engine", "local"}))  # they need a model: tests/adapters
def test_every_agent_can_be_made(name: str) -> None:
    spec = name + TARGETS.get(name, "")
    agent = make_agent(spec)
    assert isinstance(agent, Agent)
    assert agent.name == spec
    assert make_agent(agent) is agent


@pytest.mark.parametrize("name", ["Chess", "Chess-v0", "arena/Chess-v0", "arena/Chess"])
def test_an_id_may_be_short(name: str) -> None:
    assert canonical(name) == "Chess-v0"


def test_the_newest_version_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in (2, 10, 9):
        monkeypatch.setitem(GAMES, f"Chess-v{version}", GAMES["Chess-v0"])
    assert canonical("Chess") == "Chess-v10"
    assert canonical("Chess-v2") == "Chess-v2"


@pytest.mark.parametrize(
    ("name", "near"), [("Ches", "Chess-v0"), ("chess-v0", "Chess-v0"), ("ConnectFor-v0", "ConnectFour")]
)
def test_an_unknown_id_names_the_nearest_and_all(name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"Did you mean '{near}") as error:
        load(name)
    assert all(game_id in str(error.value) for game_id in game_ids())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("game", "options", "said"),
    [
        ("LiarsDice-v0", {"playrs": 3}, "Did you mean 'players'?"),
        ("LiarsDice-v0", {"players": "3"}, "must be int"),
        ("LiarsDice-v0", {"players": True}, "must be int"),
        ("LiarsDice-v0", {"players": 99}, "2 to 6"),
        ("TicTacToe-v0", {"size": 4}, "Allowed: none"),
    ],
)
def test_a_bad_option_says_what_is_allowed(game: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_game(game, 0, options)


@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_options_survive_json(game_id: str) -> None:
    defaults = {name: option.default for name, option in options_of(load(game_id)).items()}
    through = json.loads(json.dumps(defaults))
    assert make_game(game_id, 5, through) == make_game(game_id, 5, defaults) == make_game(game_id, 5)


def test_lists_become_tuples_all_the_way_down() -> None:
    assert frozen([1, [2, [3]], {"a": 1}]) == (1, (2, (3,)), {"a": 1})


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("random", AgentSpec("random")),
        ("mcts?simulations=100&c=0.7", AgentSpec("mcts", "", (("simulations", 100), ("c", 0.7)))),
        ('x?version="5"&note=a%26b', AgentSpec("x", "", (("version", "5"), ("note", "a&b")))),
        ("sb3:runs/a.zip", AgentSpec("sb3", "runs/a.zip")),
        (
            "sglang:http://127.0.0.1:30000?model=qwen",
            AgentSpec("sglang", "http://127.0.0.1:30000", (("model", "qwen"),)),
        ),
        ("openai:https://host/v1?api_key_env=NAME", AgentSpec("openai", "https://host/v1", (("api_key_env", "NAME"),))),
    ],
)
def test_specs_are_read_and_written(text: str, spec: AgentSpec) -> None:
    assert AgentSpec.parse(text) == spec
    assert AgentSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    "text",
    [
        "openai:https://h?api_key=sk-1",
        "x?password=1",
        "x?ACCESS_TOKEN=1",
        "x?authorization=Bearer sk-1",
        "x?auth=1",
        "x?pw=1",
        "x?x-api-key=sk-1",
        'x?headers={"Authorization": "sk-1"}',
        "x?api_key_env=sk-1",
        "openai:https://me:pw@host/v1",
        "openai:me:pw@host/v1",
    ],
)
def test_a_spec_never_carries_a_secret(text: str) -> None:
    with pytest.raises(ValueError, match="environment") as error:
        AgentSpec.parse(text)
    assert "sk-1" not in str(error.value)
    assert "pw@" not in str(error.value)


@pytest.mark.parametrize("query", ["max_tokens=5", "tokenizer=qwen", "author=me", "monkey=1", "keyboard=x", "top_k=3"])
def test_words_that_only_look_like_secrets_are_options(query: str) -> None:
    assert str(AgentSpec.parse(f"x:model@v2?{query}")) == f"x:model@v2?{query}"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("randm", "Did you mean 'random'?"),
        ("", "has no name"),
        ("?a=1", "has no name"),
        ("mcts?simulation=5", "Did you mean 'simulations'?"),
        ("mcts?simulations=many", "must be int"),
        ("mcts?simulations=0", "at least 1"),
        ("random:here", "takes no target"),
        ("mcts?simulations", "bad query field"),
    ],
)
def test_a_bad_agent_spec_says_what_is_allowed(spec: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        make_agent(spec)


def test_an_agent_whose_package_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "deep", "nowhere_installed.agents:Deep")
    with pytest.raises(ValueError, match=r"agent 'deep' needs nowhere_installed \(nowhere_installed.agents:Deep\)"):
        make_agent("deep:model.zip")
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.monitor", None)
    monkeypatch.delitem(sys.modules, "arena.adapters.sb3", raising=False)
    monkeypatch.setitem(AGENTS, "sb3too", "arena.adapters.sb3:SB3Agent")
    with pytest.raises(ValueError, match=r"pip install 'gymnasium-arena\[sb3\]'"):
        make_agent("sb3too:model.zip")


def test_a_package_that_breaks_is_named_and_harms_nobody_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "brk.py").write_text("raise RuntimeError('boom at import')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(GAMES, "Broken-v0", "brk:Game")
    monkeypatch.setitem(AGENTS, "broken", "brk:Agent")
    with pytest.raises(ValueError, match=r"game 'Broken-v0' \(brk:Game\) cannot be loaded: RuntimeError: boom"):
        load("Broken")
    with pytest.raises(ValueError, match=r"agent 'broken' \(brk:Agent\) cannot be loaded"):
        make_agent("broken")
    with pytest.raises(ValueError, match="numeric=True works for Chess-v0"):
        GameEnv("Arithmetic-v0", numeric=True)


def test_a_malformed_entry_point_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [EntryPoint("My Game!", "x:Y", "arena.games"), EntryPoint("Fine-v0", "x:Y", "arena.games")]
    monkeypatch.setattr("arena.registry.entry_points", lambda group: odd if group == "arena.games" else [])
    arena.registry._discover.cache_clear()
    try:
        with pytest.warns(UserWarning, match="entry point 'My Game!' = 'x:Y': a game id is Name-vN"):
            ids = game_ids()
        assert "Fine-v0" in ids
        assert "My Game!" not in ids
    finally:
        arena.registry._discover.cache_clear()


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e400", "x", "[1]", "{}", "true"])
def test_numbers_of_agents_are_finite_numbers(value: str) -> None:
    for option in ("seconds", "c"):
        with pytest.raises(ValueError, match=f"option {option} of agent mcts must be"):
            make_agent(f"mcts?{option}={value}")
    assert make_agent("mcts?seconds=null").name == "mcts?seconds=null"
    assert make_agent("mcts?seconds=2&c=1").name == "mcts?seconds=2&c=1"


def test_endless_options_are_not_repeated() -> None:
    with pytest.raises(ValueError, match="at most 1000 characters, got 100000") as error:
        make_game("Arithmetic-v0", 0, {"operations": "+" * 100_000})
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("odd", [5, None, ["random"]])
def test_an_agent_is_a_spec_or_an_agent(odd: Any) -> None:
    with pytest.raises(ValueError, match="spec string or is an Agent"):
        make_agent(odd)


def test_games_and_agents_can_be_added_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium
    import pettingzoo

    monkeypatch.setattr("arena.registry.GAMES", GAMES)
    try:
        register("Noughts-v0", GAMES["TicTacToe-v0"])
        assert load("Noughts") is TicTacToe
        assert gymnasium.make("arena/Noughts-v0").reset(seed=1)
        assert pettingzoo.make("aec", "arena/Noughts-v0").possible_agents == ["player_0", "player_1"]
        register_agent("dice", "arena.agents.simple:RandomAgent")
        assert "dice" in agent_names()
        assert arena.play("Noughts", ["dice", "first"], seed=1).outcome == "terminated"
        register("Noughts-v0", GAMES["TicTacToe-v0"])  # the same again is no quarrel
        with pytest.raises(ValueError, match="new version"):
            register("Noughts-v0", "elsewhere:Other")
    finally:
        GAMES.pop("Noughts-v0", None)
        AGENTS.pop("dice", None)


@pytest.mark.parametrize(
    ("game_id", "target"), [("Nim", "a:B"), ("Nim-v", "a:B"), ("Nim-v0", "a.B"), ("N im-v0", "a:B")]
)
def test_bad_registrations_are_refused(game_id: str, target: str) -> None:
    with pytest.raises(ValueError, match=r"Name-vN|module:Class"):
        register(game_id, target)


def test_what_is_no_game_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAMES, "Odd-v0", "arena.agents.simple:RandomAgent")
    with pytest.raises(ValueError, match="not a subclass"):
        load("Odd")
    monkeypatch.setitem(AGENTS, "odd", "arena.games.board.tictactoe:TicTacToe")
    with pytest.raises(ValueError, match="not a subclass"):
        make_agent("odd")


def test_every_name_arena_exports_is_there() -> None:
    for name in arena.__all__:
        assert getattr(arena, name) is not None
    assert dir(arena) == sorted(arena.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = arena.nonsense
