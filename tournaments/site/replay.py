"""The page of one game, move by move."""

from datetime import UTC, datetime

from arena.tournaments.config import GameEntry
from arena.tournaments.site import look
from arena.tournaments.site.pages import Link
from arena.tournaments.site.story import story
from arena.tournaments.store import Kept

__all__ = ["replay_page"]


def replay_page(kept: Kept, *, up: str = "", number: int = 0, live: str = "") -> str:
    """The page; it needs nothing beside it.

    `up`: the way to the site's folder, such as "../", for links to the leaderboard and to the list of its game (its
    section has this number, from 1); "": no links. A link to a position is `#12`, or `#12,1` as seat 1 saw it.
    Raises EpisodeError for a record that contradicts itself.
    """
    episode = kept.episode
    tabs = [Link(f"{up}index.html", "Leaderboard"), Link(f"{up}games-{number}.html", "Games")] if up else []
    label = GameEntry(episode.env, episode.options).label
    return look.render(
        "replay.html.j2",
        styles=["replay.css"],
        scripts=["board.js", "replay.js"],
        live=live,
        kept=kept,
        episode=episode,
        label=label,
        links=tabs[: 2 if number else 1],
        facts=_facts(kept),
        data=look.embedded(story(episode)),
    )


def _facts(kept: Kept) -> list[tuple[str, str]]:
    """Lines (what, text)."""
    episode, referee = kept.episode, kept.episode.referee
    facts = [(f"Option {key}", str(value)) for key, value in sorted(episode.options.items())]
    facts += [("Game", kept.id), ("Seed", str(episode.seed))]
    if 0 < episode.started < 1e11:
        facts.append(("Played", f"{datetime.fromtimestamp(episode.started, UTC):%Y-%m-%d %H:%M} UTC"))
    facts.append(("Referee", f"{referee.retries} retries, then {referee.illegal}"))
    models = [(f"Model of seat {at}", seat.policy.model) for at, seat in enumerate(episode.seats) if seat.policy.model]
    versions = ", ".join([f"{name} {version}" for name, version in episode.versions.items()])
    return [*facts, *models, *([("Versions", versions)] if versions else [])]
