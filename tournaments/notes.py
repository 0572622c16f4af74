"""What a reader should know before believing the tables, in sentences."""

from collections.abc import Iterator, Sequence

from arena.tournaments.board import AgentTotals, Board, Section
from arena.tournaments.readings import PairCounts

__all__ = ["notes"]

_NAMED = 8  # agents or pairs in one sentence
_SURPRISING = 3.0  # standard errors from which on a pair is worth a word


def notes(board: Board, counts: Sequence[PairCounts | None]) -> list[str]:
    """In the order of importance for a section; `counts`: of the sections' two-player games."""
    dropped = sum(section.dropped for section in board.sections)
    said = [f"{dropped} truncated games are left out, as the tournament declares."] if dropped else []
    said += [_unfinished(agent) for agent in board.agents if agent.voids and not agent.games]
    wasted = _wasted(board)
    said += [wasted] if wasted else []
    tables = [*([(board.overall, None)] if board.overall else []), *zip(board.sections, counts, strict=True)]
    for section, counted in tables:
        said += [f"{section.label}: {note}" for note in _of(section, counted, [agent.name for agent in board.agents])]
    return said


def _unfinished(agent: AgentTotals) -> str:
    return f"{agent.name} has no finished game; {agent.voids} attempts with it were void."


def _wasted(board: Board) -> str:
    """What void attempts and games left out have cost."""
    counted = [agent.conduct for agent in board.agents]
    tokens = board.spent.tokens - sum(told.prompt_tokens + told.completion_tokens for told in counted)
    dollars = board.spent.dollars - sum(told.cost for told in counted)
    if tokens <= 0 and dollars < 0.005:
        return ""
    cost = f" and ${dollars:,.2f}" if dollars >= 0.005 else ""
    return f"Games that do not count (void, or left out) took {max(tokens, 0):,} tokens{cost}; no table has them."


def _of(section: Section, counted: PairCounts | None, names: Sequence[str]) -> Iterator[str]:
    yield from _groups(section)
    if counted is not None and counted.again:
        yield (
            f"{counted.again} games were played before in their block, move by move; they tell nothing new,"
            " and make no interval smaller."
        )
    if counted is not None and counted.alike:
        pairs = _list([f"{names[first]} – {names[second]}" for first, second in counted.alike], "; ")
        yield (
            f"nothing is random between {pairs}: all their games in these seats"
            " are the same move by move, and prove less than their number says."
        )
    yield from _flags(section)
    yield from _circular(section)
    yield from _surprising(section, names)


def _groups(section: Section) -> Iterator[str]:
    if section.groups > 1:
        groups = [[row.name for row in section.rows if row.group == group] for group in range(section.groups)]
        yield (
            f"{section.groups} groups of agents never met, not even through others, and are not compared:"
            f" {_list([_list(group, ', ') for group in groups], ' | ')}."
        )


_TOLD = {
    "few common tasks": "share few tasks with the others: their ratings hang on how hard the model takes tasks to be",
    "never apart from a team-mate": "were always on one side with somebody: nothing tells what is whose",
}


def _flags(section: Section) -> Iterator[str]:
    """The marks that speak against the whole table, with those who have them."""
    for flag, meaning in _TOLD.items():
        marked = [row.name for row in section.rows if flag in row.flags]
        if marked:
            yield f"{_list(marked, ', ')} {meaning}."


def _circular(section: Section) -> Iterator[str]:
    told = section.beside
    if told is not None and told.circular:
        yield (
            f"{100 * told.cycle:.0f} % of what is seen between pairs goes round in circles, chance alone would give"
            f" {100 * told.cycle_noise:.0f} %: no one number for each agent tells who beats whom."
        )


def _surprising(section: Section, names: Sequence[str]) -> Iterator[str]:
    if section.beside is None:
        return
    found = [one for one in section.beside.residuals if abs(one.z) > _SURPRISING]
    pairs = [
        f"{names[one.first]} scored {one.seen:.2f} against {names[one.second]} ({one.expected:.2f} expected,"
        f" {one.games} games, {abs(one.z):.1f} standard errors)"
        for one in found
    ]
    if pairs:
        yield f"the ratings do not fit {len(pairs)} pairs: {_list(pairs, '; ')}."


def _list(items: Sequence[str], joint: str) -> str:
    """As many as a sentence can hold.

    >>> _list(["a", "b"], ", ")
    'a, b'
    """
    more = f"{joint}and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return joint.join(items[:_NAMED]) + more
