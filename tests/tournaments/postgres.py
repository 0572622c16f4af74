"""A real PostgreSQL server for tests: started in a folder of its own, reached by a socket in it, stopped at the end."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["Server", "fresh", "postgres", "serving"]


class Server:
    """A running server; users come in without a password, `guarded` only with "open sesame"."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.programs = _programs()

    def url(self, schema: str = "arena", user: str = "tester", password: str = "") -> str:
        """Of a schema."""
        who = f"{user}:{password}" if password else user
        return f"postgresql://{who}@/postgres?host={self.folder}&schema={schema}"

    def control(self, *arguments: str) -> None:
        """pg_ctl, as a user who may."""
        log = ["-l", str(self.folder / "log")] * (arguments[0] == "start")
        self._run("pg_ctl", "-D", str(self.data), "-w", *log, *arguments)

    def make(self) -> None:
        """Files and users."""
        self._run("initdb", "-D", str(self.data), "-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
        rules = self.data / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\nlocal all all trust\n", encoding="utf-8")
        settings = [
            "listen_addresses = ''",
            f"unix_socket_directories = '{self.folder}'",
            "fsync = off",
            "max_connections = 60",
            "shared_buffers = 16MB",
        ]
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write("\n".join(settings) + "\n")
        self.control("start")
        self.sql("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'open sesame'")

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        """What the server answers to one statement."""
        import psycopg

        with psycopg.connect(host=str(self.folder), user="tester", dbname="postgres", autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:  # a server refuses to run as root
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=120)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")


def _programs() -> Path:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = debian[-1] if debian else shutil.which("initdb")
    if not found:
        pytest.fail("there is no PostgreSQL: `make test-postgres` installs Debian's")
    return Path(found).parent


@contextmanager
def serving() -> Iterator[Server]:
    """A server while the context lasts."""
    folder = Path(tempfile.mkdtemp(prefix="arena-pg-"))  # not pytest's folder: the path of a socket must be short
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = Server(folder)
        server.make()
        try:
            yield server
        finally:
            server.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server that the tests of this process share; each takes a schema of its own."""
    with serving() as server:
        yield server


@pytest.fixture
def fresh(postgres: Server) -> str:
    """The URL of an empty schema."""
    return postgres.url(f"t_{uuid.uuid4().hex}")
