"""The gallery: one page per game, made from the registry, so that no page can say what the code does not.

`mkdocs.yml` names this file as a hook: the pages exist in the built site only, not in the repository.
"""

import inspect
import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from arena.cli.catalogue import meanings, summary, type_of
from arena.game import Game
from arena.registry import game_ids, load, make_game, options_of
from arena.text import transcript

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

CHANGELOG = Path(__file__).parent.parent / "CHANGELOG.md"
SEED = 0
SHOWN_TURNS = 2
SHOWN_ACTIONS = 12


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Hook of MkDocs: add the generated pages."""
    from mkdocs.structure.files import File

    for path, text in pages(CHANGELOG.read_text(encoding="utf-8")).items():
        files.append(File.generated(config, path, content=text))
    return files


def pages(changelog: str) -> dict[str, str]:
    """The Markdown of every page by its path below `docs/`."""
    return {"games/index.md": index()} | {f"games/{i}.md": page(i, changelog) for i in game_ids()}


def index() -> str:
    """A table of all games."""
    return "\n".join(["# Games", "", "| id | players | what it is |", "|---|---|---|", *map(_row, game_ids()), ""])


def _row(game_id: str) -> str:
    """Three columns, so that a phone has room for them."""
    cls = load(game_id)
    seats = _seats(cls).partition(" ")[0] + " or more" * ("players" in options_of(cls))
    return f"| [{_breakable(game_id)}]({game_id}.md) | {seats} | {_cell(summary(cls))}<br><small>{_tags(cls)}</small> |"


def page(game_id: str, changelog: str) -> str:
    """One game: facts, options, rules, a position and the history of its versions."""
    cls, game = load(game_id), make_game(game_id, SEED)
    parts = [
        f"# {game_id}",
        summary(cls),
        *_sources(cls),
        _facts(game_id, game),
        "## Options",
        _options(cls),
        "## Rules, as player 0 is told them",
        fenced(game.rules(0)),
        "## A position",
        *_position(game),
        "## Versions",
        history(game_id, changelog),
    ]
    return "\n\n".join(parts) + "\n"


def history(game_id: str, changelog: str) -> str:
    """What the changelog says of each version of this game, the newest first."""
    family, _, newest = game_id.rpartition("-v")
    ids = [f"{family}-v{n}" for n in range(int(newest), -1, -1)]
    lines = [line.strip() for line in changelog.splitlines()]
    said = {i: [line.partition(": ")[2] for line in lines if line.startswith(f"- {i}: ")] for i in ids}
    return "\n".join(f"- **{i}** {'; '.join(said[i]) or 'as described here'}" for i in ids)


def fenced(text: str) -> str:
    """The text as a code block that it cannot end itself."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}text\n{text}\n{ticks}"


def _facts(game_id: str, game: Game) -> str:
    cls = type(game)
    low, high = game.reward_range()
    table, turns = game.action_table(), game.max_turns()
    facts = {
        "Players": _seats(cls),
        "Tags": _tags(cls),
        "Information": "perfect" if cls.perfect_information else "hidden, or moves made at once",
        "Zero-sum": "yes" if cls.zero_sum else "no",
        "Return of a seat": f"{low:g} to {high:g}",
        "Actions": "open text" if table is None else f"{len(table)} (numeric face: yes)",
        "Turns at most": "unbounded" if turns is None else str(turns),
        "Gymnasium": f'`gym.make("arena/{game_id}")`',
    }
    return "\n".join(["| with default options | |", "|---|---|", *(f"| {k} | {v} |" for k, v in facts.items())])


def _sources(cls: type[Game]) -> list[str]:
    """The paragraphs of the module's docstring that say where the rules come from."""
    about = inspect.getdoc(inspect.getmodule(cls)) or ""
    return [part for part in about.split("\n\n") if part.startswith(("Rules", "Payoffs"))]


def _options(cls: type[Game]) -> str:
    means = meanings(cls)
    rows = [
        f"| `{p.name}` | `{_cell(type_of(p))}` | `{_cell(repr(p.default))}` | {_cell(means.get(p.name, ''))} |"
        for p in options_of(cls).values()
    ]
    return "\n".join(["| option | type | default | meaning |", "|---|---|---|---|", *rows]) if rows else "None."


def _position(game: Game) -> tuple[str, ...]:
    """A few random turns into the game: what the seat to act has before it, and what it may do."""
    rng = Random(SEED)
    for _ in range(SHOWN_TURNS):
        after = game.apply({p: game.sample_action(p, rng) for p in game.to_act()})
        if not after.to_act():
            break
        game = after
    player = game.to_act()[0]
    legal = game.legal_actions(player)
    shown = "open text" if legal is None else ", ".join(f"`{_cell(a)}`" for a in legal[:SHOWN_ACTIONS])
    more = f" and {len(legal) - SHOWN_ACTIONS} more" if legal and len(legal) > SHOWN_ACTIONS else ""
    seen = fenced(transcript(game.events(player), game.observation(player)))
    return (f"What player {player} sees after a few random turns (seed {SEED}):", seen, f"Legal: {shown}{more}.")


def _seats(cls: type[Game]) -> str:
    default = str(cls.initial(Random(SEED)).players)
    option = options_of(cls).get("players")
    return f"{default} (option `players`)" if option else default


def _tags(cls: type[Game]) -> str:
    return ", ".join(cls.tags)


def _breakable(game_id: str) -> str:
    """The id with places at which a narrow screen may break it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", game_id)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
