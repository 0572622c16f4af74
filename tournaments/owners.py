"""Who holds leases: names of processes, and whether one on this machine has ended."""

import os
import socket
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

__all__ = ["gone", "new_owner"]

_HERE: set[str] = set()
"""Names given to runs of this process."""


def new_owner() -> str:
    """A name for this run: machine, boot and process namespace, process, and a token of its own."""
    owner = f"{_here()}/{os.getpid()}/{token_hex(4)}"
    _HERE.add(owner)
    return owner


def gone(owner: str, mine: str) -> bool:
    """Whether the owner's process has ended for sure: it ran here, and no process has its number now.

    Then nobody need wait until its leases expire. What is on another machine, or in another container, is not known.
    """
    where, _, rest = owner.rpartition("/")[0].rpartition("/")
    if owner == mine or where != _here() or not rest.isdecimal() or os.name != "posix":
        return False
    if int(rest) == os.getpid():  # a process before this one had our number; or another run in this process
        return owner not in _HERE
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return _zombie(int(rest))


def _here() -> str:
    facts = [socket.gethostname()]
    with suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8])
    with suppress(OSError):
        facts.append(Path("/proc/self/ns/pid").readlink().name.strip("pid:[]"))
    return "/".join(facts)


def _zombie(pid: int) -> bool:
    """Killed, and not yet waited for by who started it."""
    with suppress(OSError):
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z"
        )
    return False
