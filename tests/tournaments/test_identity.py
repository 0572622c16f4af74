from typing import Any

import pytest

from arena.registry import AgentSpec
from arena.tournaments.config import GameEntry
from arena.tournaments.identity import game_terms, identities, identity, policy


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ("random", "random"),
        ("mcts", "mcts?simulations=200"),
        ("mcts?c=1", "mcts?c=1.0"),
        ("mcts?simulations=5&c=2", "mcts?c=2&simulations=5"),
        ("remote:qwen?base_url=http://a:1/v1&api_key_env=KEY", "remote:qwen?api_key_env=OTHER&base_url=http://b:2/v1"),
        ("remote:http://one:30000/qwen?temperature=1", "remote:http://two:4/qwen"),
        ("remote:qwen?host=a&port=1", "remote:qwen?host=b&port=2"),
        ("remote:qwen?patience=1", "remote:qwen"),
        ("remote:http://one:1,http://two:2", "remote:https://three"),
        ("remote:http://one/v1,http://two/v1", "remote:http://three/v1"),
    ],
)
def test_identity_is_neither_the_address_nor_the_writing(spec: str, same: str) -> None:
    assert identity(spec) == identity(same)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("random", "first"),
        ("mcts?simulations=5", "mcts"),
        ("mcts?seconds=1", "mcts"),
        ("remote:a", "remote:b"),
        ("remote:a,b", "remote:a"),
        ("remote:a", "remote:a?temperature=0"),
    ],
)
def test_identity_is_the_policy(one: str, other: str) -> None:
    assert identity(one) != identity(other)
    assert identity(one, "step-1") != identity(one, "step-2")


def test_one_agent_under_two_names_is_two_players() -> None:
    assert identities(["random", "first", "random"]) == ["random", "first", "random#2"]


def test_a_policy_is_its_spec_in_full() -> None:
    full = (("c", 1), ("plies", 200), ("seconds", None), ("simulations", 9))
    assert policy("mcts?simulations=9") == AgentSpec("mcts", "", full)
    assert policy("scripted:1|2") == AgentSpec("scripted", "1|2")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("randm", "unknown agent 'randm'. Did you mean 'random'?"),
        ("mcts?sims=1", "unknown option of agent mcts 'sims'. Did you mean 'simulations'? Allowed: "),
        ("mcts?name=x", "unknown option of agent mcts 'name'"),
        ("random:4", "agent 'random' takes no target (got '4')"),
        ("scripted", "agent 'scripted' needs a target: write scripted:TARGET"),
    ],
)
def test_what_cannot_be_made_is_refused(spec: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared below
        policy(spec)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({}, {"columns": 7}),
        ({"rows": 5, "columns": 7}, {"rows": 5}),
    ],
)
def test_defaults_make_no_other_game(options: dict[str, Any], same: dict[str, Any]) -> None:
    assert game_terms("ConnectFour-v0", options) == game_terms("ConnectFour-v0", same)
    assert GameEntry("ConnectFour-v0", options).terms != GameEntry("ConnectFour-v0", {"rows": 4}).terms


def test_terms_are_as_json_has_them() -> None:
    written = game_terms("IteratedPrisonersDilemma-v0", {"payoffs": (5, 3.0, 1, 0)})
    assert written["payoffs"] == [5, 3, 1, 0]
    assert written == game_terms("IteratedPrisonersDilemma-v0", {"payoffs": [5.0, 3, 1, 0]})
    assert game_terms("Chess-v0", {"chess960": True}) != game_terms("Chess-v0", {})
