"""The fake server of the fast tests answers as the real one does."""

import asyncio

import pytest

from tests.fakes.test_real import differences
from tests.sglang.server import Endpoint

pytestmark = pytest.mark.sglang


def test_the_fake_answers_as_the_real_server(sglang: Endpoint) -> None:
    differ = asyncio.run(differences(sglang.url))
    assert differ == [], "\n".join(differ)
