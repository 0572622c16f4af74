"""How pages are made: templates, the one style, scripts, and a content security policy that allows these alone.

Names, chat and replies are hostile: templates escape everything, what hides or turns text is written as an escape,
data for a script stands in a block that no text in it can end, and scripts write text only.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from arena.text import clean
from arena.tournaments.board import Pair, Row, Section
from arena.tournaments.conduct import percent
from arena.tournaments.site.bars import bar, ends

__all__ = ["MOST", "SHADES", "embedded", "number", "pieces", "policy", "render", "signed", "visible"]

SHADES = 10
MOST = 200  # characters of a name or reason that a table shows
_PIECE = re.compile(r"[^?&=/_\-\s]{1,24}[?&=/_\-\s]?|[?&=/_\-\s]")
_TAGS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def render(name: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), live: str = "", **values: Any) -> str:
    """A page of this template, with the common style and these files.

    `live`: the address of the events that tell that it has changed, "" on disk.
    """
    style = "\n".join([_text(file) for file in ("style.css", *styles)])
    sources = {script: _text(script) for script in (*scripts, *(["live.js"] if live else []))}
    page = (
        _environment()
        .get_template(name)
        .render(
            style=style, scripts=sources, policy=policy(style, *sources.values(), live=bool(live)), live=live, **values
        )
    )
    return clean(page)


def policy(style: str, *scripts: str, live: bool = False) -> str:
    """Nothing but this style and these scripts; a live page may ask its own server."""
    allowed = ["default-src 'none'", f"style-src '{_digest(style)}'"]
    if scripts:
        allowed.append("script-src " + " ".join([f"'{_digest(script)}'" for script in scripts]))
    return "; ".join([*allowed, *["connect-src 'self'"] * live, "base-uri 'none'", "form-action 'none'"])


def embedded(data: Any) -> str:
    r"""JSON for a script element: no text in it can end the element, begin a comment, or be no text.

    >>> embedded({"name": "</script>\ud800"})
    '{"name":"\\u003c/script\\u003e\\ud800"}'
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: _TAGS[match[0]], text)


def visible(text: str, most: int = MOST) -> str:
    r"""One line of hostile text: what hides, turns or breaks it as escapes, what is too long cut.

    >>> visible("a\u202eb\n")
    'a\\u202eb\\n'
    """
    cut = text if len(text) <= most else text[: most - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut])


def pieces(name: str) -> list[str]:
    """What of a name stays together: it may be broken after the joints of a spec, or every so often where it has none.

    >>> pieces("mcts?simulations=50&c=2")
    ['mcts?', 'simulations=', '50&', 'c=', '2']
    """
    return _PIECE.findall(name)


def number(value: float, digits: int = 0) -> str:
    """With a true minus sign; no other place makes a digit.

    >>> number(-0.2), number(-1234.56, 1)
    ('0', '−1234.6')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float) -> str:
    """A return or a difference with its sign.

    >>> signed(1.0), signed(-0.5), signed(0.0)
    ('+1', '−0.5', '0')
    """
    return (f"{value:+g}" if value else "0").replace("-", "−")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _text(name: str) -> str:
    return files("arena.tournaments.site").joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("arena.tournaments.site", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        shade=_shade, bar=bar, ends=ends, number=number, signed=signed, pieces=pieces, visible=visible,
        percent=percent, rank=_rank,
    )  # fmt: skip
    return environment


def _shade(pair: Pair) -> int:
    """The class of a heat-map cell: 0 lost all, 10 won all."""
    return round(pair.score * SHADES)


def _rank(row: Row, section: Section) -> str:
    """The interval of its rank, or the rank where there is none."""
    if section.ratings is None or not row.low:
        return str(row.rank)
    return str(row.low) if row.low == row.high else f"{row.low}–{row.high}"
