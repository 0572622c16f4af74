"""Replay: the recorded actions, played again, and the positions on the way."""

from collections.abc import Iterator
from typing import NamedTuple

from arena.agent import View, stream_seed
from arena.episode import Episode, EpisodeError, Turn, joined, link, shown_to, validate
from arena.game import Game, IllegalAction
from arena.penalty import Penalties
from arena.referee import Reading, Referee
from arena.registry import make_game

__all__ = ["Position", "positions", "replay"]


class Position(NamedTuple):
    """A position of a recorded match, before a ply was played in it."""

    state: Game
    turns: tuple[Turn, ...]
    """Of the ply, a turn for every seat that was to act."""
    views: tuple[tuple[View, ...], ...]
    """Of every turn: what its seat was given at each attempt (without a memory), the referee's notes included."""


def replay(episode: Episode, game: type[Game] | None = None) -> Game:
    """Play the recorded actions again and compare, hash by hash; the final position comes back.

    `game`: the class of a game that is not registered. Seed, options and actions must give the same views, links,
    rewards, returns, scores and last views. Raises EpisodeError at the first difference.
    """
    again = _begin(episode, game)
    for _ in again.plies():
        pass
    return again.state


def positions(episode: Episode, game: type[Game] | None = None) -> Iterator[Position]:
    """The positions in which a ply was played, in order, checked as `replay` does; a void episode's as far as it got.

    >>> from arena.match import play_sync
    >>> [position.turns[0].action for position in positions(play_sync("TicTacToe-v0", ["first", "first"]))][:3]
    ['1', '2', '3']
    """
    again = _begin(episode, game)
    for state, turns, since in again.plies():
        views = [_views(episode, state, turn, start) for turn, start in zip(turns, since, strict=True)]
        yield Position(state, tuple(turns), tuple(views))


def _views(episode: Episode, state: Game, turn: Turn, since: int) -> tuple[View, ...]:
    """What a seat was given at each attempt of a turn."""
    legal = state.legal_actions(turn.seat) if episode.referee.show_legal else None
    streams = stream_seed(episode.seed, episode.sample, episode.fork if episode.parent else -1)
    views, note = [], ""
    for attempt in turn.attempts:
        views.append(View(turn.seat, turn.observation, legal, {}, note, turn.ply, state, streams, since))
        note = episode.referee.note(state, turn.seat, Reading(attempt.verdict, None, attempt.reason))
    return tuple(views)


def _begin(episode: Episode, game: type[Game] | None) -> "_Replay":
    validate(episode)
    try:
        state = make_game(game or episode.env, episode.seed, episode.options)
    except ValueError as error:
        raise EpisodeError(f"episode {episode.id}: {error}") from error
    if state.players != len(episode.seats):
        raise EpisodeError(f"{episode.env} has {state.players} seats, recorded are {len(episode.seats)}")
    return _Replay(episode, state)


class _Replay:
    """The recorded match, played again."""

    def __init__(self, episode: Episode, state: Game) -> None:
        self.episode, self.state = episode, state
        self.penalties = Penalties(episode.referee, episode.seed, Referee.ends(state))
        self.seen, self.last = [0] * state.players, [-1] * state.players
        self.rewards, self.chain, self.earned = [0.0] * len(episode.turns), "", state.returns()

    def plies(self) -> Iterator[tuple[Game, list[Turn], list[int]]]:
        """Before each ply is played: the position, the seats' turns, and how many events each had seen by then."""
        turns, at = self.episode.turns, 0
        while at < len(turns):
            acting = self.state.to_act()
            ply = turns[at : at + len(acting)]
            if tuple([turn.seat for turn in ply]) != acting or not ply:
                raise EpisodeError(f"turn {at}: to act are {acting}, recorded {[turn.seat for turn in ply]}")
            yield self.state, ply, [self.seen[turn.seat] for turn in ply]
            cut = self.episode.outcome == "truncated" and None in [turn.action for turn in ply]
            for turn in ply:
                self._same(turn, at, cut)
                self.last[turn.seat] = at
                at += 1
            if cut:
                if at < len(turns):
                    raise EpisodeError(f"turn {at}: the episode was cut at turn {at - 1}")
                break
            if not self.penalties.over:
                self._apply(ply, at)
            self._pay()
        if self.episode.outcome != "void":
            self._compare_end()

    def _apply(self, ply: list[Turn], at: int) -> None:
        try:
            self.state = self.state.apply({turn.seat: turn.action or "" for turn in ply})
        except IllegalAction as error:
            raise EpisodeError(f"turn {at - 1}: the game refuses {[turn.action for turn in ply]}: {error}") from error

    def _same(self, turn: Turn, at: int, cut: bool) -> None:
        seat = turn.seat
        events, observation = shown_to(self.state, seat, self.seen[seat])
        self.seen[seat] += len(events)
        legal = self.state.legal_actions(seat)
        count = None if legal is None else len(legal)
        if (events, observation, count) != (turn.events, turn.observation, turn.legal):
            raise EpisodeError(f"turn {at}: seat {seat} now sees something else")
        self.chain = link(self.chain, seat, joined(events, observation), turn.action)
        if self.chain != turn.hash:
            raise EpisodeError(f"turn {at}: hash {self.chain} is not the recorded {turn.hash}")
        wrong = bool(turn.attempts) and turn.attempts[-1].verdict != "legal"
        if wrong and not cut and self.episode.referee.illegal == "forfeit":
            self.penalties.forfeits.append(seat)

    def _pay(self) -> None:
        now = self.penalties.earned(self.state)
        for at, after, before in zip(self.last, now, self.earned, strict=True):
            if at >= 0:
                self.rewards[at] += after - before
        self.earned = now

    def _compare_end(self) -> None:
        episode, state, seats = self.episode, self.state, range(self.state.players)
        if state.to_act() and episode.outcome == "terminated" and not self.penalties.over:
            raise EpisodeError(f"the recorded actions end before the game does: seats {state.to_act()} are to act")
        scores = tuple([dict(state.scores(p)) for p in seats])
        final = tuple([joined(*shown_to(state, p, self.seen[p])) for p in seats])
        found = {
            "roles": ([state.role(p) for p in seats], [seat.role for seat in episode.seats]),
            "rules": ([state.rules(p) for p in seats], [seat.rules for seat in episode.seats]),
            "forfeits": (tuple(sorted(self.penalties.forfeits)), episode.forfeits),
            "returns": (self.earned, episode.returns),
            "rewards": (self.rewards, [turn.reward for turn in episode.turns]),
            "scores": (scores if any(scores) else (), episode.scores),
            "last views": (final, episode.final),
        }
        for what, (now, recorded) in found.items():
            if now != recorded:
                raise EpisodeError(f"{what} {now!r:.200} are not the recorded {recorded!r:.200}")
