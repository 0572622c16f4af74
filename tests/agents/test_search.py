"""Searches: exact where they can be, honest where something is hidden, deterministic for a seed."""

from functools import cache
from random import Random
from typing import ClassVar

import pytest

from arena.agent import View
from arena.agents.mcts import MCTSAgent
from arena.agents.minimax import MinimaxAgent
from arena.game import Action, Game, Player, TurnGame
from arena.games.board.connectfour import ConnectFour
from arena.games.board.tictactoe import TicTacToe
from arena.match import play_sync
from arena.registry import GAMES, make_game


def view(game: Game, player: Player, seed: int = 0) -> View:
    return View(player, game.observation(player), game.legal_actions(player), {}, "", 0, game, seed)


def answer(agent: MinimaxAgent | MCTSAgent, game: Game, seed: int = 0) -> Action:
    return agent.act(view(game, game.to_act()[0], seed)).text


@cache
def value(game: TicTacToe) -> float:
    """Brute force: the value for the seat to move."""
    if not game.to_act():
        return game.returns()[game.ply & 1]
    return max(-value(game.play(action)) for action in game.legal_actions(game.ply & 1))


def test_minimax_is_exact_in_every_position_of_tictactoe() -> None:
    assert value(TicTacToe()) == 0
    agent, rng = MinimaxAgent(), Random(0)
    for _ in range(60):
        game = TicTacToe()
        for _ in range(rng.randrange(9)):
            if game.to_act():
                game = game.play(game.sample_action(game.ply & 1, rng))
        if game.to_act():
            assert -value(game.play(answer(agent, game))) == value(game)


def test_minimax_never_loses_tictactoe() -> None:
    for seed in range(20):
        assert play_sync("TicTacToe-v0", ["minimax", "random"], seed).returns != (-1.0, 1.0)
        assert play_sync("TicTacToe-v0", ["random", "minimax"], seed).returns != (1.0, -1.0)
    assert play_sync("TicTacToe-v0", ["minimax", "minimax"], 0).returns == (0.0, 0.0)


def drop(columns: str) -> ConnectFour:
    game = ConnectFour.initial(Random(0))
    for column in columns:
        game = game.play(column)
    return game


@pytest.mark.parametrize("agent", [MinimaxAgent(nodes=3000, depth=4), MCTSAgent(simulations=400)])
def test_a_search_takes_the_win_and_stops_the_loss(agent: MinimaxAgent | MCTSAgent) -> None:
    assert answer(agent, drop("172737")) == "4"  # wins along the bottom at once
    assert answer(agent, drop("121212")) == "1"  # wins up the first column
    assert answer(agent, drop("12131")) == "1"  # must block


def test_minimax_prefers_the_nearer_win() -> None:
    won = drop("121212")
    assert {answer(MinimaxAgent(nodes=5000), won, seed) for seed in range(5)} == {"1"}


def test_minimax_stays_within_its_budget_and_depth() -> None:
    class Counted(TurnGame):
        """A long game whose positions are counted."""

        zero_sum = True
        perfect_information = True
        players = 2
        looked: ClassVar[list[int]] = [0]
        ply: int = 0
        path: str = ""

        @classmethod
        def initial(cls, rng: Random) -> "Counted":
            return cls()

        def to_act(self) -> tuple[Player, ...]:
            return () if self.ply == 30 else (self.ply & 1,)

        def rules(self, player: Player) -> str:
            return ""

        def observation(self, player: Player) -> str:
            return self.path

        def legal_actions(self, player: Player) -> tuple[Action, ...]:
            return ("a", "b", "c")

        def play(self, action: Action) -> "Counted":
            self.looked[0] += 1
            return Counted(self.ply + 1, self.path + action)

        def returns(self) -> tuple[float, ...]:
            return (0.0, 0.0)

    answer(MinimaxAgent(nodes=500), Counted())
    assert Counted.looked[0] <= 3 * 500 + 3
    Counted.looked[0] = 0
    answer(MinimaxAgent(depth=2), Counted())
    assert Counted.looked[0] <= 3 + 12


@pytest.mark.parametrize("game", ["KuhnPoker-v0", "LiarsDice-v0", "RockPaperScissors-v0", "Wordle-v0"])
def test_minimax_refuses_what_it_cannot_play(game: str) -> None:
    episode = play_sync(game, ["minimax"] * make_game(game).players)
    assert episode.outcome == "void"
    assert "minimax cannot play" in episode.reason


@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_mcts_plays_every_game_legally(game_id: str) -> None:
    players = make_game(game_id).players
    agents = ["mcts?simulations=8&plies=20", *["random"] * (players - 1)]
    episode = play_sync(game_id, agents, 1, max_turns=12)
    assert episode.outcome in ("terminated", "truncated"), episode.reason
    assert episode.forfeits == ()
    mine = [turn for turn in episode.turns if turn.seat == 0]
    assert all(attempt.verdict == "legal" for turn in mine for attempt in turn.attempts)


@pytest.mark.parametrize(("game", "least"), [("TicTacToe-v0", 0.6), ("ConnectFour-v0", 0.6), ("LeducPoker-v0", 0.0)])
def test_mcts_beats_chance(game: str, least: float) -> None:
    total = 0.0
    for seed in range(12):
        for seat in range(2):
            agents = ["random", "random"]
            agents[seat] = "mcts?simulations=60"
            returns = play_sync(game, agents, seed).returns
            assert returns is not None
            total += returns[seat]
    assert total / 24 > least


def test_mcts_knows_no_more_than_its_seat() -> None:
    """With the best hand hidden from it, a search must bet the same whatever the other seat holds."""
    kuhn = make_game("KuhnPoker-v0", 0)
    deals = [make_game("KuhnPoker-v0", seed) for seed in range(30)]
    mine = kuhn.observation(0)
    same = [deal for deal in deals if deal.observation(0) == mine]
    others = {deal.observation(1) for deal in same}
    assert len(others) == 2  # the same card, two different opponents
    agent = MCTSAgent(simulations=100)
    assert len({answer(agent, deal, seed=9) for deal in same}) == 1


def test_a_search_repeats_for_a_seed() -> None:
    runs = [play_sync("ConnectFour-v0", ["mcts?simulations=30", "mcts?simulations=30"], 7) for _ in range(2)]
    assert runs[0].turns[-1].hash == runs[1].turns[-1].hash


def test_mcts_can_be_given_seconds() -> None:
    assert answer(MCTSAgent(seconds=0.05), drop("121212")) == "1"


@pytest.mark.parametrize("settings", [{"simulations": 0}, {"seconds": 0}, {"c": -1}, {"plies": 0}])
def test_bad_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        MCTSAgent(**settings)
    with pytest.raises(ValueError, match="at least 1"):
        MinimaxAgent(nodes=0)
