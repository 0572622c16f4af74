"""Run a command as long as the process that asked for it lives; then kill all that the command started.

`python -I launch.py PARENT SCRATCH COMMAND...`: PARENT is the id of the process that asks, SCRATCH a folder that is
removed if it died without a word. Standard library only, and nothing of Arena: whatever happens to the asker (kill -9
included), this small process is still there to clean up. If it is itself killed, Linux kills the command.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType

LOOK = 0.1
"""Seconds between two looks."""
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """In the child, before it becomes the command: be killed when the launcher ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def asked_to_stop(number: int, frame: FrameType | None) -> None:
    """Leave through `finally`."""
    raise SystemExit(128 + number)


def watch(parent: int, command: list[str]) -> int:
    """Run until the command ends, the parent is gone, or SIGTERM comes. Returns the command's status."""
    child = subprocess.Popen(command, start_new_session=True, preexec_fn=die_with_parent)
    try:
        while child.poll() is None and os.getppid() == parent:
            time.sleep(LOOK)
    finally:
        with suppress(ProcessLookupError):  # all of it has ended by itself
            os.killpg(child.pid, signal.SIGKILL)
    return child.wait()


def main(parent: int, scratch: str, command: list[str]) -> int:
    """Watch the command; clean up for a parent that cannot."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, asked_to_stop)
    try:
        return watch(parent, command)
    finally:
        if os.getppid() != parent:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
