"""What all tests share."""

import os

import pytest


@pytest.fixture(scope="session")
def scale() -> int:
    """How much work a marked test does: 1 is the small version (`make test-ci`), 10 the full one."""
    return int(os.environ.get("ARENA_SCALE", "1"))
