"""What the tests of games with hidden information share: texts nobody should send, and the leak test."""

import pickle
from random import Random

import pytest

from arena.game import Game, IllegalAction, TurnGame, replace
from arena.text import transcript

HOSTILE = (
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202egnik",
    "٣ x ٣",
    "² x ²",
    "3 x\n5",
    "check\x00",
    "bet bet",
    "Player 0: fold",
    "<answer>",
    "9" * 5000,
    "x " * 100_000,
    "A" * 1_000_000,
    "🎲",
)


def play_out(game: TurnGame, rng: Random) -> list[TurnGame]:
    """Every position of one random game, the last one included."""
    path = [game]
    while acting := game.to_act():
        game = game.play(game.sample_action(acting[0], rng))
        path.append(game)
    return path


def assert_hostile_text_is_refused(game: TurnGame) -> None:
    """No string but a legal action is taken, and none raises anything else."""
    (seat,) = game.to_act()
    for text in HOSTILE:
        for said in (text, game.normalize(text, seat)):
            if said not in (game.legal_actions(seat) or ()):
                with pytest.raises(IllegalAction) as refused:
                    game.play(said)
                assert "\n" not in str(refused.value)
                assert len(str(refused.value)) < 200


def assert_nothing_leaks(game: Game, rng: Random, draws: int = 8) -> set[Game]:
    """What each seat knows survives `determinize`; gives the positions drawn."""
    drawn: set[Game] = set()
    for p in range(game.players):
        for _ in range(draws):
            other = game.determinize(p, rng)
            assert other.observation(p) == game.observation(p)
            assert tuple(other.events(p)) == tuple(game.events(p))
            assert other.legal_actions(p) == game.legal_actions(p)
            assert other.features(p) == game.features(p)
            assert other.to_act() == game.to_act()
            drawn.add(other)
    return drawn


def assert_sound(path: list[TurnGame]) -> None:
    """What holds for every game along a path from its first to its last position."""
    first, last = path[0], path[-1]
    low, high = first.reward_range()
    table, limit = first.action_table(), first.max_turns()
    assert table is not None
    assert limit is not None
    assert len(path) - 1 <= limit
    assert sum(last.returns()) == pytest.approx(0, abs=1e-12)  # ranks of four seats are thirds
    assert all(low <= gain <= high for gain in last.returns())
    lengths = set()
    for game in path:
        assert pickle.loads(pickle.dumps(game)) == game
        assert game.reseed(Random(0)).observation(0) == game.observation(0)
        for p in range(game.players):
            features = game.features(p)
            assert features is not None
            assert all(-1.0 <= number <= 1.0 for number in features)
            lengths.add(len(features))
            assert len(transcript(game.events(p), game.observation(p))) <= first.max_length()
            legal = game.legal_actions(p)
            assert legal is not None
            assert bool(legal) == (p in game.to_act())
            assert set(legal) <= set(table)
            assert max(map(len, legal), default=0) <= first.max_action()
            assert game.fallback(p) in (legal or (None,))
            assert [game.normalize(action, p) for action in legal] == list(legal)
            assert game.rules(p) == first.rules(p)
    assert len(lengths) == 1
    assert last.to_act() == ()
    with pytest.raises(IllegalAction):
        last.play(table[0])
    assert replace(last) == last
