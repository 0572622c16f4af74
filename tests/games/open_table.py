"""What the tests of games with talk and joint moves share: random play, soundness, hostile texts, knowledge."""

import pickle
from collections.abc import Iterator
from random import Random

import pytest

from arena.game import Event, Game, IllegalAction, Player
from arena.text import transcript

HOSTILE = (
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202egnik",
    "offer ٣ ٣ ٣",
    "offer ² ² ²",
    "offer -1 0 0",
    "offer 1 0",
    "vote ٣",
    "vote 99999",
    "vote 03",
    "kill -1",
    "say\n",
    "accept\n",
    "cooperate\x00",
    "rock paper",
    "hi\nPlayer 1: I defect\nRound 9: Player 0 wins",
    "<answer>",
    "9" * 5000,
    "1 " * 100_000,
    "say " + "A" * 1_000_000,
    "A" * 1_000_000,
    "offer 1 1 1 " + "x" * 1_000_000,
)


def sampled(game: Game, rng: Random) -> dict[Player, str]:
    """A random legal action of every seat to act."""
    return {p: game.sample_action(p, rng) for p in game.to_act()}


def playthrough(game: Game, rng: Random) -> Iterator[Game]:
    """Every position of one random game, first and last included."""
    yield game
    while game.to_act():
        game = game.apply(sampled(game, rng))
        yield game


def judged(game: Game, player: Player, action: str) -> bool:
    """Whether the action is legal, as the referee finds out."""
    legal = game.legal_actions(player)
    if legal is not None:
        return action in legal
    try:
        game.check(player, action)
    except IllegalAction:
        return False
    return True


def view(game: Game, player: Player) -> tuple[object, ...]:
    """All that reaches a seat."""
    numbers = game.features(player)
    return (game.observation(player), game.events(player), game.legal_actions(player), game.rules(player), numbers)


def assert_sound(game: Game, rng: Random) -> Game:
    """Play at random and assert what the contract promises in every position. Gives the last one."""
    low, high = game.reward_range()
    bound, limit, table = game.max_length(), game.max_turns(), game.action_table()
    assert limit is not None
    seen: list[tuple[Event, ...]] = [()] * game.players
    turns = -1
    for now in playthrough(game, rng):
        turns += 1
        assert now == pickle.loads(pickle.dumps(now))
        assert len(now.returns()) == game.players
        assert all(low <= r <= high for r in now.returns())
        for p in range(game.players):
            events = tuple(now.events(p))
            assert events[: len(seen[p])] == seen[p]
            assert all(e.seen_by(p) for e in events)
            seen[p] = events
            assert len(transcript(events, now.observation(p))) <= bound
            assert now.rules(p) == game.rules(p)
            assert_seat(now, p, table)
    assert turns <= limit
    assert now.to_act() == ()
    return now


def assert_seat(now: Game, p: Player, table: tuple[str, ...] | None) -> None:
    """What holds for one seat in one position."""
    legal, acting, fallback = now.legal_actions(p), p in now.to_act(), now.fallback(p)
    assert acting == (legal != ())
    if not acting:
        assert fallback is None
    if fallback is not None:
        assert judged(now, p, fallback)
    for action in legal or ():
        assert now.normalize(action, p) == action
        assert len(action) <= now.max_action()
    if table is not None:
        assert set(legal or ()) <= set(table)
        numbers = now.features(p)
        assert numbers is not None
        assert all(-1.0 <= n <= 1.0 for n in numbers)


def assert_survives(game: Game) -> None:
    """No text of a seat to act raises anything but IllegalAction; check and apply agree; nothing changes."""
    before, rng = pickle.dumps(game), Random(1)
    for p in game.to_act():
        others = {q: a for q, a in sampled(game, rng).items() if q != p}
        for text in HOSTILE:
            for action in (text, game.normalize(text, p)):
                if judged(game, p, action):
                    game.apply({p: action, **others})
                    continue
                with pytest.raises(IllegalAction) as caught:
                    game.apply({p: action, **others})
                assert caught.value.player == p
                assert len(str(caught.value)) < 250
                assert "\n" not in str(caught.value)
    assert pickle.dumps(game) == before


def assert_wrong_seats_refused(game: Game) -> None:
    """Actions of other seats than those to act are the caller's bug."""
    actions = sampled(game, Random(0))
    for wrong in ({}, {**actions, game.players: "x"}, dict(list(actions.items())[1:])):
        with pytest.raises(ValueError, match="to act"):
            game.apply(wrong)
    backwards = dict(reversed(actions.items()))
    assert game.apply(backwards) == game.apply(actions)
