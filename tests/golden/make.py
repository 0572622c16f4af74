"""Plays the golden episodes: every id, every policy for wrong actions, retries, forfeits, truncation.

`python -m tests.golden.make` writes `episodes.jsonl.zst` anew. They are committed: an episode that was played once
must replay for ever, on every Python. A change that breaks one alters play, and needs a new version of the id.
"""

from collections.abc import Iterator
from pathlib import Path

from arena.agent import Agent, Reply, View
from arena.episode import Episode, write
from arena.match import play_sync
from arena.referee import ILLEGAL, Referee
from arena.registry import game_ids, make_game

__all__ = ["FILE", "golden"]

FILE = Path(__file__).with_name("episodes.jsonl.zst")
OPTIONS = {"IteratedPrisonersDilemma-v0": {"talk": 1, "rounds": 2}, "LiarsDice-v0": {"players": 3, "dice": 2}}


class Slips(Agent):
    """Plays at random, one answer in eight wrong; not `random`, so that its stream may change."""

    name = "slips"

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        rng = view.rng
        return Reply("no such action \x00" if rng.random() < 1 / 8 else view.sample_action(rng), reasoning="why not")


def golden() -> Iterator[Episode]:
    """Four episodes of each id."""
    for game_id in game_ids():
        options = OPTIONS.get(game_id, {})
        agents = [Slips()] * make_game(game_id, 0, options).players
        for seed, illegal in enumerate(ILLEGAL):
            yield play_sync(game_id, agents, seed, options, Referee(illegal, retries=seed % 2), max_turns=60)
        yield play_sync(game_id, agents, 9, options, Referee("random", 1, show_legal=False), max_turns=2)


if __name__ == "__main__":
    FILE.unlink(missing_ok=True)
    print(write(FILE, golden()), "episodes,", FILE.stat().st_size, "bytes")
