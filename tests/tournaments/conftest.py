from collections.abc import Iterator

import pytest

from arena.registry import AGENTS
from tests.tournaments.players import PLAYERS, Counted, Flaky, Watched


@pytest.fixture(autouse=True)
def _players() -> Iterator[None]:
    AGENTS.update(PLAYERS)
    Counted.made = Counted.open = Counted.asked = Flaky.asked = Watched.now = Watched.most = 0
    yield
    for name in PLAYERS:
        del AGENTS[name]
