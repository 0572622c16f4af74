"""The fake model's distribution: fixed logits by the token before, so decoding and re-prefill agree to the bit.

A version of the weights has logits of its own. Returned log-probabilities are those of the distribution sampled from,
as in SGLang: scaled by the temperature (0 counts as 1) and masked by the constraint.
"""

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tests.fakes import tokenizer

Row = NDArray[np.float64]


@lru_cache(maxsize=4096)
def logits(before: int, version: str) -> Row:
    """Logits of shape (tokenizer.SIZE,) after a token."""
    return np.random.default_rng([before, zlib.crc32(version.encode())]).normal(0.0, 2.0, tokenizer.SIZE)


@lru_cache(maxsize=4096)
def logprobs(before: int, version: str, temperature: float) -> Row:
    """Natural logs of probabilities, shape (tokenizer.SIZE,)."""
    scaled = logits(before, version) / (temperature or 1.0)
    result: Row = scaled - np.logaddexp.reduce(scaled)
    return result


def logprob(
    before: int, token: int, version: str, temperature: float = 1.0, allowed: Sequence[int] | None = None
) -> float:
    """Of one token after another; `allowed` is what the constraint lets through at this place."""
    row = logprobs(before, version, temperature)
    if allowed is None:
        return float(row[token])
    return min(0.0, float(row[token] - np.logaddexp.reduce(row[list(allowed)])))


def top(
    before: int, version: str, temperature: float, count: int, allowed: Sequence[int] | None
) -> list[tuple[float, int]]:
    """The likeliest tokens with their log-probabilities, at most `count`."""
    tokens = allowed if allowed is not None else range(tokenizer.SIZE)
    row = logprobs(before, version, temperature)[list(tokens)]
    best = np.argsort(-row, kind="stable")[:count]
    norm = 0.0 if allowed is None else float(np.logaddexp.reduce(row))
    return [(min(0.0, float(row[at]) - norm), int(tokens[at])) for at in best]


def allowed_tokens(choices: Sequence[str], ids: Sequence[int]) -> list[list[int]]:
    """For each place of an answer: the tokens with which one of the choices can still be spelt."""
    left = [text.encode() for text in choices]
    places = []
    for one in ids:
        places.append(sorted({token for rest in left for token in _starts(rest)}))
        token = tokenizer.TOKENS[one]
        left = [rest[len(token) :] for rest in left if rest.startswith(token)] if one != tokenizer.EOS else [b""]
    return places


@lru_cache(maxsize=1 << 14)
def _starts(rest: bytes) -> tuple[int, ...]:
    if not rest:
        return (tokenizer.EOS,)
    sizes = range(1, min(len(rest), tokenizer.LONGEST) + 1)
    return tuple(tokenizer.IDS[rest[:size]] for size in sizes if rest[:size] in tokenizer.IDS)
