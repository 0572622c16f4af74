"""What the tests of the command line share."""

from click.testing import CliRunner, Result

from arena.cli.main import cli
from arena.tournaments.store import Store

PAIR = ["--agent", "random", "--agent", "first"]
SMALL = ["--game", "TicTacToe", *PAIR, "--blocks", "2"]


def arena(*args: str) -> Result:
    return CliRunner().invoke(cli, args)


def run(*args: str) -> Result:
    return arena("tournament", "run", *args)


def finished(folder: str) -> int:
    with Store.open(folder) as store:
        return len(store.finished())
