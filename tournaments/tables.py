"""The tables of a store, in SQLAlchemy's portable terms. A change of any column is a new `SCHEMA` and a migration."""

import sqlalchemy as sa

from arena.tournaments.conduct import Conduct

__all__ = [
    "SCHEMA",
    "agents",
    "blocks",
    "config",
    "entries",
    "episodes",
    "fill",
    "games",
    "latencies",
    "leases",
    "meta",
    "patterns",
    "schema",
    "seatings",
    "totals",
    "voids",
]

SCHEMA = 4  # 1 was never released

meta = sa.MetaData()
schema = sa.Table("arena_schema", meta, sa.Column("version", sa.Integer, nullable=False))
config = sa.Table(
    "tournament",
    meta,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
entries = sa.Table(
    "entries",
    meta,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("env", sa.Text, nullable=False),
    sa.Column("options", sa.Text, nullable=False),  # JSON: all of them, those not given with their defaults
    sa.Column("written", sa.Text, nullable=False),  # JSON: those that were given
    sa.Column("players", sa.Integer, nullable=False),
    sa.Column("seats", sa.Text, nullable=False),  # JSON: the seats that agents take
    sa.UniqueConstraint("env", "options"),
)
agents = sa.Table(
    "agents",
    meta,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("identity", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
)
games = sa.Table(
    "games",
    meta,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("block", sa.Text, nullable=False),
    sa.Column("entry", sa.Integer, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("rotation", sa.Integer, nullable=False),
    sa.Column("repetition", sa.Integer, nullable=False),
    sa.Column("agents", sa.Text, nullable=False),  # JSON: ids of the agents in `entries.seats`, in order
    sa.Column("returns", sa.Text, nullable=False),  # JSON: of those seats
    sa.Column("forfeits", sa.Text, nullable=False),  # JSON: positions in `agents`
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("plies", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),  # last link of the hash chain: equal play, equal digest
    sa.Column("conduct", sa.Text, nullable=False),  # JSON: `Conduct.numbers` of those seats
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("ended", sa.Float, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False, index=True),  # later games have greater ones: `Database.marker`
    sa.Column("roles", sa.Text, nullable=False),  # JSON: of those seats; "[]": they have none
    sa.Column("teams", sa.Text, nullable=False),  # JSON: of those seats; "[]": each for itself
    sa.Index("games_alike", "block", "digest"),
)
episodes = sa.Table(
    "episodes",
    meta,
    sa.Column("game", sa.Text, sa.ForeignKey("games.id"), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),  # zstd of the episode's JSON
)
voids = sa.Table(
    "voids",
    meta,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("game", sa.Text, nullable=False, index=True),
    sa.Column("entry", sa.Integer, nullable=False),
    sa.Column("agents", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("ended", sa.Float, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
leases = sa.Table(
    "leases",
    meta,
    sa.Column("game", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("taken", sa.Float, nullable=False),  # seconds since the epoch, by the database's clock
    sa.Column("expires", sa.Float, nullable=False),
)


blocks = sa.Table(  # of two-player games; the others are read singly
    "blocks",
    meta,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("entry", sa.Integer, nullable=False),
    sa.Column("games", sa.Integer, nullable=False),  # finished
    sa.Column("pattern", sa.Text, nullable=False),  # JSON: (first, second, outcome, how often), sorted, that count
    sa.Column("counted", sa.Boolean, nullable=False),  # the block is whole, and its pattern in `patterns`
    sa.Column("ended", sa.Float, nullable=False),  # when the last game that counts did
)
patterns = sa.Table(  # how many whole blocks of an entry came out so
    "patterns",
    meta,
    sa.Column("entry", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("pattern", sa.Text, primary_key=True),
    sa.Column("worker", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("blocks", sa.Integer, nullable=False),
)
seatings = sa.Table(  # games that count of one agent against another
    "seatings",
    meta,
    sa.Column("entry", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("second", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("games", sa.Integer, nullable=False),
    sa.Column("fresh", sa.Integer, nullable=False),  # of them, not played before in their block, move by move
    sa.Column("sound", sa.Integer, nullable=False),  # of them, without a forfeit; their first and last digest:
    sa.Column("low", sa.Text, nullable=False),
    sa.Column("high", sa.Text, nullable=False),
)
totals = sa.Table(  # by agent and outcome; rows of several workers add up, so that none waits for another
    "totals",
    meta,
    sa.Column("entry", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("agent", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("outcome", sa.Text, primary_key=True),  # of the episode, void attempts too
    sa.Column("worker", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("seats", sa.Integer, nullable=False),  # taken in games
    sa.Column("games", sa.Integer, nullable=False),
    sa.Column("forfeits", sa.Integer, nullable=False),
    *[sa.Column(name, sa.Float, nullable=False) for name in Conduct.__struct_fields__],
)
latencies = sa.Table(  # answers by seconds: `readings.Latency`
    "latencies",
    meta,
    sa.Column("entry", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("agent", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("outcome", sa.Text, primary_key=True),
    sa.Column("worker", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("bin", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("answers", sa.Integer, nullable=False),
)


def fill(connection: sa.Connection, arena: str) -> None:
    """Make all tables; `arena`: the version that does."""
    meta.create_all(connection)
    connection.execute(sa.insert(schema).values(version=SCHEMA))
    connection.execute(sa.insert(config).values(key="arena", value=arena))
