"""Records that do not replay: what lacks, and whose it is."""

from typing import Any

import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.replayed import replayed
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.game import replace
from arena.match import play_sync
from arena.replaying import positions
from tests.adapters.datasets.talks import seat

FORMATS = ["minari", "minari?face=numeric", "sft", "kto", "atif", "verifiers", "art?logprobs=false"]
BROKEN = [
    ({"env": "Nowhere-v9"}, "unknown game 'Nowhere-v9'"),
    ({"forfeits": (1,)}, r"forfeits \(\) are not the recorded \(1,\)"),
    ({"options": {"size": 4}}, "unknown option"),
]


def test_positions_are_those_of_the_episode() -> None:
    episode = play_sync("KuhnPoker-v0", ["random", "random"], 1)
    assert list(replayed(seat(episode))) == list(positions(episode))


@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize(("change", "why"), BROKEN)
def test_what_lacks_names_episode_and_seat(spec: str, change: dict[str, Any], why: str) -> None:
    episode = replace(play_sync("TicTacToe-v0", ["first", "random"], 1), **change)
    with pytest.raises(Lacking, match=rf"^episode {episode.id}, seat 1: (?!episode){why}"):
        list(make_format(spec).rows([Trajectory(episode, 1)]))


def test_an_episode_without_an_id() -> None:
    episode = replace(play_sync("TicTacToe-v0", ["first", "random"], 1), id="", forfeits=(7,))
    with pytest.raises(Lacking, match=r"^episode , seat 0: (?!episode)"):
        list(replayed(seat(episode)))
