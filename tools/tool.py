"""Tool: a typed Python function that a player may call with arguments written as JSON."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, get_type_hints

import msgspec

from arena.text import quote

__all__ = ["Result", "Tool", "ToolError"]

MAX_RESULT = 2_000
"""Characters of a result that are shown."""
_MAX_REASON = 200


class ToolError(ValueError):
    """What a tool's function raises to tell the caller that it could not do it, in words."""


class Result(NamedTuple):
    """What came back from a call: a value, or (`ok` False) the reason why there is none."""

    text: str
    ok: bool = True


class Tool(msgspec.Struct, frozen=True):
    """A function with a name, a description (its docstring) and a JSON schema of its parameters (its signature).

    Annotations may be what msgspec knows: int, float, str, bool, None, list, dict, tuple, Literal, unions, Struct;
    `Annotated[int, msgspec.Meta(ge=0, description="...")]` narrows and describes one.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments: an object that allows no other keys."""
    function: Callable[..., Any]
    shape: type[msgspec.Struct]
    """The arguments as a Struct: what `call` checks them against."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Self:
        """The tool a function is. Raises TypeError for a parameter without a type or that cannot be named."""
        name = function.__name__
        hints = get_type_hints(function, include_extras=True)
        fields = [_field(name, p, hints) for p in inspect.signature(function).parameters.values()]
        shape = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
        return cls(name, inspect.cleandoc(function.__doc__ or name), _schema(shape), function, shape)

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Check the arguments and run the function. Bad arguments and failures that they cause are a message.

        Types are strict: "3" and 3.0 are no int, true is no number; an int is a float. Raises what the function
        raises beyond ArithmeticError, LookupError and ValueError (ToolError is one).
        """
        try:
            checked = msgspec.convert(dict(arguments), self.shape)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: a lone surrogate as a key
            return Result(f"bad arguments of {self.name}: {_plain(str(error)[:_MAX_REASON])}", False)
        try:
            value = self.function(**msgspec.structs.asdict(checked))
            return Result(_shown(value))
        except (ArithmeticError, LookupError, ValueError) as error:
            return Result(f"{self.name} failed: {_plain(str(error)[:_MAX_REASON])}", False)

    def signature(self) -> str:
        """The tool on one line, such as `add(a: integer, b: integer = 0)`."""
        required = self.parameters.get("required", ())
        parts = []
        for key, schema in self.parameters.get("properties", {}).items():
            kind = schema.get("type") or ("one of " + _json(schema["enum"]) if "enum" in schema else "any")
            default = "" if key in required or "default" not in schema else f" = {_json(schema['default'])}"
            parts.append(f"{key}: {kind}{default}")
        return f"{self.name}({', '.join(parts)})"

    def schema(self) -> dict[str, Any]:
        """The tool as the `tools` field of a chat request has it (OpenAI, and chat templates of open models)."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def _field(tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> tuple[str, Any, Any] | tuple[str, Any]:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"tool {tool}: parameter {parameter.name} has no fixed name; write each one out")
    if parameter.name not in hints:
        raise TypeError(f"tool {tool}: parameter {parameter.name} needs a type, such as {parameter.name}: int")
    if parameter.default is parameter.empty:
        return parameter.name, hints[parameter.name]
    return parameter.name, hints[parameter.name], parameter.default


def _schema(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of the object itself; what it refers to comes along under `$defs`."""
    _, parts = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = parts.pop(shape.__name__)
    del schema["title"]
    return {**schema, "$defs": parts} if parts else schema


def _shown(value: Any) -> str:
    """Text as it is, anything else as JSON; long results are cut, and say so."""
    text = value if isinstance(value, str) else str(value) if type(value) is int else _json(value)
    text = _plain(text[: MAX_RESULT + 1])
    return text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}... (cut)"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _plain(text: str) -> str:
    """Text that stays on its line: as it is if it does, else quoted and escaped."""
    bare = text.replace("\\", "").replace('"', "")
    return text if quote(bare) == f'"{bare}"' else quote(text)
