"""Steps: a seat of an episode as `arena.env.GameEnv` shows it: what is seen, what is answered, what that earns."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from arena.adapters.datasets.replayed import replayed
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import View
from arena.episode import Attempt, EpisodeError, Turn
from arena.game import Game
from arena.numeric import Codec
from arena.replaying import replay
from arena.text import show

__all__ = ["Steps", "numeric_steps", "text_steps"]


class Steps(NamedTuple):
    """n answers, and n + 1 views."""

    observations: list[Any]
    actions: list[Any]
    rewards: list[float]
    infos: dict[str, list[Any]]
    """Of each view."""
    truncated: bool


class _Asked(NamedTuple):
    """One try of the seat."""

    state: Game
    view: View
    turn: Turn
    attempt: Attempt
    last: bool
    """Whether it is the last try of its turn."""


def text_steps(trajectory: Trajectory) -> Steps | None:
    """As text: every reply is a step, those that cost a retry included. None: the seat has made none.

    The action is what was played, or the reply as it came where that was wrong. Raises Lacking for a match that does
    not replay.
    """
    asked = list(_asked(trajectory))
    if not asked:
        return None
    actions = [each.turn.action if each.attempt.verdict == "legal" else each.attempt.raw for each in asked]
    infos: dict[str, list[Any]] = {
        "legal_actions": [_listed(each.view) for each in asked] + ["[]"],
        "verdict": _verdicts(asked),
    }
    observations = [_text(each.view) for each in asked] + [_end(trajectory, asked[-1].view)]
    return Steps(observations, actions, _rewards(trajectory, asked), infos, trajectory.truncated)


def numeric_steps(trajectory: Trajectory) -> Steps | None:
    """As numbers: every turn is a step, with the action that was played. None: the seat has made none.

    Raises Lacking for a match that does not replay, a game without a numeric face and a seat that forfeited, which has
    played no action.
    """
    episode, player = trajectory.episode, trajectory.player
    asked = [each for each in _asked(trajectory) if each.last]
    if not asked:
        return None
    where = f"episode {episode.id}, seat {player}"
    try:
        codec = Codec(episode.env, asked[0].state)
        end = replay(episode)
    except (ValueError, EpisodeError) as error:
        raise Lacking(f"{where}: {error}") from error
    numbers = {action: number for number, action in enumerate(codec.table)}
    if trajectory.forfeited:
        raise Lacking(f"{where}: a forfeit is no action, so it has no number")
    views = [(each.state, _text(each.view)) for each in asked] + [(end, _end(trajectory, asked[-1].view))]
    masks = [codec.mask(each.view.legal_actions) for each in asked] + [codec.mask(())]
    infos: dict[str, list[Any]] = {"action_mask": [mask.tolist() for mask in masks], "verdict": _verdicts(asked)}
    return Steps(
        [codec.observation(state, player, text).tolist() for state, text in views],
        [numbers[each.turn.action or ""] for each in asked],
        _rewards(trajectory, asked),
        infos,
        trajectory.truncated,
    )


def _asked(trajectory: Trajectory) -> Iterator[_Asked]:
    """Every reply of the seat that was played or refused; not one that the episode was cut at."""
    for position in replayed(trajectory):
        for turn, views in zip(position.turns, position.views, strict=True):
            if turn.seat != trajectory.player or (turn.action is None and trajectory.truncated):
                continue
            for at, (view, attempt) in enumerate(zip(views, turn.attempts, strict=True), 1):
                yield _Asked(position.state, view, turn, attempt, at == len(views))


def _history(view: View) -> list[str]:
    return [show(event) for event in view.events]


def _text(view: View) -> str:
    """With history="full": the referee's note, all that happened, the position."""
    return "\n".join([*([view.note] if view.note else []), *_history(view), view.observation])


def _end(trajectory: Trajectory, last: View) -> str:
    """What the seat saw at the end: all that happened, then the position."""
    return "\n".join([*_history(last), trajectory.episode.final[trajectory.player]])


def _listed(view: View) -> str:
    return json.dumps(view.legal_actions, ensure_ascii=False)


def _verdicts(asked: list[_Asked]) -> list[str]:
    return ["", *[each.attempt.verdict for each in asked]]


def _rewards(trajectory: Trajectory, asked: list[_Asked]) -> list[float]:
    """What each step earned: a turn's reward at its last try, so that all of them are the return.

    What was earned before the first turn is the first step's, and what a seat earned once it had forfeited the last's,
    as in `arena.env`.
    """
    rewards = [each.turn.reward if each.last else 0.0 for each in asked]
    here = {id(each.turn) for each in asked}
    rewards[-1] += sum(turn.reward for turn in trajectory.turns if id(turn) not in here)
    rewards[0] += trajectory.reward - sum(turn.reward for turn in trajectory.turns)
    return rewards
