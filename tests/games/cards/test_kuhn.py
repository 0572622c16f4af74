from itertools import permutations
from random import Random

import pytest

from arena.game import IllegalAction
from arena.games.cards.kuhn import RANKS, KuhnPoker, tree
from tests.games.cards.solve import game_value
from tests.games.hidden import assert_hostile_text_is_refused, assert_nothing_leaks, assert_sound, play_out


def deals(players: int = 2, ante: int = 1, bet: int = 1) -> list[KuhnPoker]:
    deck = RANKS[-players - 1 :]
    return [KuhnPoker(players, ante, bet, "".join(cards)) for cards in permutations(deck, players)]


def play(game: KuhnPoker, *actions: str) -> KuhnPoker:
    for action in actions:
        game = game.play(action)
    return game


# Kuhn 1950, table of payoffs to the first player: who holds the higher card decides at a showdown.
@pytest.mark.parametrize(
    ("actions", "higher", "lower"),
    [
        (("check", "check"), 1, -1),
        (("check", "bet", "fold"), -1, -1),
        (("check", "bet", "call"), 2, -2),
        (("bet", "fold"), 1, 1),
        (("bet", "call"), 2, -2),
    ],
)
def test_payoffs(actions: tuple[str, ...], higher: int, lower: int) -> None:
    for deal in deals():
        gain = higher if RANKS.index(deal.cards[0]) > RANKS.index(deal.cards[1]) else lower
        assert play(deal, *actions).returns() == (gain, -gain)


def test_value_is_minus_an_eighteenth() -> None:
    assert game_value(list(deals())) == pytest.approx(-1 / 18, abs=1e-9)


def test_value_scales_with_ante_and_bet() -> None:
    assert game_value(list(deals(ante=6, bet=6))) == pytest.approx(-6 / 18, abs=1e-9)


def test_all_deals_come() -> None:
    rng = Random(1)
    assert {KuhnPoker.initial(rng) for _ in range(200)} == set(deals())
    assert {KuhnPoker.initial(rng, players=3) for _ in range(1000)} == set(deals(3))


@pytest.mark.parametrize("players", [2, 3])
def test_whole_tree_is_sound(players: int) -> None:
    rng = Random(5)
    for deal in deals(players, ante=2, bet=3):
        for line, node in tree(players).items():
            game = KuhnPoker(players, 2, 3, deal.cards, line)
            drawn = assert_nothing_leaks(game, rng, 2)
            assert all(sorted(set(d.cards)) == sorted(d.cards) for d in drawn if isinstance(d, KuhnPoker))
            assert sum(game.returns()) == 0.0
            if node.legal:
                assert game.returns() == (0.0,) * players


@pytest.mark.parametrize("players", range(2, 11))
def test_random_games_are_sound(players: int) -> None:
    rng = Random(players)
    for _ in range(30):
        assert_sound(play_out(KuhnPoker.initial(rng, players, ante=1000, bet=1000), rng))


def test_chips_are_kept() -> None:
    rng = Random(2)
    for _ in range(50):
        game = play_out(KuhnPoker.initial(rng, 4, ante=3, bet=7), rng)[-1]
        losses = [gain for gain in game.returns() if gain < 0]
        assert len(losses) == 3
        assert set(losses) <= {-3.0, -10.0}


def test_determinize_deals_every_card_it_may() -> None:
    rng = Random(3)
    start = KuhnPoker(2, 1, 1, "QK")
    assert {start.determinize(0, rng).cards for _ in range(50)} == {"QJ", "QK"}
    folded = play(start, "bet", "fold")
    assert {folded.determinize(0, rng).cards for _ in range(50)} == {"QJ", "QK"}
    shown = play(start, "bet", "call")
    assert {shown.determinize(0, rng).cards for _ in range(50)} == {"QK"}
    three = play(KuhnPoker(3, 1, 1, "TJK"), "bet", "fold", "call")
    assert {three.determinize(0, rng).cards for _ in range(50)} == {"TJK", "TQK"}


def test_cards_are_shown_at_a_showdown_only() -> None:
    start = KuhnPoker(2, 1, 1, "QK")
    assert start.observation(0) == (
        "You are Player 0. Your card: Q.\nBetting: none yet.\nPot: 2 chips.\nYour turn: check or bet."
    )
    assert start.observation(1).endswith("Player 0 is to act.")
    shown = play(start, "check", "bet", "call").observation(0)
    assert shown == (
        "You are Player 0. Your card: Q.\nBetting: Player 0 checks, Player 1 bets, Player 0 calls.\nPot: 4 chips.\n"
        "The hand is over. Showdown: Player 0 Q, Player 1 K. Player 1 takes the pot."
    )
    assert "K" not in play(start, "bet", "fold").observation(0)
    assert "Q" not in play(start, "bet", "fold").observation(1)


def test_rules_state_the_options() -> None:
    rules = KuhnPoker.initial(Random(0), players=3, ante=5, bet=4).rules(2)
    for fact in ("3 players", "you are Player 2", "4 cards", "T J Q K", "antes 5", "bet 4", "at most 9"):
        assert fact in rules
    example = rules.split("For example: ")[1].split("\n")[0]
    assert example in (KuhnPoker.initial(Random(0)).legal_actions(0))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"players": 1}, "players=1: allowed are 2 to 10"),
        ({"players": 11}, "players=11: allowed are 2 to 10"),
        ({"players": True}, "players=True: allowed are 2 to 10"),
        ({"players": "2"}, "players='2': allowed are 2 to 10"),
        ({"ante": 0}, "ante=0: allowed are 1 to 1000"),
        ({"bet": 1.5}, "bet=1.5: allowed are 1 to 1000"),
    ],
)
def test_bad_options(options: dict[str, int], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        KuhnPoker.initial(Random(0), **options)


def test_hostile_text_is_refused() -> None:
    start = KuhnPoker.initial(Random(0))
    assert_hostile_text_is_refused(start)
    assert_hostile_text_is_refused(start.play("bet"))
    with pytest.raises(IllegalAction, match="write fold or call"):
        start.play("bet").play("check")


def test_features_tell_positions_apart() -> None:
    seen: dict[tuple[float, ...], str] = {}
    for deal in deals():
        for line, node in tree(2).items():
            for p in (0, 1):
                game = KuhnPoker(2, 1, 1, deal.cards, line)
                if node.legal:
                    assert seen.setdefault(game.features(p), game.observation(p)) == game.observation(p)
    assert len(seen) == 2 * 3 * 4
