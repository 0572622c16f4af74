import copy
import json
import pickle
import re
from collections.abc import Iterable
from random import Random
from typing import Any

import chess
import pytest

from arena.game import Event, IllegalAction, replace
from arena.games.board.chess import Chess, Position

START = Chess.initial(Random(0))
SHUFFLE = ("g1f3", "g8f6", "f3g1", "f6g8")


def played(moves: Iterable[str], fen: str = chess.STARTING_FEN, **options: Any) -> Chess:
    game = Chess.initial(Random(0), fen, **options)
    for move in moves:
        game = game.apply({game.to_act()[0]: move})
    return game


def fields(game: Chess) -> str:
    """The FEN that an observation amounts to."""
    lines = game.observation(0).split("\n")
    rows = "/".join(row[2:].replace(" ", "") for row in lines[1:9])
    rows = re.sub(r"\.+", lambda dots: str(len(dots[0])), rows)
    turn = "w" if lines[10].startswith("White") else "b"
    facts = re.fullmatch(r"Move: (\d+)\. Castling: (\S+)\. En passant: (\S+)\. Halfmove clock: (\d+)\.", lines[11])
    assert facts, lines[11]
    return " ".join((rows, turn, facts[2], facts[3], facts[4], facts[1]))


def expected_ending(board: chess.Board) -> str:
    """What the Laws say, by python-chess, of a board that knows its history."""
    if board.is_checkmate():
        return "Checkmate"
    if board.is_stalemate():
        return "stalemate"
    if board.is_repetition(3):
        return "threefold repetition"
    if board.halfmove_clock >= 100:
        return "the fifty-move rule"
    return "insufficient material" if board.is_insufficient_material() else ""


@pytest.mark.parametrize(
    ("options", "games"),
    [
        ({}, 12),
        ({"fen": "4k3/8/8/8/8/8/8/4K2R w K - 0 1"}, 25),
        ({"fen": "8/2k5/8/8/8/2p5/8/2K2N2 b - - 20 60"}, 25),
        ({"fen": "2b1k3/8/8/8/8/8/6p1/2B1K3 b - - 90 60"}, 25),
        ({"fen": "k7/8/8/8/8/8/8/K4QB1 w - - 0 1"}, 25),
        ({"chess960": True}, 12),
    ],
)
def test_random_games_agree_with_python_chess(options: dict[str, Any], games: int) -> None:
    rng = Random(repr(options))
    for _ in range(games):
        game = Chess.initial(rng, **options)
        board = game.board()
        while game.to_act():
            player = game.to_act()[0]
            assert player == (0 if board.turn else 1)
            assert not expected_ending(board)
            assert board.is_check() == ("Check." in game.observation(player))
            assert ("occurred twice" in game.observation(player)) == board.is_repetition(2)
            assert fields(game) == board.fen(shredder="chess960" in options)
            legal = game.legal_actions(player)
            assert sorted(legal) == sorted(move.uci() for move in board.legal_moves)
            assert game.legal_actions(1 - player) == ()
            # little play that goes nowhere would repeat a position often enough
            back = board.peek().uci() if len(board.move_stack) > 1 and rng.random() < 0.3 else ""
            action = back if back in legal else rng.choice(legal)
            board.push_uci(action)
            game = game.apply({player: action})
        assert game.ending == expected_ending(board)
        result = board.outcome(claim_draw=True)
        assert result is not None
        assert game.returns() == {True: (1.0, -1.0), False: (-1.0, 1.0), None: (0.0, 0.0)}[result.winner]
        assert game.legal_actions(0) == game.legal_actions(1) == ()
        assert [e.text.split()[2][:-1] for e in game.events(0)] == [move.uci() for move in board.move_stack]


def test_fools_mate() -> None:
    game = played(("f2f3", "e7e5", "g2g4", "d8h4"))
    assert game.returns() == (-1.0, 1.0)
    assert game.to_act() == ()
    assert "Checkmate: Black wins." in game.observation(0)
    assert game.events(0) == game.events(1)
    assert game.events(1)[-1] == Event("Black plays d8h4.")


def test_scholars_mate() -> None:
    game = played(("e2e4", "e7e5", "d1h5", "b8c6", "f1c4", "g8f6", "h5f7"))
    assert game.returns() == (1.0, -1.0)
    assert "Checkmate: White wins." in game.render()


def test_stalemate() -> None:
    game = played(("g5g6",), "7k/8/8/6Q1/8/8/8/K7 w - - 0 1")
    assert game.to_act() == ()
    assert game.returns() == (0.0, 0.0)
    assert "Draw by stalemate." in game.observation(1)


def test_third_occurrence_ends_the_game() -> None:
    game = played(SHUFFLE)
    assert "This position has occurred twice: a third time is a draw." in game.observation(0)
    game = played((*SHUFFLE, *SHUFFLE[:3]))
    assert game.to_act() == (1,)
    game = game.play(SHUFFLE[3])
    assert game.to_act() == ()
    assert game.returns() == (0.0, 0.0)
    assert "Draw by threefold repetition." in game.observation(0)


def test_nobody_can_claim_a_repetition_before_it_is_there() -> None:
    """python-chess lets the player claim with the move that would repeat; here the position must have occurred."""
    board = chess.Board()
    for move in (*SHUFFLE, *SHUFFLE[:3]):
        board.push_uci(move)
    assert board.can_claim_threefold_repetition()
    assert played((*SHUFFLE, *SHUFFLE[:3])).to_act() == (1,)


def test_a_double_step_that_nobody_can_capture_changes_no_position() -> None:
    game = played(("e2e4", *("g8f6", "g1f3", "f6g8", "f3g1") * 2))
    assert game.ending == "threefold repetition"


@pytest.mark.parametrize(
    ("fen", "step", "ending"),
    [
        ("3nk3/8/8/8/3p4/8/4P3/3NK3 w - - 0 1", "e2e4", ""),  # black could capture the first time only
        ("3k4/8/8/8/3p4/8/4P3/3RK3 w - - 0 1", "e2e4", "threefold repetition"),  # the capturer is pinned
    ],
)
def test_en_passant_counts_only_where_it_is_legal(fen: str, step: str, ending: str) -> None:
    cycle = ("d8d7", "e1f1", "d7d8", "f1e1") if "3k" in fen else ("e8f8", "e1f1", "f8e8", "f1e1")
    game = played((step, *cycle * 2), fen)
    assert game.ending == ending
    if not ending:
        assert game.play(cycle[0]).ending == "threefold repetition"


def test_lost_castling_makes_another_position() -> None:
    fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    cycle = ("e1e2", "e8e7", "e2e1", "e7e8")
    game = played((*cycle, *cycle, cycle[0]), fen)
    assert not game.ending  # the start came back twice, but without its castling rights
    assert not game.position.castling
    assert game.play(cycle[1]).ending == "threefold repetition"  # of the first position that had none


def test_captures_and_pawn_moves_forget_positions() -> None:
    game = played((*SHUFFLE, "e2e4"))
    assert game.seen == (game.position,)
    assert len(played(SHUFFLE).seen) == 5


def test_fifty_moves() -> None:
    fen = "4k3/8/8/8/8/8/7p/R3K3 w - - 98 80"
    game = played(("a1b1",), fen)
    assert game.to_act() == (1,)
    assert played(("a1b1", "h2h1q"), fen).clock == 0
    game = game.play("e8e7")
    assert game.to_act() == ()
    assert game.returns() == (0.0, 0.0)
    assert "Draw by the fifty-move rule." in game.observation(0)


def test_mate_on_the_hundredth_move_wins() -> None:
    game = played(("a1a8",), "6k1/5ppp/8/8/8/8/8/R3K3 w - - 99 80")
    assert game.clock == 100
    assert game.returns() == (1.0, -1.0)


@pytest.mark.parametrize(
    ("fen", "move", "drawn"),
    [
        ("8/8/8/3k4/8/8/3q4/3K4 w - - 0 1", "d1d2", True),  # bare kings
        ("8/8/8/3k4/5n2/8/3q4/3K4 w - - 0 1", "d1d2", True),  # king and knight
        ("8/8/8/3k3n/5n2/8/3q4/3K4 w - - 0 1", "d1d2", False),  # two knights can mate with help
        ("8/8/8/3k4/8/8/1b1q4/2BK4 w - - 0 1", "d1d2", True),  # bishops on squares of one colour
        ("8/8/8/3k4/8/7b/3q4/2BK4 w - - 0 1", "d1d2", False),  # and of both
        ("8/8/8/3k4/7p/8/3q4/3K4 w - - 0 1", "d1d2", False),  # a pawn
    ],
)
def test_insufficient_material(fen: str, move: str, drawn: bool) -> None:
    game = played((move,), fen)
    assert game.ending == ("insufficient material" if drawn else "")
    assert bool(game.to_act()) != drawn


def test_black_may_begin() -> None:
    game = played((), "4k3/3r4/8/8/8/8/8/4K2R b K - 0 1")
    assert game.to_act() == (1,)
    assert game.legal_actions(0) == ()
    assert "Black to move." in game.observation(0)
    game = game.play("d7e7")
    assert game.to_act() == (0,)
    assert "White to move. Check." in game.observation(0)
    assert game.events(0) == (Event("Black plays d7e7."),)


def test_chess960_starts_are_numbered_and_drawn() -> None:
    assert Chess.initial(Random(0), chess960=True, scharnagl=518).position == START.position
    assert "b b q n n r k r" in Chess.initial(Random(0), chess960=True, scharnagl=0).observation(0)
    assert "R K R N N Q B B" in Chess.initial(Random(0), chess960=True, scharnagl=959).observation(0)
    drawn = {Chess.initial(Random(seed), chess960=True).position for seed in range(200)}
    assert 150 < len(drawn) <= 200
    assert Chess.initial(Random(3), chess960=True) == Chess.initial(Random(3), chess960=True)


def test_chess960_castling_takes_the_rook() -> None:
    game = played((), "k7/8/8/8/8/8/8/1RK3R1 w GB - 0 1", chess960=True)
    assert "Castling: GB." in game.observation(0)
    assert {"c1g1", "c1b1"} <= set(game.legal_actions(0))
    rows = game.play("c1g1").observation(0).split("\n")
    assert rows[8] == "1 . R . . . R K ."
    rows = game.play("c1b1").observation(0).split("\n")
    assert rows[8] == "1 . . K R . . R ."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chess960": 1}, "chess960=1: allowed are True and False"),
        ({"chess960": "yes"}, "chess960='yes': allowed are True and False"),
        ({"chess960": True, "scharnagl": 960}, "scharnagl=960: allowed are 0 to 959, and None"),
        ({"chess960": True, "scharnagl": -1}, "scharnagl=-1: allowed are 0 to 959, and None"),
        ({"chess960": True, "scharnagl": "5"}, "scharnagl='5': allowed are 0 to 959, and None"),
        ({"scharnagl": 5}, "scharnagl: allowed only with chess960=True and without a fen"),
        ({"chess960": True, "scharnagl": 5, "fen": "4k3/8/8/8/8/8/8/4K2R w - - 0 1"}, "without a fen"),
        ({"fen": "7k/8/6Q1/8/8/8/8/K7 b - - 0 1"}, "the game is over there .stalemate."),
        ({"fen": "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"}, "the game is over there .checkmate."),
        ({"fen": "7k/8/6K1/8/8/8/8/8 b - - 0 1"}, "the game is over there .insufficient material."),
        ({"fen": "nonsense"}, "fen='nonsense': six fields are needed"),
        ({"fen": None}, "fen: a text of at most 100 characters is allowed"),
    ],
)
def test_bad_options_name_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Chess.initial(Random(0), **options)


@pytest.mark.parametrize("action", ["", "e4", "E2E4", "0000", "e2e4 ", "\ud800", "x" * 1_000_000, "\x00", "e7e8k", "٢"])
def test_hostile_text_is_illegal_and_changes_nothing(action: str) -> None:
    with pytest.raises(IllegalAction, match=r"^write a legal move in UCI, such as e2e4 or e7e8q$"):
        START.play(action)
    assert Chess.initial(Random(0)) == START


@pytest.mark.parametrize("action", ["e2e5", "e7e5", "e1g1", "e7e8q"])
def test_illegal_move_is_named(action: str) -> None:
    with pytest.raises(IllegalAction, match=f"^{action} is not legal in this position$"):
        START.play(action)


def test_normalize_speaks_only_for_the_seat_to_act() -> None:
    assert START.normalize("Nf3", 0) == "g1f3"
    assert START.normalize("Nf3", 1) == "Nf3"
    assert START.normalize("nonsense", 0) == "nonsense"
    over = played(("f2f3", "e7e5", "g2g4", "d8h4"))
    assert over.normalize("Nf3", 0) == over.normalize("Nf3", 1) == "Nf3"


def test_values_are_values() -> None:
    game = played(("e2e4", "c7c5", "g1f3"))
    before = (hash(game), game.observation(0), game.position)
    twins = [pickle.loads(pickle.dumps(game)), copy.copy(game), copy.deepcopy(game), replace(game)]
    for twin in (*twins, played(("e2e4", "c7c5", "g1f3"))):
        assert twin == game
        assert hash(twin) == hash(game)
        assert twin.play("d7d6") == game.play("d7d6")
        assert twin.play("d7d6") != game.play("e7e6")
    assert played(("g1f3", "c7c5", "e2e4")) != game  # another history
    board = game.board()
    board.clear()
    assert (hash(game), game.observation(0), game.position) == before
    assert game.board().fen().startswith("rnbqkbnr/pp1ppppp/8/2p5/4P3/5N2/")


def test_a_pickled_game_repeats_and_ends_alike() -> None:
    game = pickle.loads(pickle.dumps(played((*SHUFFLE, *SHUFFLE[:3]))))
    assert game.play(SHUFFLE[3]).ending == "threefold repetition"


def test_position_and_board_are_the_same() -> None:
    board = chess.Board("r3k2r/8/8/3pP3/8/8/8/R3K2R w Kq d6 0 9")
    assert Position.of(board).board() == chess.Board("r3k2r/8/8/3pP3/8/8/8/R3K2R w Kq d6 0 1")
    assert played((), board.fen()).board() == board


def test_history_only_grows_and_positions_show_no_history() -> None:
    game = START
    for action in ("e2e4", "e7e5", "g1f3"):
        after = game.play(action)
        assert after.events(0)[:-1] == game.events(0)
        assert action not in after.observation(0)
        game = after
    assert [event.text for event in game.events(1)] == ["White plays e2e4.", "Black plays e7e5.", "White plays g1f3."]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ("usual position", "(e1g1)")),
        ({"chess960": True}, ("960 shuffled positions, drawn by lot", "(e1h1)", "Chess960")),
        ({"chess960": True, "scharnagl": 7}, ("Chess960 position 7", "(e1h1)")),
        ({"fen": "4k3/8/8/8/8/8/8/4K2R b K - 3 7"}, ("4k3/8/8/8/8/8/8/4K2R b K - 3 7", "(e1g1)")),
    ],
)
def test_rules_tell_the_options_and_a_legal_example(options: dict[str, Any], words: tuple[str, ...]) -> None:
    games = [Chess.initial(Random(seed), **options) for seed in range(20)]
    for player, colour in enumerate(("White", "Black")):
        rules = games[0].rules(player)
        assert f"You are {colour};" in rules
        assert all(word in rules for word in words)
        example = rules.split("For example: ")[1].split("\n")[0]
        for game in games:
            assert game.rules(player) == rules
            assert example in game.legal_actions(game.to_act()[0])
            assert json.dumps(options)


def test_bounds() -> None:
    rng = Random(9)
    table = START.action_table()
    assert len(table) == len(set(table)) == 1_968
    for chess960 in (False, True):
        game = Chess.initial(rng, chess960=chess960)
        longest = 0
        while game.to_act():
            legal = game.legal_actions(game.to_act()[0])
            assert set(legal) <= set(table)
            assert max(map(len, legal)) <= game.max_action()
            longest = max(longest, len(game.observation(0)), len(game.observation(1)))
            game = game.play(rng.choice(legal))
        assert max(len(event.text) for event in game.events(0)) < 19
        assert longest < 450
        assert len(game.events(0)) <= game.max_turns() == 12_700


def test_reseeding_changes_nothing() -> None:
    game = played(("e2e4",))
    assert game.determinize(0, Random(1)) == game


@pytest.mark.oracle
def test_open_spiel_agrees() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    rng = Random(6)
    for _ in range(25):
        game, state = START, pyspiel.load_game("chess").new_initial_state()
        while game.to_act() and not state.is_terminal():
            player = game.to_act()[0]
            board = chess.Board(str(state))
            legal = {board.parse_san(state.action_to_string(a)).uci(): a for a in state.legal_actions()}
            assert sorted(game.legal_actions(player)) == sorted(legal)
            action = rng.choice(game.legal_actions(player))
            game = game.play(action)
            state.apply_action(legal[action])
        # OpenSpiel has no automatic fifty-move rule; all other ends coincide
        if game.ending != "the fifty-move rule":
            assert state.is_terminal()
            assert list(game.returns()) == state.returns()[::-1]  # its player 0 is Black
