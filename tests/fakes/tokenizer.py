"""A small real tokenizer: bytes with merges, so any text goes in and the same text comes out.

Ids 0-7 are special tokens, then the 256 bytes, then merged pieces. `encode` takes the longest piece at every place, so
ids that spell a text another way (`[bytes of "cat"]`) decode to it but do not come back from `encode`: that is the
drift a client meets which tokenizes its conversation again, and `respell` makes it on purpose.
"""

import random
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from string import ascii_lowercase

PAD, IM_START, IM_END, BOS = 0, 1, 2, 3
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|bos|>", "<|pad|>", "<|tool|>", "<|a|>", "<|b|>")
EOS = IM_END
FIRST_BYTE = len(SPECIAL)
WORDS = (
    "the be to of and a in that have it for not on with he as you do at this but his by from they we say her she or an "
    "will my one all would there their what so up out if about who get which go me when make can like time no just him "
    "know take people into year your good some could them see other than then now look only come over think also back "
    "after use two how our work first well way even new want because any these give day most us system user assistant "
    "player move game card board turn win draw lose answer legal action tool call name arguments think rules play bet "
    "fold raise check pass red blue green yellow black white round score points hand deck piece king queen"
)
PIECES = re.compile(r" ?\w+| ?[^\w\s]|\s")
SPECIALS = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")


def _merges() -> list[bytes]:
    """Merged pieces in the order of their ids: words bare, with a blank, capital; then pairs of letters."""
    shapes = [
        shape for word in WORDS.split() for shape in (word, f" {word}", word.capitalize(), f" {word.capitalize()}")
    ]
    pairs = [a + b for a in ascii_lowercase for b in ascii_lowercase] + [f" {a}" for a in ascii_lowercase]
    unique = dict.fromkeys(shapes + pairs)
    return [text.encode() for text in unique if len(text) > 1]


TOKENS: list[bytes] = [*(text.encode() for text in SPECIAL), *(bytes([byte]) for byte in range(256)), *_merges()]
IDS = {token: number for number, token in enumerate(TOKENS) if number >= FIRST_BYTE}
SIZE = len(TOKENS)
LONGEST = max(map(len, IDS))


def encode(text: str) -> list[int]:
    """Ids of a text; special tokens written in it count as such.

    Raises:
        ValueError: `text` holds a lone surrogate, which no UTF-8 can carry.
    """
    ids: list[int] = []
    for part in SPECIALS.split(text):
        if part in SPECIAL:
            ids.append(SPECIAL.index(part))
            continue
        for piece in PIECES.findall(part):
            ids.extend(_piece(piece))
    return ids


@lru_cache(maxsize=1 << 16)
def _piece(piece: str) -> tuple[int, ...]:
    data, ids, at = piece.encode(), [], 0
    while at < len(data):
        size = next(size for size in range(LONGEST, 0, -1) if data[at : at + size] in IDS and at + size <= len(data))
        ids.append(IDS[data[at : at + size]])
        at += size
    return tuple(ids)


def decode(ids: Iterable[int], skip_special_tokens: bool = False) -> str:
    """The text of ids; bytes that are no UTF-8 (an answer cut in a character) become U+FFFD."""
    wanted = (one for one in ids if one >= FIRST_BYTE or not skip_special_tokens)
    return b"".join(map(TOKENS.__getitem__, wanted)).decode(errors="replace")


def respell(ids: Sequence[int], random: random.Random, rate: float) -> list[int]:
    """The same text in other tokens: each merged piece is, at this rate, spelt in two pieces or in bytes."""
    spelt: list[int] = []
    for one in ids:
        if one < FIRST_BYTE or len(TOKENS[one]) < 2 or random.random() >= rate:
            spelt.append(one)
        else:
            spelt.extend(_split(TOKENS[one], random.randrange(1, len(TOKENS[one]))))
    return spelt


def _split(token: bytes, at: int) -> list[int]:
    halves = (token[:at], token[at:])
    return [one for half in halves for one in ([IDS[half]] if half in IDS else [FIRST_BYTE + byte for byte in half])]
