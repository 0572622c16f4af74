"""What a tournament is: agents, games with their options, seed blocks and limits; read from TOML and checked."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from arena.agent import Agent
from arena.game import Game
from arena.referee import ILLEGAL, Referee
from arena.registry import AgentSpec, canonical, make_agent, make_game
from arena.tournaments.checks import check_terms, check_whole, known_keys, schedule_table, stop_table
from arena.tournaments.identity import game_terms, identities, identity
from arena.tournaments.terms import ConfigError, RoundRobin, Schedule, Stop

__all__ = ["AgentEntry", "ConfigError", "GameEntry", "Tournament", "dump", "load", "parse"]

Truncated = Literal["score", "drop"]
_MAX_SEED = (1 << 62) - 1


class GameEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One game of a tournament: an id, its options, and how many seed blocks of it."""

    id: str
    options: dict[str, Any] = {}
    blocks: int | None = None
    """None: as many as the tournament has."""

    @property
    def label(self) -> str:
        """The id, with the options that were given."""
        given = ", ".join(f"{key}={_plain(value)}" for key, value in sorted(self.options.items()))
        return f"{self.id} ({given})" if given else self.id

    @property
    def terms(self) -> dict[str, Any]:
        """All options, the defaults too: what a game's id is made of, however the entry was written."""
        return game_terms(self.id, self.options)

    @classmethod
    def of(cls, text: str) -> "GameEntry":
        """Read `ConnectFour-v0` or `ConnectFour-v0?columns=8&rows=7`."""
        spec = AgentSpec.parse(text)
        return cls(spec.name, dict(spec.options))


class AgentEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent of a tournament: its spec string and what tables call it."""

    spec: str
    name: str = ""
    """"" becomes the spec string."""
    options: dict[str, Any] = {}
    """More options of the spec, as a table; a checked entry has them in its spec."""
    concurrency: int | None = None
    """Games at once in which it sits; None: as many as there are."""

    @property
    def human(self) -> bool:
        """Somebody at the terminal."""
        return AgentSpec.parse(self.spec).name == "human"

    def make(self) -> Agent:
        """The agent, called by the entry's name."""
        agent = make_agent(self.spec)
        agent.name = self.name
        return agent


class Tournament(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who meets in what, how often and under which rules. `load` and `parse` give a checked one."""

    games: tuple[GameEntry, ...]
    agents: tuple[AgentEntry, ...]
    name: str = ""
    """The heading of its leaderboard."""
    seed: int = 0
    """The first block's; block b has `seed + b`."""
    blocks: int = 10
    """Seed blocks: one seed each, played in every rotation of the seats."""
    repetitions: int = 1
    """How often every game of a block is played."""
    concurrency: int = 32
    """Games at once."""
    workers: int = 0
    """Processes for blocking agents (searches); 0: one a core."""
    deadline: float | None = None
    """Seconds for one game; then it is void."""
    turn_seconds: float | None = None
    """Seconds for one answer; then a local agent has forfeited, a served one makes the game void."""
    max_turns: int | None = None
    """Plies; then the game is truncated."""
    truncated: Truncated = "score"
    """Truncated games score their returns, or are left out of the ratings ("drop")."""
    void_retries: int = 2
    """How often a void game is played again."""
    void_limit: float = 0.25
    """The share of void attempts at which the run gives up."""
    schedule: Schedule = RoundRobin()
    """Who meets whom."""
    stop: Stop = Stop()
    """When it ends before the schedule does."""
    anchors: dict[str, float] = {}
    """Elo of agents by name; the others are shown relative to them. {}: the mean of all is 1000."""
    endpoints: dict[str, int] = {}
    """Games at once that ask a server, by host and port ("127.0.0.1:30000"), whichever agents do."""
    stalled: float | None = None
    """Seconds without any finished turn until the run gives up as stuck; None: it waits."""
    store: str = ""
    """URL of a PostgreSQL database to keep the games in; "": an SQLite file in the run folder."""
    referee: Referee = Referee()

    def settings(self) -> dict[str, Any]:
        """What decides how a single game goes, beside its seats and seed: part of every game's id."""
        return {
            "referee": msgspec.to_builtins(self.referee),
            "max_turns": self.max_turns,
            "turn_seconds": self.turn_seconds,
        }

    @property
    def people(self) -> bool:
        """Whether somebody at the terminal plays."""
        return any(entry.human for entry in self.agents)

    def blocks_of(self, entry: GameEntry) -> int:
        """How many seed blocks of this game."""
        return self.blocks if entry.blocks is None else entry.blocks

    def identities(self) -> list[str]:
        """What makes each agent the player it is."""
        return identities([entry.spec for entry in self.agents])


_BLOCKS = (1, 1_000_000_000)
_WHOLE = {
    "blocks": _BLOCKS,
    "repetitions": (1, 1_000_000),
    "concurrency": (1, 100_000),
    "workers": (0, 1_000),
    "void_retries": (0, 1_000),
    "max_turns": (1, 1_000_000_000),
    "seed": (0, _MAX_SEED),
}
_SECONDS = ("deadline", "turn_seconds", "stalled")
_LONGEST = 1e8  # seconds


def load(path: str | Path) -> Tournament:
    """The tournament of a TOML file. Raises ConfigError."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    try:
        return parse(data)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse(data: Mapping[str, Any]) -> Tournament:
    """The tournament of a mapping as a TOML file gives it. Games and agents may be plain strings.

    Raises ConfigError for an unknown key, id, option, agent or value; it names what is allowed and the nearest.
    """
    try:
        return _checked(_converted(data))
    except ConfigError:
        raise
    except msgspec.ValidationError as error:
        raise ConfigError(_readable(str(error))) from error
    except (ValueError, ImportError) as error:
        raise ConfigError(str(error)) from error


def _converted(data: Mapping[str, Any]) -> Tournament:
    known_keys("", data, Tournament.__struct_fields__)
    for key in ("games", "agents"):
        example = f"write {key} = [{_EXAMPLE[key]}]"
        if not data.get(key):
            raise ConfigError(f"{key} is missing: {example}")
        if not isinstance(data[key], list | tuple):
            raise ConfigError(f"{key} must be a list, got {str(data[key])[:60]!r}: {example}")
    known_keys("referee.", data.get("referee", {}), Referee.__struct_fields__)
    games = [_entry(f"games[{n}].", item, GameEntry) for n, item in enumerate(data["games"])]
    agents = [_entry(f"agents[{n}].", item, AgentEntry) for n, item in enumerate(data["agents"])]
    tables = {"schedule": schedule_table(data), "stop": stop_table(data)}
    terms = {key: table for key, table in tables.items() if table != _USUAL[key]}  # not told: they are not written
    others = {key: value for key, value in data.items() if key not in tables}
    return msgspec.convert({**others, **terms, "games": games, "agents": agents}, Tournament)


_CHOICES = {
    "truncated": get_args(Truncated),
    "referee.illegal": ILLEGAL,
    "schedule.seeding": ("listed", "rated"),
    "stop.sprt.model": ("logistic", "normalized"),
}
_USUAL: dict[str, dict[str, Any]] = {"schedule": {"kind": "round-robin"}, "stop": {}}
_EXAMPLE = {"games": '"TicTacToe-v0"', "agents": '"random", "first"'}


def _entry(where: str, item: object, struct: type[GameEntry] | type[AgentEntry]) -> object:
    """A plain string as the table it stands for."""
    if isinstance(item, str):
        return msgspec.to_builtins(GameEntry.of(item)) if struct is GameEntry else {"spec": item}
    known_keys(where, item, struct.__struct_fields__)
    return item


def _readable(error: str) -> str:
    """msgspec's message with the place first: `blocks: expected int, got str`; of a choice, what is allowed."""
    what, _, where = error.partition(" - at `$.")
    place = where.rstrip("`") or "config"
    if place in _CHOICES:
        return f"{place}={what.rpartition(' ')[2]}: allowed are {', '.join(_CHOICES[place])}"
    return f"{place}: {what[0].lower()}{what[1:].replace('`', '')}"


def _checked(raw: Tournament) -> Tournament:
    _check_numbers(raw)
    _check_text("name", raw.name)
    for agent in raw.agents:
        _check_text("agent", agent.spec)
        _check_text("agent name", agent.name)
    games = tuple([msgspec.structs.replace(entry, id=canonical(entry.id)) for entry in raw.games])
    agents = tuple([_named(entry) for entry in raw.agents])
    seats = [_seats(entry, make_game(entry.id, 0, entry.options), len(agents)) for entry in games]
    _no_twins("game", [(entry.label, json.dumps([entry.id, entry.terms])) for entry in games])
    _no_twins("agent", [_player(entry) for entry in agents])
    for number, entry in enumerate(games):
        if entry.blocks is not None:
            check_whole(f"games[{number}].blocks", entry.blocks, *_BLOCKS)
    for number, agent in enumerate(agents):
        if agent.concurrency is not None:
            check_whole(f"agents[{number}].concurrency", agent.concurrency, *_WHOLE["concurrency"])
    check_terms(raw, [agent.name for agent in agents], list(zip([entry.id for entry in games], seats, strict=True)))
    return msgspec.structs.replace(raw, games=games, agents=agents)


def _check_numbers(raw: Tournament) -> None:
    for key, (least, most) in _WHOLE.items():
        if (value := getattr(raw, key)) is not None:
            check_whole(key, value, least, most)
    for key in _SECONDS:
        seconds = getattr(raw, key)
        if seconds is not None and not 0 < seconds <= _LONGEST:
            raise ConfigError(f"{key}={seconds}: allowed are seconds above 0, up to {_LONGEST:.0f}")
    if not 0 < raw.void_limit <= 1:
        raise ConfigError(f"void_limit={raw.void_limit}: allowed are shares above 0, up to 1")


def _check_text(what: str, text: str) -> None:
    """What is called so must be stored and shown: half of a surrogate pair is no character."""
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise ConfigError(f"{what} {text[:60]!r} has a lone surrogate, which is no text")


def _named(entry: AgentEntry) -> AgentEntry:
    spec = _whole(entry)
    return AgentEntry(spec, entry.name.strip() or str(AgentSpec.parse(spec)), concurrency=entry.concurrency)


def _whole(entry: AgentEntry) -> str:
    """The spec with the options of the table."""
    if not entry.options:
        return entry.spec
    parsed = AgentSpec.parse(entry.spec)
    if twice := sorted(dict(parsed.options).keys() & entry.options.keys()):
        raise ConfigError(f"agent {entry.spec!r}: {', '.join(twice)} stands in the spec and among its options")
    return str(AgentSpec.parse(str(parsed._replace(options=(*parsed.options, *entry.options.items())))))


def _player(entry: AgentEntry) -> tuple[str, str]:
    """Name and key: one policy may play twice (a null test), but then it has a name that says so."""
    player = identity(entry.spec)
    return entry.name, player if entry.name == str(AgentSpec.parse(entry.spec)) else f"{player} as {entry.name}"


def _no_twins(what: str, labelled: Sequence[tuple[str, str]]) -> None:
    """(label, key): neither may be there twice."""
    seen: dict[str, str] = {}
    for label, key in labelled:
        if label in seen.values():
            raise ConfigError(f"{what} {label!r} appears twice; leave one out, or give it a name of its own")
        if key in seen:
            raise ConfigError(f"{what} {label!r} is the same {what} as {seen[key]!r}; leave one out")
        seen[key] = label


def _seats(entry: GameEntry, game: Game, agents: int) -> int:
    """How many seats agents take."""
    if (seats := game.players - len(game.house)) > 1 and agents < 2:
        raise ConfigError(f"{entry.id} needs at least 2 agents, got {agents}")
    return seats


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def dump(tournament: Tournament) -> str:
    """The tournament as TOML that `load` reads back."""
    data: dict[str, Any] = msgspec.to_builtins(tournament)
    games, agents, referee = data.pop("games"), data.pop("agents"), data.pop("referee", {})
    lines = [f"{key} = {_toml(value)}" for key, value in data.items() if value is not None]
    tables = [("[referee]", referee)] * bool(referee)
    tables += [("[[games]]", game) for game in games] + [("[[agents]]", agent) for agent in agents]
    for head, table in tables:
        lines += ["", head, *[f"{key} = {_toml(value)}" for key, value in table.items() if value is not None]]
    return "\n".join(lines).lstrip("\n") + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
