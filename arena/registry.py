"""Names of games and agents: one table of strings feeds Gymnasium, PettingZoo, the command line, docs and tests.

Nothing is imported until it is asked for. Other packages add to the tables through the entry-point groups
`arena.games` and `arena.agents` (name = id or agent name, value = "module:Class"), found when first needed.
"""

import difflib
import inspect
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from random import Random
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin
from urllib.parse import parse_qsl, quote

from arena.agent import Agent
from arena.game import Game

__all__ = [
    "AGENTS",
    "GAMES",
    "AgentSpec",
    "agent_call",
    "agent_names",
    "canonical",
    "check_type",
    "frozen",
    "game_ids",
    "id_of",
    "load",
    "load_agent",
    "make_agent",
    "make_game",
    "options_of",
    "parameters",
    "parse_value",
    "register",
    "register_agent",
    "unknown",
]

GAMES: dict[str, str] = {
    "Arithmetic-v0": "arena.games.questions.arithmetic:Arithmetic",
    "CalculatorTask-v0": "arena.tools.calculator:CalculatorTask",
    "Chess-v0": "arena.games.board.chess:Chess",
    "ConnectFour-v0": "arena.games.board.connectfour:ConnectFour",
    "Countdown-v0": "arena.games.puzzles.countdown:Countdown",
    "IteratedPrisonersDilemma-v0": "arena.games.economy.prisoners:IteratedPrisonersDilemma",
    "KuhnPoker-v0": "arena.games.cards.kuhn:KuhnPoker",
    "LeducPoker-v0": "arena.games.cards.leduc:LeducPoker",
    "LiarsDice-v0": "arena.games.dice.liarsdice:LiarsDice",
    "Negotiation-v0": "arena.games.economy.negotiation:Negotiation",
    "RockPaperScissors-v0": "arena.games.economy.rockpaperscissors:RockPaperScissors",
    "SecretMafia-v0": "arena.games.social.mafia:SecretMafia",
    "TicTacToe-v0": "arena.games.board.tictactoe:TicTacToe",
    "Wordle-v0": "arena.games.words.wordle:Wordle",
}
AGENTS: dict[str, str] = {
    "engine": "arena.adapters.models.agents:EngineAgent",
    "first": "arena.agents.simple:FirstAgent",
    "human": "arena.agents.human:HumanAgent",
    "local": "arena.adapters.models.agents:LocalAgent",
    "mcts": "arena.agents.mcts:MCTSAgent",
    "minimax": "arena.agents.minimax:MinimaxAgent",
    "openai": "arena.adapters.models.agents:OpenAIAgent",
    "random": "arena.agents.simple:RandomAgent",
    "sb3": "arena.adapters.sb3:SB3Agent",
    "scripted": "arena.agents.simple:ScriptedAgent",
    "sglang": "arena.adapters.models.agents:SGLangAgent",
}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*-v[0-9]+\Z")
# Words that end the name of an option whose value is a secret; `max_tokens` and `tokenizer` are none.
_SECRET = re.compile(
    r"(?:.*[_-])?(?:(?:api)?key|token|pass(?:word|wd|phrase)?|pw|secret|credentials?|auth(?:orization)?|bearer|headers?)",
    re.IGNORECASE,
)
_EXTRAS = {"sb3": ("arena.adapters.sb3",)}
"""Modules that exist for an extra of this package."""
_LONGEST = 1000  # characters of an option
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USER = re.compile(r"(?:^|/)[^/@:]*:[^/@]*@")  # user:password@host


class AgentSpec(NamedTuple):
    """An agent named by a string: `name[:target][?key=value&...]`."""

    name: str
    target: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, spec: str) -> "AgentSpec":
        """Read a spec string; values are JSON where they parse as JSON, else text.

        >>> AgentSpec.parse("mcts?simulations=100")
        AgentSpec(name='mcts', target='', options=(('simulations', 100),))

        Raises ValueError for a spec that carries a key or password: name an environment variable instead.
        """
        head, _, query = spec.strip().partition("?")
        name, _, target = head.partition(":")
        if not name:
            raise ValueError("agent spec has no name; write name[:target][?key=value&...]")
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
        for key, value in pairs:
            if _SECRET.fullmatch(key):
                raise ValueError(f"agent spec carries {key!r}: it belongs in the environment; write {key}_env=NAME")
            if key.endswith("_env") and not _VARIABLE.fullmatch(value):
                raise ValueError(f"{key} must be the name of an environment variable")
        if _USER.search(target):
            raise ValueError("agent spec carries a password in its address; put it in the environment")
        return cls(name, target, tuple([(key, parse_value(text)) for key, text in pairs]))

    def __str__(self) -> str:
        query = "&".join(f"{key}={quote(_plain(value), safe=',:/')}" for key, value in self.options)
        return self.name + (f":{self.target}" if self.target else "") + (f"?{query}" if query else "")


def parse_value(text: str) -> Any:
    """An option's value as text: JSON where it parses as JSON (numbers, true, lists), else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _plain(value: Any) -> str:
    """The text that `parse_value` reads as this value."""
    return value if isinstance(value, str) and parse_value(value) == value else json.dumps(value)


def unknown(kind: str, name: object, allowed: Iterable[str]) -> ValueError:
    """The error for a name nobody knows: it says the nearest one and all that are allowed."""
    names = sorted(allowed)
    near = difflib.get_close_matches(str(name), names, 1, 0.5)
    folded = [n for n in names if n.lower() == str(name).lower()]
    hint = f" Did you mean {(folded or near)[0]!r}?" if folded or near else ""
    return ValueError(f"unknown {kind} {str(name)[:80]!r}.{hint} Allowed: {', '.join(names) or 'none'}")


@cache
def _discover(group: str) -> dict[str, str]:
    """Entries of other installed packages; a malformed id is left out, with a warning."""
    found = {point.name: point.value for point in entry_points(group=group)}
    odd = [name for name in found if group == "arena.games" and not _ID.fullmatch(name)]
    for name in odd:
        warnings.warn(f"entry point {name!r} = {found.pop(name)!r}: a game id is Name-vN, such as Nim-v0", stacklevel=2)
    return found


def game_ids() -> tuple[str, ...]:
    """Every id, sorted: Arena's own, those of other installed packages, those registered at run time."""
    return tuple(sorted({*GAMES, *_discover("arena.games")}))


def agent_names() -> tuple[str, ...]:
    """Every agent name, sorted."""
    return tuple(sorted({*AGENTS, *_discover("arena.agents")}))


def canonical(game_id: str) -> str:
    """The full id for `arena/Chess-v0`, `Chess-v0` or `Chess` (the newest version). Raises ValueError."""
    name = str(game_id).removeprefix("arena/")
    if name in GAMES:
        return name
    known = game_ids()
    versions = [known_id for known_id in known if known_id.rpartition("-v")[0] == name]
    if name not in known and not versions:
        raise unknown("game", name, known)
    return name if name in known else max(versions, key=lambda known_id: int(known_id.rpartition("-v")[2]))


def id_of(game: str | type[Game]) -> str:
    """The full id of a game: of a registered class its id, of another one its bare name."""
    if isinstance(game, str):
        return canonical(game)
    target = f"{game.__module__}:{game.__qualname__}"
    return next((game_id for game_id, known in GAMES.items() if known == target), game.__name__)


def load(game_id: str) -> type[Game]:
    """The class of a game, imported now. Raises ValueError for an id nobody registered, or a broken package."""
    name = canonical(game_id)
    found = _import(f"game {name!r}", GAMES.get(name) or _discover("arena.games")[name])
    if not (isinstance(found, type) and issubclass(found, Game)):
        raise ValueError(f"game {name!r} is registered as {found!r:.200}, which is not a subclass of arena.game.Game")
    return found


@cache
def _import(what: str, target: str) -> Any:
    """The object of a table's entry. Whatever its module raises is a ValueError that says whose it is."""
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        extra = next((extra for extra, modules in _EXTRAS.items() if module in modules), "")
        hint = f": pip install 'gymnasium-arena[{extra}]'" if extra else f" ({target})"
        raise ValueError(f"{what} needs {error.name}{hint}") from error
    except Exception as error:  # another's package may fail in any way at import: it is told as whose it is
        raise ValueError(f"{what} ({target}) cannot be loaded: {type(error).__name__}: {error!s:.200}") from error


def register(game_id: str, target: str) -> None:
    """Add a game: an id such as `Nim-v0` and its "module:Class"; it is known to Gymnasium and PettingZoo at once."""
    if not _ID.match(game_id):
        raise ValueError(f"game id {game_id!r}: write Name-vN, such as Nim-v0")
    _add(GAMES, "game", game_id, target)
    from arena import standards

    standards.register_game(game_id)


def register_agent(name: str, target: str) -> None:
    """Add an agent: a name for spec strings and its "module:Class"."""
    _add(AGENTS, "agent", name, target)


def _add(table: dict[str, str], kind: str, name: str, target: str) -> None:
    if not re.fullmatch(r"[\w.]+:\w+", target):
        raise ValueError(f"{kind} {name!r}: target {target!r} must be 'module:Class'")
    if table.get(name, target) != target:
        raise ValueError(f"{kind} {name!r} is taken by {table[name]}; a change of play needs a new version")
    table[name] = target


@cache
def options_of(game: type[Game]) -> dict[str, inspect.Parameter]:
    """The options of a game: what its `initial` takes after the generator, by name."""
    return parameters(game.initial, skip=1)


def parameters(function: Callable[..., Any], skip: int = 0) -> dict[str, inspect.Parameter]:
    """What a function takes by name, but for the first `skip`."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    taken = list(inspect.signature(function).parameters.values())[skip:]
    return {p.name: p for p in taken if p.kind in named}


def frozen(value: Any) -> Any:
    """The value with lists as tuples: options that came through JSON make the same, hashable game."""
    return tuple([frozen(v) for v in value]) if isinstance(value, list | tuple) else value


def make_game(game: str | type[Game], seed: int | Random = 0, options: Mapping[str, Any] | None = None) -> Game:
    """The first position of a game. The same id, seed and options give the same deal in every face.

    Raises ValueError for an unknown id, an unknown option or a value the game does not allow.
    """
    cls = load(game) if isinstance(game, str) else game
    given = {key: frozen(value) for key, value in (options or {}).items()}
    allowed = options_of(cls)
    for key, value in given.items():
        if key not in allowed:
            raise unknown(f"option of {cls.__name__}", key, allowed)
        check_type(f"option {key} of {cls.__name__}", value, allowed[key])
    return cls.initial(seed if isinstance(seed, Random) else Random(seed), **given)


def check_type(what: str, value: Any, parameter: inspect.Parameter) -> None:
    """Raise ValueError unless the value is of a type that annotation or default names; numbers are finite."""
    kinds = _kinds(parameter)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = (number and float in kinds) or (
        isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds)
    )
    if kinds and not fits:
        like = "" if parameter.default in (None, inspect.Parameter.empty) else f" like {parameter.default!r:.60}"
        names = " or ".join(["None" if kind is type(None) else kind.__name__ for kind in kinds])
        raise ValueError(f"{what} must be {names}{like}, got {value!r:.60}")
    if number and not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number, got {value!r}")
    if isinstance(value, str) and len(value) > _LONGEST:
        raise ValueError(f"{what} must have at most {_LONGEST} characters, got {len(value)}")


def _kinds(parameter: inspect.Parameter) -> tuple[type, ...]:
    """The types an option may have; none: any."""
    annotation, default = parameter.annotation, parameter.default
    if annotation in (Any, object):
        return ()
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = tuple([get_origin(member) or member for member in members])
    if annotation is not inspect.Parameter.empty and all(isinstance(kind, type) for kind in kinds):
        return kinds
    return () if default is None or default is inspect.Parameter.empty else (type(default),)


def load_agent(name: str) -> type[Agent]:
    """The class of an agent, imported now.

    Raises ValueError for a name nobody registered, or where its package is missing or broken.
    """
    if name not in AGENTS and name not in _discover("arena.agents"):
        if name in ("http", "https"):
            raise ValueError("an address alone is no agent: write sglang:http://... or openai:https://...")
        raise unknown("agent", name, agent_names())
    found = _import(f"agent {name!r}", AGENTS.get(name) or _discover("arena.agents")[name])
    if not (isinstance(found, type) and issubclass(found, Agent)):
        raise ValueError(
            f"agent {name!r} is registered as {found!r:.200}, which is not a subclass of arena.agent.Agent"
        )
    return found


def agent_call(spec: str) -> tuple[type[Agent], dict[str, Any]]:
    """The class that a spec names and the checked arguments for it, `target` among them; nothing is made yet.

    Raises ValueError for an unknown name, an unknown or missing option or a value of another type.
    """
    if not isinstance(spec, str):
        raise ValueError(f"an agent is named by a spec string or is an Agent, got {type(spec).__name__}")
    parsed = AgentSpec.parse(spec)
    cls = load_agent(parsed.name)
    options = dict(parsed.options)
    allowed = parameters(cls)
    if parsed.target:
        if "target" not in allowed:
            raise ValueError(f"agent {parsed.name!r} takes no target (got {parsed.target!r})")
        options["target"] = parsed.target
    for key, value in options.items():
        if key not in allowed or key == "name":
            raise unknown(f"option of agent {parsed.name}", key, allowed.keys() - {"name", "target"})
        check_type(f"option {key} of agent {parsed.name}", value, allowed[key])
    for key, parameter in allowed.items():
        if parameter.default is inspect.Parameter.empty and key not in options:
            form = f"{parsed.name}:{key.upper()}" if key == "target" else f"{parsed.name}?{key}=..."
            raise ValueError(f"agent {parsed.name!r} needs a {key}: write {form}")
    return cls, options


def make_agent(spec: str | Agent) -> Agent:
    """The agent a spec string names, such as `random`, `mcts?simulations=200`; an agent comes back as it is.

    Raises ValueError for an unknown name, an unknown option or a value the agent does not allow.
    """
    if isinstance(spec, Agent):
        return spec
    cls, options = agent_call(spec)
    agent = cls(**options)
    agent.name = str(AgentSpec.parse(spec))
    return agent
