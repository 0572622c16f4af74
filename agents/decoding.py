"""Decoding: how an answer is bound to the legal actions: by a regular expression, by likelihood, by a majority."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from random import Random

from arena.agent import AgentError, View
from arena.game import Action
from arena.model import Completion, Constraint, Finish
from arena.referee import MARKS, Referee, marked, split_thoughts

__all__ = ["CUT", "alternatives", "choose", "log_share", "majority", "unfit"]

CUT = frozenset[Finish](("length", "content_filter"))
"""How an answer ends that is not whole."""

_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_BREAKS = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]")
_REFEREE = Referee()
_UNREAD = CUT | {"abort"}


def unfit(actions: Sequence[Action] | None) -> str:
    """Why these actions cannot be constrained or scored, or ""."""
    if not actions:
        return "there is no list of legal actions"
    for action in actions:
        if not action or _BREAKS.search(action):
            return f"the action {action[:80]!r} is empty or has a control character"
    return ""


@lru_cache(maxsize=512)
def alternatives(actions: tuple[Action, ...]) -> Constraint:
    r"""The regular expression of these actions and nothing else, in the form that servers' grammar engines take.

    >>> alternatives(("a+b", "raise 10")).text
    '(a\\+b|raise 10)'

    Raises AgentError for actions that it cannot say.
    """
    if why := unfit(actions):
        raise AgentError(f"decode=constrained: {why}")
    return Constraint("regex", f"({'|'.join([_SPECIAL.sub(_escaped, action) for action in actions])})")


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def choose(scores: Sequence[float], temperature: float, rng: Random) -> int:
    """The index of the greatest score (the first of equals) at temperature 0, else drawn from the softmax.

    `scores`: log-likelihoods, which are divided by the temperature.
    """
    best = max(scores)
    if temperature == 0 or best == -math.inf:
        return scores.index(best)
    weights = [math.exp((score - best) / temperature) for score in scores]
    return rng.choices(range(len(scores)), weights)[0]


def log_share(scores: Sequence[float], temperature: float, at: int) -> float:
    """The logarithm of the probability with which `choose` gives this index.

    >>> log_share([-1.0, -1.0], 0.7, 1) == -math.log(2), log_share([-1.0, -2.0], 0, 0)
    (True, 0.0)
    """
    best = max(scores)
    if temperature == 0 or best == -math.inf:
        return 0.0
    return (scores[at] - best) / temperature - math.log(sum(math.exp((s - best) / temperature) for s in scores))


def majority(view: View, completions: Sequence[Completion]) -> int:
    """The index of the first of the answers that mean what most of them mean.

    Answers that were cut, or that mean nothing legal where the seat is shown the list, count only if all are such.
    """
    meant = [_meaning(view, each) for each in completions]
    counts = Counter(action for action in meant if action is not None)
    if counts:
        most = max(counts.values())
        return next(at for at, action in enumerate(meant) if action is not None and counts[action] == most)
    whole = [at for at, each in enumerate(completions) if each.finish not in _UNREAD]
    ended = [at for at, each in enumerate(completions) if each.finish != "abort"]
    return [*whole, *ended, 0][0]


def _meaning(view: View, completion: Completion) -> str | None:
    """What an answer means as far as the seat can know; None: nothing."""
    if completion.finish in _UNREAD:
        return None
    if view.legal_actions is not None:
        return _REFEREE.read(view.game, view.player, completion.text).action
    spoken = split_thoughts(completion.text)[0].strip()
    if view.open_text:
        return spoken or None
    found = marked(spoken, MARKS)  # there is a list, which the seat is not shown
    return spoken if found is None else found
