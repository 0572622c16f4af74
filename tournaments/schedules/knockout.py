"""A knockout: a bracket by seeds, ties of blocks, and further blocks where a tie is level.

The best seed meets the worst, the second best the second worst, and so on, arranged so that the first two can only meet
in the final; where agents are no power of two, the best seeds have a bye. A tie is won by points of blocks; level ones
go on block by block, up to `extra`, after which the better seed goes on.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from arena.tournaments.history import History
from arena.tournaments.schedule import Block
from arena.tournaments.terms import Knockout

__all__ = ["Tie", "blocks", "bracket", "most", "seeds"]


class Tie(NamedTuple):
    """One line of a bracket."""

    stage: int
    """From 0; the last one is the final."""
    agents: tuple[int | None, int | None]
    """Better seed first; None: not known yet, or in stage 0 nobody (a bye)."""
    points: tuple[float, float]
    """Of finished blocks."""
    blocks: int
    """Finished ones of every game."""
    winner: int | None
    """None: not decided yet."""
    third: bool = False
    """For the third place, beside the final."""


class _Played(NamedTuple):
    tie: Tie
    wanted: list[Block]
    """All blocks that the tie needs as far as one can tell, finished or not."""


def blocks(history: History) -> Iterator[Block | None]:
    """All open ties at once; None while their blocks are not over."""
    proposed: set[Block] = set()
    waiting: list[Block] = []
    while True:
        open_ = [block for block in waiting if not history.over(block)]
        if waiting and len(open_) == len(waiting):
            yield None
            continue
        ties = [played for stage in _stages(history) for played in stage]
        fresh = [block for played in ties for block in played.wanted if block not in proposed]
        proposed.update(fresh)
        yield from fresh
        waiting = [*open_, *fresh]
        if not waiting:
            return


def bracket(history: History) -> list[list[Tie]]:
    """The ties of every stage, as far as they are known; that for the third place is the last of the last stage."""
    return [[played.tie for played in stage] for stage in _stages(history)]


def most(history: History) -> list[int]:
    """Games of every entry, all further blocks played."""
    schedule, asked = _terms(history), history.tournament
    ties = len(asked.agents) - 1 + (schedule.third and len(asked.agents) > 3)
    return [ties * (asked.blocks_of(game) + schedule.extra) * 2 * asked.repetitions for game in asked.games]


def seeds(size: int) -> list[int]:
    """The seeds, from 0, in the order of a bracket's lines; `size` is a power of two.

    >>> seeds(8)
    [0, 7, 3, 4, 1, 6, 2, 5]
    """
    order = [0]
    while len(order) < size:
        order = [seed for best in order for seed in (best, 2 * len(order) - 1 - best)]
    return order


def _terms(history: History) -> Knockout:
    assert isinstance(history.tournament.schedule, Knockout)
    return history.tournament.schedule


def _ranked(history: History) -> list[int]:
    """Agents, best seed first."""
    asked = history.tournament
    agents = list(range(len(asked.agents)))
    if _terms(history).seeding == "listed":
        return agents
    rated = [asked.anchors.get(agent.name) for agent in asked.agents]
    return sorted(agents, key=lambda agent: (rated[agent] is None, -(rated[agent] or 0.0), agent))


def _stages(history: History) -> list[list[_Played]]:
    """Every stage, from the first to the final."""
    ranked = _ranked(history)
    size = 1 << max((len(ranked) - 1).bit_length(), 1)
    line: list[int | None] = [seed if seed < len(ranked) else None for seed in seeds(size)]
    stages: list[list[_Played]] = []
    while len(line) > 1:
        paired = list(zip(line[::2], line[1::2], strict=True))
        stages.append([_play(history, ranked, len(stages), pair) for pair in paired])
        line = [None if p.tie.winner is None else ranked.index(p.tie.winner) for p in stages[-1]]
    if _terms(history).third and len(stages) > 1:
        stages[-1] += _third(history, ranked, stages)
    return stages


def _third(history: History, ranked: Sequence[int], stages: Sequence[Sequence[_Played]]) -> list[_Played]:
    losers = [_loser(played.tie) for played in stages[-2]]
    if len(ranked) < 4:
        return []
    pair = tuple([None if agent is None else ranked.index(agent) for agent in losers])
    played = _play(history, ranked, len(stages) - 1, (pair[0], pair[1]))
    return [played._replace(tie=played.tie._replace(third=True))]


def _loser(tie: Tie) -> int | None:
    return None if tie.winner is None else next(agent for agent in tie.agents if agent != tie.winner)


def _play(history: History, ranked: Sequence[int], stage: int, pair: tuple[int | None, int | None]) -> _Played:
    """How a tie of two seeds stands, and what it needs."""
    low, high = sorted([seed for seed in pair if seed is not None]) if None not in pair else (None, None)
    if low is None or high is None:
        only = next((seed for seed in pair if seed is not None), None)
        agent = None if only is None else ranked[only]
        return _Played(Tie(stage, (agent, None), (0.0, 0.0), 0, agent if stage == 0 else None), [])
    return _tie(history, stage, ranked[low], ranked[high])


def _tie(history: History, stage: int, better: int, worse: int) -> _Played:
    """All blocks of a tie, further ones while it is level; `worse` is the worse seed."""
    asked, points, wanted = history.tournament, [0.0, 0.0], []
    over = winner = None
    for extra in range(_terms(history).extra + 1):
        found = _part(history, (min(better, worse), max(better, worse)), extra)
        wanted += found
        over = all(map(history.over, found))
        for block in found:
            if history.over(block):
                earned = history.points(block)
                points = [points[0] + earned.get(better, 0.0), points[1] + earned.get(worse, 0.0)]
        if not over or points[0] != points[1]:
            break
    if over:
        winner = worse if points[1] > points[0] else better
    done = sum(map(history.over, wanted)) // max(len(asked.games), 1)
    return _Played(Tie(stage, (better, worse), (points[0], points[1]), done, winner), wanted)


def _part(history: History, table: tuple[int, int], extra: int) -> list[Block]:
    """The blocks of a tie, or the so manieth further one, of every game."""
    asked = history.tournament
    found = []
    for entry, game in enumerate(asked.games):
        usual = asked.blocks_of(game)
        numbers = range(usual) if extra == 0 else range(usual + extra - 1, usual + extra)
        found += [Block(entry, number, table) for number in numbers]
    return found
