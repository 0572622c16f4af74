"""The form of Llama 3.2 and 4: a Python list of calls with literals. Read by hand, within bounds; nothing is run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from arena.text import clean
from arena.tools.bounded import MAX_DEPTH, floating, integer
from arena.tools.call import Call, Format, Malformed, without_end

__all__ = ["PythonicCodec"]

_TAG, _START, _END = "<|python_tag|>", "<|python_start|>", "<|python_end|>"
_MARK = re.compile(r"<\|python_(?:tag|start)\|>")
_LIST = re.compile(r"\[\s*[^\W\d]\w*\s*\(")
_STRAY = re.compile(r"\[\s{0,9}[^\W\d]\w{0,63}\((?:\)|\s{0,9}[^\W\d]\w{0,63}\s{0,9}=)")
_TOKEN = re.compile(
    r"""\s*(?:(?P<word>[^\W\d]\w*)
    |(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<text>'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+")
    |(?P<mark>\*\*|[][(){},:=]))""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SHORT = dict(zip("abfnrtv\\'\"\n", "\a\b\f\n\r\t\v\\'\"", strict=False)) | {"\n": ""}
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}


@dataclass(frozen=True)
class PythonicCodec(Format):
    """`[add(a=1, b=2), say(text='x')]`: arguments by name, values as Python literals (or JSON's true, false, null).

    Tuples are read as lists; keys of dicts are texts. Words may stand before `<|python_tag|>` or
    `<|python_start|>`; without such a token the list must be the whole text. Names that are no Python names are
    written in quotes, and arguments of such names as `**{...}`, behind the token. Sources: Meta's prompt format of
    Llama 3.2 (llama-models/models/llama3_2/text_prompt_format.md, "Zero shot function calling"), SGLang's parser
    `pythonic` (srt/function_call/pythonic_detector.py), vLLM's tests of its pythonic_tool_parser.py.
    """

    name: str = "pythonic"
    place: ClassVar[str] = "write the list of calls alone, without other words, or at the end, after <|python_tag|>"

    def split(self, text: str) -> tuple[str, str]:
        """See `Format.split`."""
        text = without_end(text, "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>")
        if _LIST.match(text):
            return "", text
        mark = _MARK.search(text)
        return (text[: mark.start()].strip(), text[mark.start() :]) if mark else (text, "")

    def attempted(self, text: str) -> bool:
        """See `Format.attempted`."""
        return _STRAY.search(text) is not None

    def parse(self, part: str) -> list[Call] | Malformed:
        """See `Format.parse`."""
        text = without_end(part.removeprefix(_TAG).removeprefix(_START), _END)
        try:
            return _Reader(text).calls()
        except ValueError as error:
            return Malformed(f"the call cannot be read: {error}")

    def write(self, calls: Sequence[Call], content: str = "") -> str:
        """See `Format.write`."""
        text = f"[{', '.join([_written(call) for call in calls])}]"
        return text if not content and _LIST.match(text) else f"{content}{_TAG}{text}"


def _written(call: Call) -> str:
    odd = {key: value for key, value in call.arguments.items() if not _is_name(key)}
    parts = [f"{key}={value!r}" for key, value in call.arguments.items() if _is_name(key)]
    parts += [f"**{odd!r}"] if odd else []
    return f"{call.tool if _is_name(call.tool) else repr(call.tool)}({', '.join(parts)})"


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier()


class _Reader:
    """Reads literals token by token; the depth is bounded, so the recursion is. ValueError says what is wrong."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0

    def calls(self) -> list[Call]:
        """All of the text: a list of calls."""
        if not self.took("["):
            raise ValueError("it is a list of calls, such as [name(key=1)]")
        calls = []
        while not self.took("]"):
            calls.append(self.call())
            if not self.took(",") and self.peek() != "]":
                self.fail("a comma or ]")
        if self.at < len(self.tokens) or not calls:
            raise ValueError("nothing may follow the list" if calls else "the list is empty")
        return calls

    def call(self) -> Call:
        """One call, by the names of its arguments."""
        kind, token = self.next()
        if kind not in ("word", "text") or not self.took("("):
            raise ValueError("a call is a name with its arguments in round brackets")
        pairs: list[tuple[str, Any]] = []
        while not self.took(")"):
            pairs += self.argument()
            if not self.took(",") and self.peek() != ")":
                self.fail("a comma or )")
        return Call(_unquoted(token) if kind == "text" else clean(token), _single(pairs))

    def argument(self) -> list[tuple[str, Any]]:
        """`key=value`, or the pairs of `**{...}`."""
        if self.took("**"):
            value = self.value(3) if self.peek() == "{" else self.fail("{ after **")
            return list(value.items())
        kind, token = self.next()
        if kind != "word" or not self.took("="):
            raise ValueError("every argument needs its name, such as key=1")
        return [(clean(token), self.value(3))]

    def value(self, depth: int) -> Any:
        """A literal, `depth` brackets deep."""
        kind, read = self.next()
        if kind == "text":
            return _unquoted(read)
        if kind == "number":
            return floating(read) if any(c in read for c in ".eE") else integer(read)
        if kind == "word" and read in _WORDS:
            return _WORDS[read]
        if kind != "mark" or read not in ("[", "(", "{"):
            self.at -= kind != ""
            self.fail("a literal value: a text in quotes, a number, True, False, None, a list or a dict")
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        return self.dict(depth + 1) if read == "{" else self.list("]" if read == "[" else ")", depth + 1)

    def list(self, end: str, depth: int) -> Any:
        """What follows [ or (; one value in round brackets is just itself."""
        found, commas = [], 0
        while not self.took(end):
            found.append(self.value(depth))
            if self.took(","):
                commas += 1
            elif self.peek() != end:
                self.fail(f"a comma or {end}")
        return found[0] if end == ")" and len(found) == 1 and not commas else found

    def dict(self, depth: int) -> dict[str, Any]:
        """What follows {."""
        pairs = []
        while not self.took("}"):
            kind, key = self.next()
            if kind != "text" or not self.took(":"):
                raise ValueError("keys of a dict are texts in quotes, each before a colon")
            pairs.append((_unquoted(key), self.value(depth)))
            if not self.took(",") and self.peek() != "}":
                self.fail("a comma or }")
        return _single(pairs)

    def peek(self) -> str:
        """The next mark, or empty."""
        kind, token = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        return token if kind == "mark" else ""

    def took(self, mark: str) -> bool:
        """Step over a mark if it is next."""
        found = self.peek() == mark
        self.at += found
        return found

    def next(self) -> tuple[str, str]:
        """The next token; empty at the end."""
        if self.at == len(self.tokens):
            return "", ""
        self.at += 1
        return self.tokens[self.at - 1]

    def fail(self, expected: str) -> NoReturn:
        """Say what should stand here."""
        where = "at the end" if self.at >= len(self.tokens) else f"at part {self.at + 1}"
        raise ValueError(f"{where}, there should be {expected}")


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"after {len(tokens)} parts comes what is no Python literal, or a quote is not closed")
        kind = match.lastgroup or ""
        tokens.append((kind, match[kind]))
        at = match.end()
    return tokens


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _unquoted(token: str) -> str:
    return clean(_ESCAPE.sub(_unescaped, token[1:-1]))


def _unescaped(match: re.Match[str]) -> str:
    octal, *hexes, char = match.groups()
    code = int(octal, 8) if octal else next((int(digits, 16) for digits in hexes if digits), None)
    if code is not None:
        if code > 0x10FFFF:
            raise ValueError("there is no such character")
        return chr(code)
    return _SHORT.get(char, match[0])  # an unknown escape stays as it is, as in Python (and so does \\N{...})
