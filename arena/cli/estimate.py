"""What a tournament would cost: its games in small, played by stand-ins that count tokens. No model is asked."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from rich.markup import escape
from rich.table import Table

from arena.agent import Agent
from arena.cli.errors import plain
from arena.cli.output import stdout
from arena.match import play_sync
from arena.registry import make_agent
from arena.tournaments.config import AgentEntry, GameEntry, Tournament
from arena.tournaments.history import History
from arena.tournaments.schedule import seats_of
from arena.tournaments.schedules import most
from arena.tournaments.store import Store, database_of
from arena.tournaments.supply import FIXED
from arena.tournaments.terms import RoundRobin

__all__ = ["Spending", "spending", "tell_games", "tell_spending"]

_SEEDS = 4  # games of each kind that are tried out


class Spending(NamedTuple):
    """What one agent would spend in one game of the tournament, all its games together."""

    game: str
    agent: str
    replies: float
    prompt: float
    """Tokens of all prompts."""
    cached: float
    """Of these, tokens that the server has seen before in the same conversation."""
    wrote: float
    """Tokens of all answers, at most."""
    cost: float | None
    """Dollars, at most; None: the price is not known."""


def spending(asked: Tournament) -> Iterator[Spending]:
    """For every game and every agent that asks a model. Agents are made, models are not asked."""
    for entry, games in zip(asked.games, _most(asked), strict=True):
        share = games * len(seats_of(entry)[1]) / len(asked.agents)  # games in which an agent sits, on the whole
        for player in asked.agents:
            standin = None if player.human else _standin(player)
            if standin is not None:
                yield _of(asked, entry, player, standin, share)


def _standin(player: AgentEntry) -> Agent | None:
    agent = player.make()
    standin = agent.standin()
    if (closed := agent.close()) is not None:
        asyncio.run(_awaited(closed))
    return standin


async def _awaited(closed: Awaitable[None]) -> None:
    await closed


def _of(asked: Tournament, entry: GameEntry, player: AgentEntry, standin: Agent, share: float) -> Spending:
    found = [_usage(asked, entry, standin, number) for number in range(_SEEDS)]
    total = {key: sum(each.get(key, 0.0) for each in found) * share / _SEEDS for key in _KEYS}
    cost = total["cost"] if any("cost" in each for each in found) else None
    replies, prompt, cached, wrote = [total[key] for key in _KEYS[:4]]
    return Spending(entry.label, player.name, replies, prompt, cached, wrote, cost)


_KEYS = ("replies", "prompt_tokens", "cached_tokens", "completion_tokens", "cost")


def _usage(asked: Tournament, entry: GameEntry, standin: Agent, number: int) -> dict[str, float]:
    """What is spent in one game, in a seat that changes from game to game."""
    free = seats_of(entry)[1]
    at = number % len(free)
    seated = [standin if position == at else make_agent("random") for position in range(len(free))]
    episode = play_sync(entry.id, seated, asked.seed + number, entry.options, asked.referee, max_turns=asked.max_turns)
    if episode.outcome == "void":
        raise ValueError(f"{entry.label} cannot be tried out: {episode.reason}")
    turns = [turn for turn in episode.turns if turn.seat == free[at]]
    spent: dict[str, float] = {"replies": float(len(turns))}
    for turn in turns:
        for attempt in turn.attempts:
            for call in attempt.calls:
                for key, value in call.usage.items():
                    spent[key] = spent.get(key, 0.0) + value
    return spent


def _most(asked: Tournament) -> list[float]:
    """Games of every entry, at most; a budget of games is shared by all."""
    counts = most(History(asked))
    limit = asked.stop.games
    if limit is None or sum(counts) <= limit:
        return [float(count) for count in counts]
    return [count * limit / sum(counts) for count in counts]


def tell_games(asked: Tournament, folder: Path) -> None:
    """How many games there would be, and how many there are."""
    counts = most(History(asked))
    up_to = "" if isinstance(asked.schedule, FIXED) else "at most "
    width = max(len(entry.label) for entry in asked.games)
    for entry, games in zip(asked.games, counts, strict=True):
        whole = games // max(len(seats_of(entry)[1]) * asked.repetitions, 1)
        blocks = asked.blocks_of(entry) if isinstance(asked.schedule, RoundRobin) else whole
        click.echo(f"{entry.label:{width}}  {up_to}{games} games in {blocks} seed block{'s' * (blocks != 1)}")
    click.echo(f"{'total':{width}}  {up_to}{sum(counts)} games between {len(asked.agents)} agents")
    if rules := msgspec.to_builtins(asked.stop):
        click.echo(f"ends earlier as soon as one holds: {', '.join(f'{key}={_told(rules[key])}' for key in rules)}")
    database = database_of(folder / "results.db", asked.store)
    if database.exists():
        with Store.open(asked.store or folder) as store:
            click.echo(f"{database.name} holds {len(store.finished())} finished games")


def _told(rule: object) -> str:
    """A rule's value as it may be written."""
    if isinstance(rule, Mapping):
        return ":".join(map(_told, rule.values()))
    return f"{rule:,.10g}" if isinstance(rule, int | float) else str(rule)


def tell_spending(asked: Tournament, seconds: float) -> None:
    """What models would read and write, from a few games played by stand-ins; nothing where no agent asks one."""
    found = list(spending(asked))
    if not found:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at, column in enumerate(("game", "agent", "replies", "tokens in", "cached", "tokens out, at most", "dollars")):
        table.add_column(column, justify="left" if at < 2 else "right", overflow="fold")
    for row in found:
        counts = [f"{value:,.0f}" for value in (row.replies, row.prompt, row.cached, row.wrote)]
        cost = "?" if row.cost is None else f"{row.cost:,.2f}"
        table.add_row(escape(plain(row.game)), escape(plain(row.agent)), *counts, cost)
    stdout().print(table)
    known = [row.cost for row in found if row.cost is not None]
    replies = sum(row.replies for row in found)
    time = timedelta(seconds=round(replies * seconds / asked.concurrency))
    facts = [f"{replies:,.0f} replies", f"about {time} at {seconds:g} s a reply and {asked.concurrency} games at once"]
    facts += [f"at most ${sum(known):,.2f}"] if known else []
    facts += ["? : no price is known; give input_price and output_price"] if len(known) < len(found) else []
    click.echo("; ".join(facts))
