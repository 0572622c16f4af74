"""The forms of Llama 3.1 and of Mistral, each as the family's chat template writes it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from arena.tools.bounded import TOO_DEEP, Keys, call_of, scan, shallow
from arena.tools.call import Call, Format, Malformed, dumped, without_end

__all__ = ["LlamaCodec", "MistralCodec"]

_SPACE = re.compile(r"[ \t\r\n]*+")
_BETWEEN = re.compile(r"[ \t\r\n]*+(?:;[ \t\r\n]*+)?")
_TAG = "<|python_tag|>"
_MARK, _ARGS = "[TOOL_CALLS]", "[ARGS]"
_LIST = re.compile(r"\[\s*\{")
_NAMED = re.compile(r"([\w.:/-]++)\s*+(?:\[CALL_ID\]\s*+[\w-]*+\s*+)?(?:\[ARGS\]\s*+)?(?=\{)")
_NAME = re.compile(r"[\w.:/-]+")
_FORM = Malformed('after [TOOL_CALLS] comes [{"name": ..., "arguments": {...}}] or name[ARGS]{...}, and no more words')


@dataclass(frozen=True)
class LlamaCodec(Format):
    """Llama 3.1 and later: `{"name": "add", "parameters": {"a": 1, "b": 2}}`, bare or after `<|python_tag|>`.

    Several calls are separated by `;` (or by nothing, as in the template of Llama 4); `arguments` instead of
    `parameters` and `"type": "function"`, which these models often add, are read. Words may stand before the tag.
    The chat template of Llama 3.1 and 3.2 writes one call a turn, bare, and leaves the words out: words and more
    calls are written here as SGLang's parser `llama3` reads them (srt/function_call/llama32_detector.py; vLLM:
    tool_parsers/llama_tool_parser.py and examples/tool_chat_template_llama3.1_json.jinja).
    """

    name: str = "llama"
    place: ClassVar[str] = "write the call alone, without other words, or at the end, after <|python_tag|>"
    keys: ClassVar[Keys] = Keys(("name",), ("parameters", "arguments"), frozenset({"type"}))

    def split(self, text: str) -> tuple[str, str]:
        """See `Format.split`."""
        text = without_end(text, "<|eot_id|>", "<|eom_id|>")
        if text.startswith("{"):
            return "", text
        words, tag, rest = text.partition(_TAG)
        return words.strip(), tag + rest

    def parse(self, part: str) -> list[Call] | Malformed:
        """See `Format.parse`."""
        text = part.removeprefix(_TAG).strip()
        if not text.startswith("{"):
            return Malformed('after <|python_tag|> comes a call: {"name": ..., "parameters": {...}}')
        if not shallow(text):
            return TOO_DEEP
        calls: list[Call] = []
        at = 0
        while at < len(text):
            found = _call_at(text, at, self.keys)
            if isinstance(found, Malformed):
                return found
            calls.append(found[0])
            at = _past(_BETWEEN, text, found[1])
        return calls

    def write(self, calls: Sequence[Call], content: str = "") -> str:
        """See `Format.write`."""
        text = ";".join([dumped({"name": each.tool, "parameters": dict(each.arguments)}) for each in calls])
        return f"{content}{_TAG}{text}" if content else text


@dataclass(frozen=True)
class MistralCodec(Format):
    """Mistral: `[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1, "b": 2}}]`, words before it are allowed.

    `compact` writes what tokenizers from v11 on do (Mistral Small 3.2, Magistral, Devstral, Ministral 3):
    `[TOOL_CALLS]add[ARGS]{"a": 1, "b": 2}` once per call; names that would not fit are written as a list. Both read
    both, the list without its mark too (a server that hides special tokens leaves no other trace), and forms
    without `[ARGS]`. Ids of calls are read over and not written: models do not write them, the list of v3 and the
    `[CALL_ID]` of v11 only repeat them in a history. Sources: mistral_common/tokens/tokenizers/instruct.py (classes
    InstructTokenizerV2, V3, V11, V13), the chat template of Mistral-7B-Instruct-v0.3, SGLang's parser `mistral`
    (srt/function_call/mistral_detector.py), vLLM tests/tool_use/test_mistral_tool_parser.py.
    """

    name: str = "mistral"
    compact: bool = False
    place: ClassVar[str] = "write the call at the end, after [TOOL_CALLS]"
    keys: ClassVar[Keys] = Keys(ignored=frozenset({"id"}))

    def split(self, text: str) -> tuple[str, str]:
        """See `Format.split`."""
        text = without_end(text, "</s>")
        if _LIST.match(text):
            return "", text
        words, mark, rest = text.partition(_MARK)
        return words.strip(), mark + rest

    def attempted(self, text: str) -> bool:
        """See `Format.attempted`; a call whose mark is missing, too."""
        return super().attempted(text) or f"{_ARGS}{{" in text

    def parse(self, part: str) -> list[Call] | Malformed:
        """See `Format.parse`."""
        if not shallow(part):
            return TOO_DEEP
        calls: list[Call] = []
        at = 0
        while at < len(part):
            if part.startswith(_MARK, at):
                at = _past(_SPACE, part, at + len(_MARK))
            elif at:
                return _FORM
            found = self._listed(part, at) if part.startswith("[", at) else self._named(part, at)
            if isinstance(found, Malformed):
                return found
            calls += found[0]
            at = _past(_SPACE, part, found[1])
        return calls

    def _listed(self, text: str, start: int) -> tuple[list[Call], int] | Malformed:
        found = scan(text, start)
        if isinstance(found, Malformed):
            return found
        calls = [call_of(each, self.keys) for each in found[0]]
        wrong = next((each for each in calls if isinstance(each, Malformed)), None if calls else _FORM)
        return wrong or ([each for each in calls if isinstance(each, Call)], found[1])

    def _named(self, text: str, start: int) -> tuple[list[Call], int] | Malformed:
        named = _NAMED.match(text, start)
        if named is None:
            return _FORM
        found = scan(text, named.end())
        return found if isinstance(found, Malformed) else ([Call(named[1], found[0])], found[1])

    def write(self, calls: Sequence[Call], content: str = "") -> str:
        """See `Format.write`."""
        if self.compact and all(_NAME.fullmatch(each.tool) for each in calls):
            return content + "".join([f"{_MARK}{each.tool}{_ARGS}{dumped(dict(each.arguments))}" for each in calls])
        return f"{content}{_MARK} {dumped([{'name': c.tool, 'arguments': dict(c.arguments)} for c in calls])}"


def _call_at(text: str, start: int, keys: Keys) -> tuple[Call, int] | Malformed:
    found = scan(text, start)
    if isinstance(found, Malformed):
        return found
    value: Any = found[0]
    if isinstance(value, dict) and value.get("type", "function") != "function":
        return Malformed('"type" can only be "function"')
    call = call_of(value, keys)
    return call if isinstance(call, Malformed) else (call, found[1])


def _past(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where a pattern that may be empty ends."""
    match = pattern.match(text, start)
    return match.end() if match else start
