"""Exported trajectories, loaded by harbor's own models. harbor needs Python 3.12."""

from typing import Any

import msgspec
import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.trajectory import Trajectory
from arena.match import play_sync
from arena.registry import make_game
from arena.tools.codec import CODECS
from tests.adapters.datasets.talks import llm, played, seat
from tests.adapters.datasets.test_verifiers_graph import ADD, KINDS, TIMES, calculated, seats
from tests.agents.toy_model import ToyModel

pytestmark = pytest.mark.train
harbor: Any = pytest.importorskip("harbor.models.trajectories")


def loaded(trajectory: Trajectory) -> Any:
    """As harbor has it; it writes what it was given."""
    (row,) = make_format("atif").rows([trajectory])
    plain = msgspec.json.decode(msgspec.json.encode(row))
    found = harbor.Trajectory.model_validate(plain)
    assert found.to_json_dict() == plain
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_of_asking(kind: str) -> None:
    trajectory = seat(played([KINDS[kind](), "first"]))
    found = [step.metrics.completion_token_ids for step in loaded(trajectory).steps if step.metrics]
    assert found == [list(call.completion_ids) for call in trajectory.calls if call.kind != "sample"]


def test_tool_calls_and_many_seats() -> None:
    write = CODECS["hermes"].write
    agent = llm(ToyModel(write([ADD]), write([ADD, TIMES]), "Final answer: 7"), tools="hermes")
    assert len(loaded(calculated(agent)).steps[3].observation.results) == 2
    for each in seats(play_sync("SecretMafia-v0", ["random"] * make_game("SecretMafia-v0").players, 3)):
        assert loaded(each).extra["opponents"] == ["random"] * 6
