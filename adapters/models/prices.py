"""Prices: what answers cost, in dollars.

A price file is TOML, one table a model, dollars per million tokens; `cached` is `input` if it is not given:

    ["gpt-5"]
    input = 1.25
    cached = 0.125
    output = 10
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from arena.adapters.models.settings import Settings

__all__ = ["Price", "price_of", "read_prices"]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input tokens that the server had in its cache; None: as `input`."""

    def cost(self, usage: Mapping[str, float]) -> float:
        """The dollars for a usage as in `Completion.usage`: cached tokens are part of the prompt's.

        >>> usage = {"prompt_tokens": 3e6, "cached_tokens": 1e6, "completion_tokens": 1e6}
        >>> Price(input=2, output=8, cached=1).cost(usage)
        13.0
        """
        cached = usage.get("cached_tokens", 0.0)
        reused = self.input if self.cached is None else self.cached
        fresh = max(usage.get("prompt_tokens", 0.0) - cached, 0.0)
        said = usage.get("completion_tokens", 0.0)
        return (fresh * self.input + cached * reused + said * self.output) / 1e6


def price_of(settings: Settings, model: str) -> Price | None:
    """The price of a model by its settings, None where nothing is said. Raises ValueError.

    Single prices win over those of the file.
    """
    given = {"input": settings.input_price, "cached": settings.cached_price, "output": settings.output_price}
    given = {name: value for name, value in given.items() if value is not None}
    if not settings.prices and not given:
        return None
    listed = _listed(settings.prices, model) if settings.prices else {}
    whole = listed | given
    missing = [name for name in ("input", "output") if name not in whole]
    if missing:
        raise ValueError(f"prices of {model}: {missing[0]}_price is missing; give input_price and output_price")
    return _price(whole, model)


def read_prices(path: str | Path) -> dict[str, dict[str, Any]]:
    """The tables of a price file by the model's name. Raises ValueError."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"prices={path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"prices={path}: not TOML: {error}") from error
    found = dict(_tables(tables))
    for model, table in found.items():
        try:
            _price(table, model)
        except ValueError as error:
            raise ValueError(f"prices={path}: {error}") from error
    return found


def _tables(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables with prices. TOML reads a name with dots and no quotes as tables within tables."""
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(
                f'prices: {prefix}{name}={table!r}: write a table a model: ["name"], then input and output'
            )
        inner = {key: value for key, value in table.items() if isinstance(value, dict)}
        own = {key: value for key, value in table.items() if key not in inner}
        if own or not inner:
            yield prefix + name, own
        yield from _tables(inner, f"{prefix}{name}.")


def _listed(path: str, model: str) -> dict[str, Any]:
    known = read_prices(path)
    if model not in known:
        near = difflib.get_close_matches(model, known, 3, 0.5) or sorted(known)[:20]
        raise ValueError(f"prices={path}: {model} is not listed; there are {', '.join(near) or 'no models'}")
    return known[model]


def _price(table: Mapping[str, Any], model: str) -> Price:
    try:
        price = msgspec.convert(table, Price)
    except msgspec.ValidationError as error:
        raise ValueError(f"{model}: {error}: allowed are input, cached and output, numbers") from error
    for name, value in (("input", price.input), ("cached", price.cached), ("output", price.output)):
        if value is not None and not 0 <= value < float("inf"):
            raise ValueError(f"{model}: {name}={value:g}: a price is 0 or more")
    return price
