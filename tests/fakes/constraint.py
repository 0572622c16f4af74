"""Constraints on an answer: what a regex, a JSON schema or a grammar lets through, and one text it lets through."""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEYS = ("regex", "json_schema", "ebnf", "structural_tag")


class GrammarError(ValueError):
    """The constraint does not compile; the text is the server's."""


@dataclass(frozen=True)
class Constraint:
    """One constraint: its kind (a key of `sampling_params`), its source, and the texts it allows where they are few."""

    kind: str
    source: str
    choices: tuple[str, ...] | None

    def allows(self, text: str) -> bool:
        """Whether the text is one the constraint lets through; a schema is checked for being JSON only."""
        if self.choices is not None:
            return text in self.choices
        if self.kind == "regex":
            return re.fullmatch(self.source, text) is not None
        try:
            json.loads(text)
        except ValueError:
            return self.kind != "json_schema"
        return True

    def pick(self, random: random.Random) -> str:
        """One text it allows.

        Raises:
            GrammarError: a regex that is no plain list of alternatives; the test must then give the answer itself.
        """
        if self.choices is not None:
            return random.choice(self.choices)
        if self.kind == "json_schema":
            return json.dumps(instance(json.loads(self.source), random))
        raise GrammarError(f"the fake cannot invent a text for this {self.kind}; give it an `answer`: {self.source!r}")


def constraint_of(params: Mapping[str, Any]) -> Constraint | None:
    """The constraint in `sampling_params`, if any.

    Raises:
        GrammarError: it does not compile, or there is more than one.
    """
    given = [key for key in KEYS if params.get(key) is not None]
    if len(given) > 1:
        raise GrammarError("Only one of regex, json_schema, or ebnf can be set.")
    if not given:
        return None
    return Constraint(given[0], params[given[0]], _choices(given[0], params[given[0]]))


def _choices(kind: str, source: str) -> tuple[str, ...] | None:
    if kind == "regex":
        try:
            re.compile(source)
        except re.error as error:
            raise GrammarError(f"Failed to compile regex grammar: Regex parsing error: {error}\n") from error
        return alternatives(source)
    if kind == "json_schema":
        try:
            json.loads(source)
        except ValueError as error:
            raise GrammarError(f"Failed to compile json grammar: {error}") from error
        return None
    if kind == "ebnf":
        rule = source.removeprefix("root ::=").strip()
        texts = [_quoted(part) for part in rule.split(" | ")]
        return tuple(text for text in texts if text is not None) if None not in texts else None
    return None


def _quoted(part: str) -> str | None:
    try:
        text = json.loads(part)
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def alternatives(source: str) -> tuple[str, ...] | None:
    r"""The texts of `(a|b|c)` where each is literal, escapes undone; None for any other regex.

    >>> alternatives(r"(\[0\]|\[1\])")
    ('[0]', '[1]')
    >>> alternatives("a+") is None
    True
    """
    if source.startswith("(?:") and source.endswith(")"):
        source = source[3:-1]
    elif source.startswith("(") and source.endswith(")") and not source.startswith("(?"):
        source = source[1:-1]
    texts, text, escaped = [], "", False
    for char in source:
        if escaped:
            if char.isalnum() and char not in "nrt":
                return None
            text, escaped = text + {"n": "\n", "r": "\r", "t": "\t"}.get(char, char), False
        elif char == "\\":
            escaped = True
        elif char == "|":
            texts.append(text)
            text = ""
        elif char in "()[]{}.*+?^$":
            return None
        else:
            text += char
    return None if escaped else (*texts, text)


def instance(schema: Any, random: random.Random) -> Any:
    """A small value a JSON schema allows (enum, const, anyOf and the plain types)."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], random)
    kind = schema.get("type", "object" if "properties" in schema else "null")
    if kind == "object":
        wanted = schema.get("required", list(schema.get("properties", {})))
        return {key: instance(schema.get("properties", {}).get(key, {}), random) for key in wanted}
    if kind == "array":
        return [instance(schema.get("items", {}), random) for _ in range(schema.get("minItems", 0))]
    if kind in {"integer", "number"}:
        return schema.get("minimum", 0)
    return {"string": "x" * schema.get("minLength", 1), "boolean": True}.get(kind)
