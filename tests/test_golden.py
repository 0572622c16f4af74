"""Episodes that were played and committed once replay here, view by view, on this Python."""

import pytest

from arena.episode import Episode, read
from arena.registry import GAMES
from arena.replaying import replay
from tests.golden.make import FILE, golden

EPISODES = list(read(FILE))


@pytest.mark.parametrize("episode", EPISODES, ids=lambda e: f"{e.env}-{e.seed}-{e.referee.illegal}")
def test_a_golden_episode_replays(episode: Episode) -> None:
    replay(episode)


def test_they_show_every_id_and_every_kind_of_end() -> None:
    assert {episode.env for episode in EPISODES} == set(GAMES)
    assert {episode.outcome for episode in EPISODES} == {"terminated", "truncated"}
    assert any(episode.forfeits for episode in EPISODES)
    attempts = [attempt for episode in EPISODES for turn in episode.turns for attempt in turn.attempts]
    assert {attempt.verdict for attempt in attempts} >= {"legal", "illegal"}
    assert any(len(turn.attempts) == 2 for episode in EPISODES for turn in episode.turns)


def test_played_again_they_are_the_same() -> None:
    for before, now in zip(EPISODES, golden(), strict=True):
        assert [turn.hash for turn in now.turns] == [turn.hash for turn in before.turns], before.env
        assert now.returns == before.returns
