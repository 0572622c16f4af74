"""What tests of served models share."""

import pytest

from arena.adapters.models import pool


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr(pool, "FIRST_WAIT", 0.01)
