"""Servers that tests start: the real SGLang on a CPU, and SGLang's router. Standard library only.

    with Server("--max-queued-requests", "4") as server, Router(server.url) as router:
        server.post("/generate", {"text": "The capital of France is", "sampling_params": {"max_new_tokens": 4}})

A server listens on 127.0.0.1, on a port of its own; its log and scratch files are in a folder of its own. It is
killed with all its child processes at the end of the block, and also when this process is killed (see `launch.py`).
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.sglang.recipe import HERE, Recipe, offline

MODEL_NAME = "smollm2"
FLAGS = {
    "--device": "cpu",
    "--attention-backend": "torch_native",
    "--sampling-backend": "pytorch",
    "--grammar-backend": "xgrammar",
    "--dtype": "float32",  # decode and prefill then agree to 1e-5; bfloat16 is a third faster, and apart by 0.04
    "--max-total-tokens": "32768",
    "--max-running-requests": "16",
    "--context-length": "8192",
    "--served-model-name": MODEL_NAME,
}
SWITCHES = ("--skip-server-warmup", "--disable-overlap-schedule", "--sleep-on-idle")
"""An idle scheduler would otherwise poll on one of two cores for as long as it lives."""
PORTS = range(20_000, 30_000)
"""Below the range from which Linux takes the near ends of connections: a port that is free now stays free."""
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerError(Exception):
    """A server cannot start or did not become ready; says why."""


class Endpoint:
    """A server somewhere, with the little HTTP that fixtures and tests of the server itself need."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, path: str, timeout: float = 60) -> Any:
        """The JSON answer, or the text where it is none; `HTTPError` for a status that is not 2xx."""
        with DIRECT.open(self.url + path, timeout=timeout) as answer:
            return parsed(answer.read())

    def post(self, path: str, body: object, timeout: float = 300) -> Any:
        """The same for a POST of JSON."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), JSON)
        with DIRECT.open(request, timeout=timeout) as answer:
            return parsed(answer.read())

    def ready(self) -> bool:
        """Whether `/health` answers 200 now."""
        try:
            with DIRECT.open(self.url + "/health", timeout=30) as answer:
                return bool(answer.status == 200)
        except (OSError, HTTPException):
            return False


JSON = {"Content-Type": "application/json"}


class Process(Endpoint):
    """A server of our own, running `command` while the block does.

    `timeout`: seconds until it must be ready. `log`: a file for all it says; by default one that goes with the scratch.
    """

    def __init__(
        self, command: Sequence[str], port: int, *, timeout: float = 300, log: Path | None = None, threads: int = 0
    ) -> None:
        super().__init__(f"http://127.0.0.1:{port}")
        self.command, self.timeout, self.threads = tuple(command), timeout, threads
        self.log = log
        self.scratch: Path | None = None
        self.launcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start, and wait until it is ready. Raises ServerError."""
        try:
            self.start()
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the command below a launcher that outlives us for as long as it takes to clean up."""
        self.scratch = Path(tempfile.mkdtemp(prefix="arena-server-"))
        self.log = self.log or self.scratch / "log"
        launcher = (sys.executable, "-I", str(HERE / "launch.py"), str(os.getpid()), str(self.scratch))
        with self.log.open("wb") as log:
            self.launcher = subprocess.Popen(
                [*launcher, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.scratch,
                env=environment(self.scratch, self.threads),
                start_new_session=True,  # a Ctrl-C at the terminal is ours to act on
            )

    def wait(self) -> None:
        """Until it is ready. Raises ServerError with the end of its log."""
        end = time.monotonic() + self.timeout
        while not self.ready():
            status = self.status()
            if status is not None:
                raise ServerError(f"{self.title()} ended with status {status} before it was ready:\n{self.tail()}")
            if time.monotonic() > end:
                raise ServerError(f"{self.title()} was not ready after {self.timeout:g} s:\n{self.tail()}")
            time.sleep(0.1)

    def status(self) -> int | None:
        """None while it runs, then its exit status."""
        return None if self.launcher is None else self.launcher.poll()

    def stop(self) -> None:
        """Kill it with all its child processes; more than once does no harm."""
        try:
            if self.launcher is not None and self.launcher.poll() is None:
                self.launcher.send_signal(signal.SIGTERM)
                self.launcher.wait()
        finally:
            if self.scratch is not None:
                shutil.rmtree(self.scratch, ignore_errors=True)

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        if self.log is None or not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def title(self) -> str:
        """What errors call it."""
        return type(self).__name__


class Server(Process):
    """The real SGLang with SmolLM2-135M-Instruct, served as `smollm2`, in float32.

    `extra` flags come after the usual ones, and so override them. `threads` of torch: `OMP_NUM_THREADS`, else 2.
    """

    def __init__(
        self,
        *extra: str,
        port: int = 0,
        timeout: float = 600,
        log: Path | None = None,
        threads: int = 0,
        recipe: Recipe | None = None,
    ) -> None:
        port, self.recipe = port or free_port(), recipe or Recipe.from_environment()
        usual = [word for flag in FLAGS.items() for word in flag]
        place = ("--model-path", str(self.recipe.model), "--host", "127.0.0.1", "--port", str(port))
        module = (str(self.recipe.python), "-P", "-m", "sglang.launch_server")
        super().__init__((*module, *place, *usual, *SWITCHES, *extra), port, timeout=timeout, log=log, threads=threads)

    def start(self) -> None:
        """As every process, where the recipe has been followed. Raises ServerError."""
        check(self.recipe)
        super().start()


class Router(Process):
    """SGLang's router before some workers, given by their URLs; ready when all of them are."""

    def __init__(
        self,
        *workers: str,
        extra: Sequence[str] = (),
        timeout: float = 120,
        log: Path | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        self.workers, self.recipe = workers, recipe or Recipe.from_environment()
        port, metrics = free_port(), free_port()
        module = (str(self.recipe.python), "-P", "-m", "sglang_router.launch_router")
        place = ("--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(metrics))
        super().__init__((*module, *place, "--worker-urls", *workers, *extra), port, timeout=timeout, log=log)

    def start(self) -> None:
        """As every process, where the recipe has been followed. Raises ServerError."""
        check(self.recipe)
        super().start()

    def ready(self) -> bool:
        """Whether every worker is healthy: the router's `/health` answers 200 before it has any."""
        if not super().ready():
            return False
        known = self.get("/workers")["workers"]
        return {worker["url"] for worker in known if worker["is_healthy"]} >= set(self.workers)


def check(recipe: Recipe) -> None:
    """Raises ServerError where there is nothing to start."""
    missing = [step.name for step in recipe.steps() if step.name != "arena and shims" and not step.done()]
    if missing or not recipe.python.exists():
        raise ServerError(f"the SGLang recipe has not been followed ({', '.join(missing)}): run `make sglang-cpu`")


def environment(scratch: Path, threads: int = 0) -> dict[str, str]:
    """What a server finds: no hub, no proxy, no modules of ours, a folder of its own for temporary files."""
    omp = {
        "OMP_NUM_THREADS": str(threads or os.environ.get("OMP_NUM_THREADS") or 2),
        # Threads that wait by spinning starve each other where anything else runs: 1 token/s instead of 14, measured.
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
    }
    local = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    return {**offline(), **local, **omp, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"}


def free_port(attempts: int = 100) -> int:
    """A port of 127.0.0.1 that nobody listens on. Raises ServerError."""
    for port in random.Random().sample(PORTS, attempts):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise ServerError(f"none of {attempts} ports from {PORTS.start} to {PORTS.stop - 1} is free")


def parsed(body: bytes) -> Any:
    """JSON, or text."""
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
