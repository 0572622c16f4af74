"""Fixed-limit betting as a tree: what the seats may say in turn, the same for every deal.

One or more rounds; in each, a bet or raise adds the round's size to the highest stake, and at most `cap` of them
may be made. A round ends when all who have not folded have paid the same; the hand ends after the last round or when
one seat is left. Kuhn poker is one round with a cap of 1, Leduc poker two rounds with a cap of 2.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from arena.game import NOBODY, SEAT, Action, Player

__all__ = ["Node", "betting_tree", "read", "steps"]

LETTER = {"check": "k", "bet": "b", "raise": "r", "call": "c", "fold": "f"}
STEPS = {"k": (1.0, 0.0, 0.0), "c": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0), "r": (0.0, 1.0, 0.0), "f": (0.0, 0.0, 1.0)}
NO_STEP = (0.0, 0.0, 0.0)
SYNONYMS = {
    "pass": ("check", "fold"),
    "bet": ("bet", "raise"),
    "raise": ("raise", "bet"),
    **{form: (word,) for word in ("check", "call", "fold") for form in (word, f"{word}s", f"i {word}")},
    **{form: ("bet", "raise") for word in ("bet", "raise") for form in (f"{word}s", f"i {word}")},
}


class Node(NamedTuple):
    """One point of the betting. Its name, the line, is a letter an action and `/` between rounds: `krc/k`."""

    to_act: tuple[Player, ...]
    legal: tuple[Action, ...]
    after: Mapping[Action, str]
    """The line that follows each legal action."""
    paid: tuple[int, ...]
    """What every seat has put in beyond its ante."""
    pot: int
    """The sum of `paid`."""
    live: tuple[Player, ...]
    """Seats that have not folded."""
    round: int
    said: str
    """The betting so far, a line a round."""
    ask: str
    """What is asked, in the words for the seat to act; "" at the end."""
    wait: str
    """The same in the words for the others."""


class _State(NamedTuple):
    line: str
    round: int
    paid: tuple[int, ...]
    live: tuple[Player, ...]
    queue: tuple[Player, ...]  # who still has to speak in this round, in order
    raised: int
    said: tuple[tuple[str, ...], ...]


def betting_tree(players: int, sizes: tuple[int, ...], cap: int, raising: Action) -> dict[str, Node]:
    """Every point of the betting by its line; "" is the start.

    `sizes` has the chips of a bet for each round, `raising` is the word for putting them in: bet or raise.
    """
    everybody = tuple(range(players))
    tree: dict[str, Node] = {}
    todo = [_State("", 0, (0,) * players, everybody, everybody, 0, ((),))]
    while todo:
        state = todo.pop()
        following = dict(_following(state, sizes, cap, raising))
        todo += following.values()
        tree[state.line] = _node(state, {action: then.line for action, then in following.items()})
    return tree


def _following(state: _State, sizes: tuple[int, ...], cap: int, raising: Action) -> Iterator[tuple[Action, _State]]:
    if not state.queue:
        return
    seat, stake = state.queue[0], max(state.paid)
    owes = stake > state.paid[seat]
    if owes:
        live = tuple([p for p in state.live if p != seat])
        yield "fold", _then(state, "fold", state.paid, live, state.queue[1:] if len(live) > 1 else (), 0, sizes)
    word = "call" if owes else "check"
    yield word, _then(state, word, _pay(state, seat, stake), state.live, state.queue[1:], 0, sizes)
    if state.raised < cap:
        at = state.live.index(seat)
        queue = state.live[at + 1 :] + state.live[:at]
        paid = _pay(state, seat, stake + sizes[state.round])
        yield raising, _then(state, raising, paid, state.live, queue, 1, sizes)


def _pay(state: _State, seat: Player, stake: int) -> tuple[int, ...]:
    return (*state.paid[:seat], stake, *state.paid[seat + 1 :])


def _then(
    state: _State,
    action: Action,
    paid: tuple[int, ...],
    live: tuple[Player, ...],
    queue: tuple[Player, ...],
    raises: int,
    sizes: tuple[int, ...],
) -> _State:
    line = state.line + LETTER[action]
    said = (*state.said[:-1], (*state.said[-1], f"Player {state.queue[0]} {action}s"))
    if queue or len(live) == 1 or state.round + 1 == len(sizes):
        return _State(line, state.round, paid, live, queue, state.raised + raises, said)
    return _State(line + "/", state.round + 1, paid, live, live, 0, (*said, ()))


def _node(state: _State, after: Mapping[Action, str]) -> Node:
    legal, pot = tuple(after), sum(state.paid)
    labels = ["Betting"] if len(state.said) == 1 else [f"Betting, round {i + 1}" for i in range(len(state.said))]
    said = "\n".join(
        [f"{label}: {', '.join(words) or 'none yet'}." for label, words in zip(labels, state.said, strict=True)]
    )
    if not legal:
        return Node(NOBODY, (), after, state.paid, pot, state.live, state.round, said, "", "The hand is over.")
    seat = state.queue[0]
    ask = f"Your turn: {', '.join(legal[:-1])} or {legal[-1]}."
    wait = f"Player {seat} is to act."
    return Node(SEAT[seat], legal, after, state.paid, pot, state.live, state.round, said, ask, wait)


def read(text: str, legal: tuple[Action, ...]) -> Action:
    """The legal action a player meant by a word such as `Bet.`, `[raise]` or `pass`; other text as it is."""
    if len(text) > 64:
        return text
    for action in SYNONYMS.get(text.strip(" \t\r\n.!\"'`*[]()<>").lower(), ()):
        if action in legal:
            return action
    return text


def steps(line: str, rounds: int, length: int) -> list[float]:
    """The line as numbers: for each of `length` steps of each round, one of check or call, bet or raise, fold."""
    numbers: list[float] = []
    parts = line.split("/")
    for part in parts + [""] * (rounds - len(parts)):
        for letter in part:
            numbers += STEPS[letter]
        numbers += NO_STEP * (length - len(part))
    return numbers
