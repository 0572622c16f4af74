"""The fake server's tokens: words, numbered as they are first met, so that no two texts share their tokens."""

import re
from collections.abc import Iterable, Sequence

__all__ = ["CLOSE", "LAST", "MARK", "Words"]

OPEN, CLOSE, LAST = "<|im_start|>", "<|im_end|>", 2
MARK = re.compile(r"\[m:[^\]\s]{1,80}\]")
_WORD = re.compile(rf"{re.escape(OPEN)}|{re.escape(CLOSE)}|{MARK.pattern}| ?[^\W_]{{1,7}}|\s+|.", re.DOTALL)


class Words:
    """A vocabulary that grows. A mark (`[m:...]`) is one token."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {"": 0, OPEN: 1, CLOSE: LAST}
        self.marks: dict[int, str] = {}

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        ids = self.ids
        return [ids[word] if word in ids else self._learn(word) for word in _WORD.findall(text)]

    def _learn(self, word: str) -> int:
        number = self.ids[word] = len(self.ids)
        if MARK.fullmatch(word):
            self.marks[number] = word
        return number

    def render(self, messages: Iterable[tuple[str, str]], opened: bool) -> list[int]:
        """A conversation of (role, content) in ChatML; `opened`: with the beginning of the assistant's turn."""
        ids: list[int] = []
        for role, content in messages:
            ids += self.encode(f"{OPEN}{role}\n")
            ids += self.encode(content)
            ids += self.encode(f"{CLOSE}\n")
        return ids + self.encode(f"{OPEN}assistant\n") if opened else ids

    def last_mark(self, ids: Sequence[int]) -> str:
        """The last mark among the tokens, or ""."""
        marks = self.marks
        return next((marks[number] for number in reversed(ids) if number in marks), "")
