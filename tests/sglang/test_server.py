"""Servers are brought up and put down with all their processes, whatever ends their asker. No SGLang here."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repository import ROOT
from tests.sglang.conftest import reached
from tests.sglang.recipe import Recipe
from tests.sglang.server import PORTS, Endpoint, Process, Router, Server, ServerError, environment, free_port

TOY = """
import http.server, json, os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = {"pids": [os.getpid(), child.pid], "threads": os.environ["OMP_NUM_THREADS"], "cwd": os.getcwd()}
        body = b"plain" if self.path == "/text" else json.dumps(told).encode()
        self.send_response(404 if self.path == "/nothing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
print("the toy begins", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
ASKER = """
import sys, time
from tests.sglang.test_server import toy
with toy() as server:
    print(*server.get("/")["pids"], server.launcher.pid, server.scratch, flush=True)
    time.sleep(600)
"""


def toy(timeout: float = 30, log: Path | None = None, threads: int = 0) -> Process:
    """A server with a child process of its own."""
    port = free_port()
    return Process((sys.executable, "-c", TOY, str(port)), port, timeout=timeout, log=log, threads=threads)


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not asked for its status does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def soon(what: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def test_a_server_lives_as_long_as_its_block() -> None:
    with toy(threads=3) as server:
        told = server.get("/")
        assert told["threads"] == "3"
        assert told["cwd"] == str(server.scratch)
        assert all(alive(pid) for pid in told["pids"])
        assert server.status() is None
    assert not any(alive(pid) for pid in told["pids"])
    assert server.scratch is not None
    assert not server.scratch.exists()
    assert not server.ready()
    server.stop()


def test_answers_are_json_or_text_and_a_refusal_is_an_error() -> None:
    with toy() as server:
        assert server.post("/", {"a": [1]}) == {"a": [1]}
        assert server.get("/text") == "plain"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            server.get("/nothing")


def test_a_log_of_ones_own_stays(tmp_path: Path) -> None:
    with toy(log=tmp_path / "log") as server:
        pass
    assert "the toy begins" in (tmp_path / "log").read_text(encoding="utf-8")
    assert server.tail().startswith("the toy begins")


def test_an_end_before_it_is_ready_tells_status_and_log() -> None:
    server = Process((sys.executable, "-c", "print('no such model'); raise SystemExit(3)"), free_port(), timeout=30)
    with pytest.raises(ServerError, match="Process ended with status 3 before it was ready:\nno such model"), server:
        pass
    assert server.scratch is not None
    assert not server.scratch.exists()


def test_one_that_is_not_ready_in_time_is_stopped() -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    server = Process((sys.executable, "-c", code), free_port(), timeout=1)
    with pytest.raises(ServerError, match=r"was not ready after 1 s:\n\d+$") as told, server:
        pass
    assert not alive(int(str(told.value).split()[-1]))


def test_a_command_that_is_not_there_tells_so() -> None:
    with pytest.raises(ServerError, match="No such file or directory"), Process(("/no/such/python",), free_port()):
        pass


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_asker_is_killed(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", ASKER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        *pids, scratch = asker.stdout.readline().split()
        assert all(alive(int(pid)) for pid in pids)
        asker.send_signal(number)
        asker.wait(timeout=10)
    assert soon(lambda: not any(alive(int(pid)) for pid in pids))
    assert soon(lambda: not Path(scratch).exists())


def test_the_command_dies_with_its_launcher() -> None:
    with toy() as server:
        command, child = server.get("/")["pids"]
        assert server.launcher is not None
        server.launcher.kill()
        assert soon(lambda: not alive(command))
        os.kill(child, signal.SIGKILL)  # SGLang's children watch their parent themselves; the toy's does not


def test_ports_are_free_and_not_of_the_range_of_connections() -> None:
    ports = {free_port() for _ in range(20)}
    assert len(ports) > 15
    assert ports <= set(PORTS)


def test_variables_of_ours_stay_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = environment(tmp_path)
    assert "PYTHONPATH" not in found
    assert (found["OMP_NUM_THREADS"], found["TMPDIR"], found["HF_HUB_OFFLINE"]) == ("1", str(tmp_path), "1")
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert environment(tmp_path)["OMP_NUM_THREADS"] == "2"
    assert environment(tmp_path, 4)["OMP_NUM_THREADS"] == "4"


def test_without_the_recipe_a_server_says_what_to_do(tmp_path: Path) -> None:
    nothing = Recipe(tmp_path / "venv", tmp_path / "model")
    for server in (Server(recipe=nothing), Router("http://127.0.0.1:1", recipe=nothing)):
        with (
            pytest.raises(ServerError, match=r"not been followed \(environment, model\): run `make sglang-cpu`"),
            server,
        ):
            pass


def test_flags_of_ones_own_come_last(tmp_path: Path) -> None:
    server = Server("--dtype", "bfloat16", port=20_001, recipe=Recipe(tmp_path, tmp_path / "model"))
    assert server.url == "http://127.0.0.1:20001"
    assert server.command[-2:] == ("--dtype", "bfloat16")
    assert server.command[:4] == (str(tmp_path / "bin" / "python"), "-P", "-m", "sglang.launch_server")
    assert server.command[server.command.index("--port") + 1] == "20001"


def test_a_url_given_must_answer() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(pytest.fail.Exception, match=f"no healthy server at SGLANG_BASE_URL={url}"):
        reached(url)
    with toy() as server:
        assert isinstance(reached(server.url + "/"), Endpoint)
        assert reached(server.url + "/").url == server.url
