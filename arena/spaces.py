"""`Text`: a space of any Unicode text, with an optional vocabulary, that survives Gymnasium's vector environments."""

import multiprocessing as mp
import string
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten, flatten_space, unflatten
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from numpy.typing import NDArray

__all__ = ["Text"]

_SAMPLED = frozenset(string.printable)
_END = 0x110000  # pads a flattened text: one more than the last code point
_HEAD = 4  # bytes that hold the length of a text in shared memory


class Text(spaces.Text):
    """Texts of `min_length` to `max_length` characters, whatever the characters.

    Gymnasium's own `Text` refuses every character that was not listed. Here `contains` looks at the length only.
    `sample()` draws from `vocabulary` where there is one, else printable ASCII; `sample(mask)` with an int8 array,
    one entry a word, draws a word whose entry is 1.
    """

    def __init__(
        self,
        max_length: int,
        *,
        min_length: int = 0,
        vocabulary: Sequence[str] | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(max_length, min_length=min_length, charset=_SAMPLED, seed=seed)
        self.vocabulary = tuple(vocabulary) if vocabulary else None

    def contains(self, x: Any) -> bool:
        """Whether it is a text of a length allowed."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random word or text. `mask`: an int8 array over the vocabulary, or Gymnasium's pair for characters.

        A mask without a 1 gives the first word, as `Discrete` does.
        """
        words = self.vocabulary
        if words is None or isinstance(mask, tuple) or probability is not None:
            return super().sample(mask, probability)
        if mask is None:
            return words[int(self.np_random.integers(len(words)))]
        if getattr(mask, "shape", None) != (len(words),):
            raise ValueError(f"mask must be an array of {len(words)} entries, one for each word of the vocabulary")
        allowed = np.flatnonzero(mask)
        return words[int(self.np_random.choice(allowed))] if len(allowed) else words[0]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Text)
            and (self.min_length, self.max_length) == (other.min_length, other.max_length)
            and self.vocabulary == other.vocabulary
        )

    def __repr__(self) -> str:
        words = f", vocabulary of {len(self.vocabulary)}" if self.vocabulary else ""
        return f"Text({self.min_length}, {self.max_length}{words})"


class _Texts(tuple[str, ...]):  # noqa: SLOT001 - a tuple that holds more than its items cannot have slots
    """The texts in shared memory, decoded whenever they are looked at.

    `AsyncVectorEnv` reads its observations once, when it is built, and copies that object after every step. An array
    is a view of the memory; upstream's `Text` is a copy and never changes again. This is the view.
    """

    _space: Text
    _memory: Any

    def __new__(cls, space: Text, memory: Any, n: int) -> "_Texts":
        self = super().__new__(cls, ("",) * n)
        self._space, self._memory = space, memory
        return self

    def _now(self) -> tuple[str, ...]:
        stride, raw = _stride(self._space), memoryview(self._memory.get_obj()).cast("B")
        texts = []
        for start in range(0, len(self) * stride, stride):
            size = int.from_bytes(raw[start : start + _HEAD], "little")
            texts.append(bytes(raw[start + _HEAD : start + _HEAD + size]).decode("utf-8", "surrogatepass"))
        return tuple(texts)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, pickled or deep, is a plain tuple of the texts of now."""
        return tuple, (self._now(),)

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        return self._now()[index]

    def __eq__(self, other: object) -> bool:
        return self._now() == (other._now() if isinstance(other, _Texts) else other)

    def __hash__(self) -> int:
        return hash(self._now())

    def __repr__(self) -> str:
        return repr(self._now())


def _stride(space: Text) -> int:
    return _HEAD + 4 * space.max_length  # UTF-8 takes at most four bytes a character


@create_shared_memory.register(Text)
def _create(space: Text, n: int = 1, ctx: Any = mp) -> Any:
    return ctx.Array("B", n * _stride(space))


@read_from_shared_memory.register(Text)
def _read(space: Text, shared_memory: Any, n: int = 1) -> tuple[str, ...]:
    return _Texts(space, shared_memory, n)


@write_to_shared_memory.register(Text)
def _write(space: Text, index: int, value: str, shared_memory: Any) -> None:
    data = value.encode("utf-8", "surrogatepass")
    if len(data) > _stride(space) - _HEAD:
        raise ValueError(f"a text of {len(value)} characters is longer than {space!r} allows")
    raw = memoryview(shared_memory.get_obj()).cast("B")
    start = index * _stride(space)
    raw[start : start + _HEAD] = len(data).to_bytes(_HEAD, "little")
    raw[start + _HEAD : start + _HEAD + len(data)] = data


@flatten_space.register(Text)
def _flatten_space(space: Text) -> spaces.Box:
    return spaces.Box(low=0, high=_END, shape=(space.max_length,), dtype=np.int32)


def _flatten(space: Text, x: str) -> NDArray[np.int32]:
    """The code points, padded at the end."""
    points = np.full(space.max_length, _END, np.int32)
    points[: len(x)] = np.frombuffer(x.encode("utf-32-le", "surrogatepass"), np.int32)
    return points


def _unflatten(space: Text, x: NDArray[np.int32]) -> str:
    return "".join([chr(point) for point in x if point < _END])


flatten.register(Text, _flatten)
unflatten.register(Text, _unflatten)
