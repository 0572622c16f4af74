"""`make sglang-cpu`: bring up the real SGLang on this machine's CPU, from nothing.

`python3.11 -m tests.sglang.up [--prepare] [--port N] [--run COMMAND] [SGLang's own flags]`: the environment, the model,
then the server in the foreground until Ctrl-C, or until a command that asks it has ended. Standard library only.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.sglang.recipe import Recipe, RecipeError, check_python
from tests.sglang.server import Server, ServerError


def options(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and the flags that are SGLang's."""
    where = Recipe.from_environment()
    parser = argparse.ArgumentParser(
        prog="make sglang-cpu", description="Other flags go to SGLang.", allow_abbrev=False
    )
    parser.add_argument("--venv", type=Path, default=where.venv, help="the environment (%(default)s)")
    parser.add_argument("--model", type=Path, default=where.model, help="the model's folder (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="where to listen (by default, a free port)")
    parser.add_argument("--run", metavar="COMMAND", help="run this once the server is ready, {url} being its address")
    parser.add_argument("--prepare", action="store_true", help="make what is missing, and start nothing")
    return parser.parse_known_args(arguments)


def serve(server: Server, command: str | None) -> int:
    """Run until Ctrl-C, until the command ends (its status), or the server by itself (1). Raises ServerError."""
    print("server: ...", flush=True)
    begin = time.monotonic()
    with server:
        print(f"server: ready in {time.monotonic() - begin:.0f} s, log in {server.log}, Ctrl-C stops it", flush=True)
        print(server.url, flush=True)
        if command:
            return followed(shlex.split(command.replace("{url}", server.url)))
        while server.status() is None:
            time.sleep(0.5)
        print(f"the server ended with status {server.status()}:\n{server.tail()}", file=sys.stderr)
        return 1


def followed(command: Sequence[str]) -> int:
    """The status of a command; a Ctrl-C is the command's to act on, which may have work to end with the server."""
    with subprocess.Popen(command) as process:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return process.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def main(arguments: Sequence[str]) -> int:
    """Prepare, then serve. Returns the exit status."""
    chosen, flags = options(arguments)
    recipe = Recipe(chosen.venv.absolute(), chosen.model.absolute())
    try:
        check_python()
        recipe.prepare()
        log = recipe.model.parent / f"server-{os.getpid()}.log"
        return 0 if chosen.prepare else serve(Server(*flags, port=chosen.port, log=log, recipe=recipe), chosen.run)
    except (RecipeError, ServerError) as error:
        print(f"sglang-cpu: {error}", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f"sglang-cpu: failed with status {error.returncode}: {' '.join(error.cmd)}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return 1


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started us with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    raise SystemExit(main(sys.argv[1:]))
