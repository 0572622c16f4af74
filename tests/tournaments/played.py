"""Tournaments that are played one game after the other, for tests of what is made of their games."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from arena.episode import Episode
from arena.match import play_sync
from arena.tournaments.config import Tournament, parse
from arena.tournaments.schedule import fixtures
from arena.tournaments.store import Store

__all__ = ["played"]


def played(folder: str | Path, change: Callable[[int, Episode], Episode] | None = None, **asked: Any) -> Tournament:
    """Play all games of a tournament into a store, once.

    `folder`: or a URL. `change`: what to make of each episode, by its number.
    """
    tournament = parse(asked)
    with Store.resume(folder, tournament) as store:
        for number, fixture in enumerate(fixtures(tournament)):
            entry = tournament.games[fixture.entry]
            agents = [tournament.agents[agent].make() for agent in fixture.agents]
            episode = play_sync(
                entry.id, agents, fixture.seed, entry.options, tournament.referee, max_turns=tournament.max_turns
            )
            episode = change(number, episode) if change else episode
            if episode.outcome == "void":
                store.add_void(fixture, episode)
            else:
                store.add(fixture, episode)
    return tournament
