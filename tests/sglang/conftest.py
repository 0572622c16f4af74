"""One real server for all tests marked `sglang`, and a router before it; `make test-sglang` has what they need."""

import os
from collections.abc import Iterator

import pytest

from tests.sglang.server import Endpoint, Router, Server, ServerError


@pytest.fixture(scope="session")
def sglang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The real SGLang with SmolLM2 on the CPU; or the server at `SGLANG_BASE_URL`, as it is.

    A test leaves it as it found it: not paused, its weights and their version unchanged. Whatever needs other flags, or
    may bring the server down, starts a `Server` of its own.
    """
    given = os.environ.get("SGLANG_BASE_URL")
    if given:
        yield reached(given)
        return
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.fail("a server for every worker is too much: run with -n 0 (make test-sglang), or set SGLANG_BASE_URL")
    try:
        server = Server(log=tmp_path_factory.mktemp("sglang") / "server.log").__enter__()
    except ServerError as error:
        pytest.fail(str(error), pytrace=False)
    with server:
        yield server


@pytest.fixture(scope="session")
def router(sglang: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    """SGLang's router before the server."""
    with Router(sglang.url, log=tmp_path_factory.mktemp("router") / "router.log") as router:
        yield router


def reached(url: str) -> Endpoint:
    """The server at `url`; the test fails if there is none."""
    server = Endpoint(url)
    if not server.ready():
        pytest.fail(f"no healthy server at SGLANG_BASE_URL={url}", pytrace=False)
    return server
