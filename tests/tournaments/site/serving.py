"""A real server of a run in a thread, and what it is asked over HTTP."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from arena.tournaments.site.web import app, web_server

__all__ = ["Line", "changes", "served"]

Line = str


@contextmanager
def served(run: str | Path, poll: float = 0.05, hosts: list[str] | None = None) -> Iterator[httpx.Client]:
    """A client of a server that serves the run."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = web_server(app(run, poll=poll, hosts=hosts))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until = time.monotonic() + 60
            while not server.started:
                assert thread.is_alive()
                assert time.monotonic() < until
                time.sleep(0.01)
            with httpx.Client(base_url=address, timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(60)
        assert not thread.is_alive()


def changes(lines: Iterator[Line]) -> Iterator[Line]:
    """The events of a stream that are changes."""
    return (line for line in lines if line == "event: change")
