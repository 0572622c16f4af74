from collections import Counter
from itertools import product
from random import Random

import pytest

from arena.chance import Chance
from arena.game import IllegalAction, replace
from arena.games.dice.liarsdice import LiarsDice
from arena.text import transcript
from tests.games.hidden import assert_hostile_text_is_refused, assert_nothing_leaks, assert_sound, play_out

OUT = " Player 1 loses a die and is out."


def table(*hands: str, sides: int = 6, wild: int = 0) -> LiarsDice:
    """A position before the first bid in which the seats hold these dice."""
    counts = tuple(len(hand.split()) for hand in hands)
    return LiarsDice(len(hands), max(counts), sides, wild, Chance(1), counts, hands)


def play(game: LiarsDice, *actions: str) -> LiarsDice:
    for action in actions:
        game = game.play(action)
    return game


def is_higher(bid: str, than: str) -> bool:
    """The rule in words: a greater quantity with any face, or the same quantity with a greater face."""
    (quantity, face), (least, low) = (tuple(map(int, b.split(" x "))) for b in (bid, than))
    return quantity > least or (quantity == least and face > low)


def test_every_bid_and_what_beats_it() -> None:
    start = table("1 2", "3 3", "5", sides=4)
    first = start.legal_actions(0)
    assert set(first) == {f"{q} x {f}" for q in range(1, 6) for f in range(1, 5)}
    for bid in first:
        legal = start.play(bid).legal_actions(1)
        assert set(legal) == {b for b in first if is_higher(b, bid)} | {"liar"}
        assert len(legal) == len(set(legal))


def test_a_higher_quantity_with_a_lower_face_is_legal() -> None:
    game = table("1 2 3 4 5", "1 2 3 4 5").play("3 x 5")
    assert "4 x 2" in game.legal_actions(1)
    assert "3 x 4" not in game.legal_actions(1)
    with pytest.raises(IllegalAction, match="3 x 4 is not higher than 3 x 5; the lowest bid now is 3 x 6"):
        game.play("3 x 4")


def test_no_bid_beyond_the_dice_on_the_table() -> None:
    game = table("1 2", "3")
    assert game.legal_actions(0)[-1] == "3 x 6"
    with pytest.raises(IllegalAction, match=r"write a bid from 1 x 1 to 3 x 6$"):
        game.play("4 x 1")
    with pytest.raises(IllegalAction, match=r"write a bid from 1 x 1 to 3 x 6$"):
        game.play("liar")
    last = game.play("3 x 6")
    assert last.legal_actions(1) == ("liar",)
    with pytest.raises(IllegalAction, match="no higher bid is possible: say liar"):
        last.play("no")
    with pytest.raises(IllegalAction, match="write a bid from 2 x 1 to 3 x 6 or liar"):
        game.play("1 x 6").play("no")


@pytest.mark.parametrize("wild", [0, 1, 2, 3])
def test_challenge_counts_the_dice(wild: int) -> None:
    """All hands of 2 + 1 three-sided dice against every bid, counted by brute force."""
    for faces in product("123", repeat=3):
        hands = " ".join(sorted(faces[:2])), faces[2]
        game = table(*hands, sides=3, wild=wild)
        for bid in game.legal_actions(0):
            quantity, face = bid.split(" x ")
            true = sum(die in (face, str(wild)) for die in faces)
            loser = 1 if true >= int(quantity) else 0
            left = list(game.left)
            left[loser] -= 1
            assert play(game, bid, "liar").left == tuple(left)


def test_the_loser_of_a_die_bids_first() -> None:
    game = table("1 1", "2 2", "3 3")
    assert play(game, "1 x 1", "2 x 1", "liar").turn == 2
    assert play(game, "1 x 1", "3 x 1", "liar").turn == 1
    assert play(game, "1 x 1", "1 x 2", "1 x 3", "1 x 4", "liar").turn == 0


def test_who_is_out_is_passed_over() -> None:
    game = play(table("1 1", "2", "3 3"), "1 x 1", "2 x 6", "liar")
    assert game.left == (2, 0, 2)
    assert game.out == (1,)
    assert game.turn == 2
    assert game.hands[1] == ""
    assert game.play("1 x 1").turn == 0
    assert play(game, "1 x 1", "1 x 2").turn == 2
    assert "Your dice: none." in game.observation(1)
    assert game.events(1) == game.events(0)
    assert game.legal_actions(1) == ()


def test_a_whole_game() -> None:
    game = play(table("1", "2", "3"), "1 x 3", "2 x 3", "liar")
    assert game.left == (1, 0, 1)
    assert [e.text for e in game.events(0)] == [
        "Player 0 bids 1 x 3.",
        "Player 1 bids 2 x 3.",
        "Player 2 says liar. Player 0: 1; Player 1: 2; Player 2: 3. Dice showing 3: 1, the bid was 2." + OUT,
    ]
    game = replace(game, hands=("4", "", "5"), turn=2)
    assert game.returns() == (0.0, 0.0, 0.0)
    end = play(game, "1 x 6", "liar")
    assert end.returns() == (1.0, -1.0, 0.0)
    assert end.to_act() == ()
    assert end.observation(1).endswith("The game is over: Player 0 wins.")
    assert "says liar. Player 0: 4; Player 2: 5." in end.events(0)[-1].text


def test_wild_dice_are_told() -> None:
    assert "(wild 2s included): 3" in play(table("2 2", "5", wild=2), "1 x 5", "liar").log[-1].text
    assert "Dice showing 2: 2" in play(table("2 2", "5", wild=2), "1 x 2", "liar").log[-1].text


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"players": 3, "dice": 1},
        {"players": 4, "dice": 2, "wild": 1},
        {"players": 5, "dice": 2, "sides": 2},
        {"players": 6, "dice": 3},
        {"players": 2, "dice": 10, "sides": 20, "wild": 20},
    ],
)
def test_random_games_are_sound(options: dict[str, int]) -> None:
    rng = Random(4)
    for _ in range(4):
        path = play_out(LiarsDice.initial(rng, **options), rng)
        assert_sound(path)
        before = path[0]
        for game in path:
            assert isinstance(game, LiarsDice)
            assert isinstance(before, LiarsDice)
            assert game.log[: len(before.log)] == before.log
            assert len(game.log) - len(before.log) <= 1
            assert sum(before.left) - sum(game.left) in (0, 1)
            assert [len(hand.split()) for hand in game.hands] == (list(game.left) if game.hands else [])
            before = game
        assert isinstance(before, LiarsDice)
        players = options.get("players", 2)
        assert sorted(before.returns()) == [2 * k / (players - 1) - 1 for k in range(players)]


def test_equal_seeds_roll_equal_dice() -> None:
    assert play_out(LiarsDice.initial(Random(3)), Random(1)) == play_out(LiarsDice.initial(Random(3)), Random(1))
    assert LiarsDice.initial(Random(3)) != LiarsDice.initial(Random(4))


def test_dice_are_fair() -> None:
    rng = Random(1)
    faces = Counter(die for _ in range(2000) for hand in LiarsDice.initial(rng).hands for die in hand.split())
    assert sum(faces.values()) == 20_000
    assert all(3100 < faces[face] < 3570 for face in "123456")


def test_longest_game_fits_the_bounds() -> None:
    """Every bid in every round, by the most seats, with the longest names."""
    game = LiarsDice.initial(Random(0), players=6, dice=1, sides=20, wild=20)
    limit, length, turns = game.max_turns(), game.max_length(), 0
    while game.to_act():
        game = game.play(game.legal_actions(game.turn)[0])
        turns += 1
    assert turns == limit
    assert len(transcript(game.events(0), game.observation(0))) <= length


def test_nothing_leaks() -> None:
    rng = Random(8)
    for game in play_out(LiarsDice.initial(rng, players=3, dice=2), rng):
        drawn = assert_nothing_leaks(game, rng)
        for other in drawn:
            assert isinstance(other, LiarsDice)
            assert isinstance(game, LiarsDice)
            assert other.left == game.left
            assert other.chance.key != game.chance.key
            play_out(other, rng)


def test_determinize_rolls_the_others_fairly() -> None:
    game, rng = table("6", "5", "4"), Random(1)
    drawn = Counter(game.determinize(1, rng).hands for _ in range(3600))
    assert {hands[1] for hands in drawn} == {"5"}
    assert len(drawn) == 36
    assert all(50 < count < 160 for count in drawn.values())
    futures = {play(game.determinize(1, rng), "1 x 1", "3 x 6", "liar").hands for _ in range(20)}
    assert len(futures) > 5


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Bid: 3, 5", "3 x 5"),
        ("[Bid: 3, 5]", "3 x 5"),
        ("3 5", "3 x 5"),
        ("3x5", "3 x 5"),
        ("3 × 5", "3 x 5"),
        ("I bid 3 5s.", "3 x 5"),
        ("03 X 05", "3 x 5"),
        ("3 of 5", "3 x 5"),
        ("LIAR!", "liar"),
        ("[Call]", "liar"),
        ("I challenge.", "liar"),
        ("3-5", "3 x 5"),
        ("-3 x 5", "-3 x 5"),
        ("3 x -5", "3 x -5"),
        ("3 x 5 x 6", "3 x 5 x 6"),
        ("35", "35"),
        ("three fives", "three fives"),
        ("٣ x ٥", "٣ x ٥"),
        ("² x 5", "² x 5"),
        ("1000 x 5", "1000 x 5"),
        ("liar" + " " * 100, "liar" + " " * 100),
    ],
)
def test_normalize(text: str, meant: str) -> None:
    assert LiarsDice.initial(Random(0)).normalize(text, 0) == meant


def test_hostile_text_is_refused() -> None:
    start = LiarsDice.initial(Random(0))
    assert_hostile_text_is_refused(start)
    assert_hostile_text_is_refused(start.play("1 x 1"))
    assert_hostile_text_is_refused(start.play("10 x 6"))


def test_rules_state_the_options() -> None:
    game = LiarsDice.initial(Random(0), players=4, dice=3, sides=8, wild=1)
    rules = game.rules(2)
    for fact in ("4 players", "3 dice each", "faces 1 to 8", "you are Player 2", "Face 1 is wild", "than 1 x 8"):
        assert fact in rules
    for options in ({}, {"dice": 1}, {"dice": 1, "sides": 2}, {"players": 6, "dice": 10, "sides": 20}):
        game = LiarsDice.initial(Random(0), **options)
        assert game.rules(0).split("For example: ")[1].split("\n")[0] in game.legal_actions(0)
    assert "No face is wild" in game.rules(0)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"players": 1}, "players=1: allowed are 2 to 6"),
        ({"players": 7}, "players=7: allowed are 2 to 6"),
        ({"dice": 0}, "dice=0: allowed are 1 to 10"),
        ({"dice": True}, "dice=True: allowed are 1 to 10"),
        ({"sides": 21}, "sides=21: allowed are 2 to 20"),
        ({"sides": "6"}, "sides='6': allowed are 2 to 20"),
        ({"wild": 7}, r"wild=7: allowed are 0 \(none\) to 6"),
        ({"wild": -1}, "wild=-1: allowed are 0"),
    ],
)
def test_bad_options(options: dict[str, int], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        LiarsDice.initial(Random(0), **options)


def test_features() -> None:
    game = play(table("1 1", "3 3", sides=3), "2 x 1")
    assert game.features(1) == (0, 0, 1, 1, 1, 0, 1, 0, 1, 0.5, 1, 0, 0)
    assert game.features(0) == (1, 0, 0, 1, 0, 1, 1, 1, 0, 0.5, 1, 0, 0)
    assert table("1 1", "3 3", sides=3).features(0)[-4:] == (0, 0, 0, 0)
