"""Random, first, scripted, and the view they are given."""

from collections import Counter
from random import Random

import pytest

from arena.agent import AgentError, Reply, View, seat_rng
from arena.agents.simple import FirstAgent, RandomAgent, ScriptedAgent
from arena.games.board.tictactoe import TicTacToe
from arena.match import play_sync
from arena.registry import make_game


def view(ply: int = 0, seed: int = 0, player: int = 0) -> View:
    game = TicTacToe()
    return View(player, game.observation(0), game.legal_actions(0), {}, "", ply, game, seed)


def test_random_play_is_uniform_and_repeatable() -> None:
    agent = RandomAgent()
    counts = Counter(agent.act(view(ply, seed)).text for ply in range(9) for seed in range(200))
    assert set(counts) == set("123456789")
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 26.1  # 0.1 % of chi squared, 8 d.f.
    assert agent.act(view(3, 4)) == agent.act(view(3, 4))
    assert {agent.act(view(0, 1, player)).text for player in range(30)} != {agent.act(view(0, 1)).text}


def test_random_speaks_where_text_is_open() -> None:
    episode = play_sync("Negotiation-v0", ["random", "random"], 1)
    assert episode.outcome == "terminated"
    assert episode.forfeits == ()


def test_first_takes_the_first_legal_or_the_fallback() -> None:
    assert FirstAgent().act(view()) == Reply("1")
    game = make_game("SecretMafia-v0", 1)
    while game.to_act() and game.legal_actions(game.to_act()[0]) is not None:
        game = game.apply({p: game.sample_action(p, Random(0)) for p in game.to_act()})
    speaker = game.to_act()[0]
    assert FirstAgent().act(View(speaker, "", None, {}, "", 0, game, 0)).text == game.fallback(speaker)


def test_a_script_is_said_in_order_and_begins_again() -> None:
    agent, seen = ScriptedAgent("a|b"), view()
    assert [agent.act(seen).text for _ in range(5)] == ["a", "b", "a", "b", "a"]
    assert agent.act(view()).text == "a"  # another seat's memory


def test_a_seats_generator_is_its_own_and_not_the_deals() -> None:
    streams = {seat_rng(seed, player).random() for seed in range(20) for player in range(20)}
    deals = {Random(seed).random() for seed in range(20)}
    assert len(streams) == 400
    assert not streams & deals
    seen = view(seed=5)
    assert seen.rng is seen.rng
    assert seen.rng.random() == seat_rng(5, 0).random()


def test_a_view_without_a_position_says_so() -> None:
    with pytest.raises(AgentError, match="no position"):
        _ = View(0, "text", None, {}).rules


def test_a_view_shows_the_rules_and_a_state_to_search() -> None:
    seen = view()
    assert "3 x 3" in seen.rules
    assert seen.players == 2
    assert seen.events == ()
    assert seen.sample_state(Random(0)) == TicTacToe()
    assert seen.sample_action(Random(0)) in seen.legal_actions if seen.legal_actions else False
    assert seen.fallback() is None
