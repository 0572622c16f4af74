"""Bare rules, with text and legal list, beside OpenSpiel with text and beside TextArena's raw loop."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks import loops, openspiel, textarena
from benchmarks.timing import Figure, Loop, absent, interleave, loop, ratios

__all__ = ["against_openspiel", "against_textarena"]


class Goal(NamedTuple):
    """A game, the peer's name for it, and the ratio to reach."""

    game: str
    peer: str
    ratio: float
    options: Mapping[str, Any] = MappingProxyType({})


OPENSPIEL = (
    Goal("TicTacToe-v0", "tic_tac_toe", 1.4),
    Goal("ConnectFour-v0", "connect_four", 1.4),
    Goal("KuhnPoker-v0", "kuhn_poker", 1.4),
    Goal("LeducPoker-v0", "leduc_poker", 1.4),
    Goal("Chess-v0", "chess", 1.4),
)
TEXTARENA = (
    Goal("TicTacToe-v0", "TicTacToe-v0", 2.5),
    Goal("ConnectFour-v0", "ConnectFour-v0", 2.5),
    Goal("KuhnPoker-v0", "KuhnPoker-v0", 2.5),
    Goal("Chess-v0", "Chess-v0", 1.8),
    Goal("LiarsDice-v0", "LiarsDice-v0", 1.0),
    Goal("IteratedPrisonersDilemma-v0", "IteratedPrisonersDilemma-v0", 1.0),
    Goal("SecretMafia-v0", "SecretMafia-v0", 1.0, {"players": 7}),
)


def against_openspiel(seconds: float) -> list[Figure]:
    """k actions a second, ours and OpenSpiel's, both with text and legal actions as strings."""
    missing = absent("pyspiel")
    return [
        Figure(goal.game, "x", goal=goal.ratio, note=missing)
        if missing
        else _compared(goal, loop(openspiel.play(goal.peer)), seconds)
        for goal in OPENSPIEL
    ]


def against_textarena(seconds: float) -> list[Figure]:
    """k actions a second, ours (text and legal list) and TextArena's raw loop (no list)."""
    missing = absent("textarena")
    return [
        Figure(goal.game, "x", goal=goal.ratio, note=missing) if missing else _with_textarena(goal, seconds)
        for goal in TEXTARENA
    ]


def _with_textarena(goal: Goal, seconds: float) -> Figure:
    try:
        peer = textarena.replay(goal.peer)
    except textarena.Unplayable as error:
        return Figure(goal.game, "x", goal=goal.ratio, note=str(error))
    return _compared(goal, peer, seconds)


def _compared(goal: Goal, peer: Loop, seconds: float) -> Figure:
    ours, theirs = interleave([loop(loops.rules(goal.game, **goal.options)), peer], seconds)
    return Figure(goal.game, "x", 1e3 / min(ours), 1e3 / min(theirs), ratios(ours, theirs), goal.ratio)
