"""The text space: any Unicode, a vocabulary, and right answers from Gymnasium's vector environments."""

import pickle
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten, flatten_space, unflatten
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector.utils import batch_space, create_shared_memory, read_from_shared_memory, write_to_shared_memory

from arena.spaces import Text

write: Any = write_to_shared_memory  # upstream annotates arrays only
ODD = ("", "a\nb", "♞ é 🙂", "\ud800", "\x00")


def test_any_text_of_the_right_length_is_in_it() -> None:
    space = Text(5, min_length=1)
    assert all(text in space for text in ODD[1:4])
    assert "" not in space
    assert "123456" not in space
    assert b"12" not in space
    assert np.str_("12") in space
    assert isinstance(space, spaces.Text)


def test_sample_draws_from_the_vocabulary_and_keeps_to_the_mask() -> None:
    space = Text(5, vocabulary=("a", "b", "c"), seed=1)
    assert {space.sample() for _ in range(60)} == {"a", "b", "c"}
    mask = np.array([1, 0, 1], np.int8)
    assert {space.sample(mask) for _ in range(60)} == {"a", "c"}
    assert space.sample(np.zeros(3, np.int8)) == "a"
    with pytest.raises(ValueError, match="3 entries"):
        space.sample(np.ones(4, np.int8))


def test_sample_without_a_vocabulary_is_as_upstream() -> None:
    space = Text(8, seed=2)
    assert all(space.sample() in space for _ in range(20))
    assert len(space.sample(mask=(3, None))) == 3
    letters = np.zeros(len(space.character_set), np.int8)
    letters[space.character_index("x")] = 1
    assert space.sample(mask=(4, letters)) == "xxxx"


def test_seeded_it_samples_the_same() -> None:
    def drawn(space: Text) -> list[str]:
        space.seed(7)
        return [space.sample() for _ in range(5)]

    assert drawn(Text(9)) == drawn(Text(9))
    words = [str(n) for n in range(99)]
    assert drawn(Text(9, vocabulary=words)) == drawn(Text(9, vocabulary=words))


def test_equal_by_value_and_copied_whole() -> None:
    space = Text(5, vocabulary=("a", "b"))
    assert space == Text(5, vocabulary=["a", "b"])
    assert space == deepcopy(space) == pickle.loads(pickle.dumps(space))
    assert space not in (Text(5), Text(6, vocabulary=("a", "b")), spaces.Text(5))
    assert repr(space) == "Text(0, 5, vocabulary of 2)"
    assert repr(Text(5, min_length=1)) == "Text(1, 5)"


@pytest.mark.parametrize("text", ODD)
def test_flattened_and_back(text: str) -> None:
    space = Text(6)
    flat = flatten(space, text)
    assert flat in flatten_space(space)
    assert len(flat) == flatdim(space) == 6
    assert unflatten(space, flat) == text


@pytest.mark.parametrize("text", ODD)
def test_shared_memory_shows_what_was_written_last(text: str) -> None:
    space: Any = Text(6)
    memory = create_shared_memory(space, n=3)
    seen: Any = read_from_shared_memory(space, memory, n=3)  # once, as AsyncVectorEnv does
    assert tuple(seen) == ("", "", "")
    write(space, 1, "before", memory)
    write(space, 1, text, memory)
    write(space, 2, "last", memory)
    assert seen == ("", text, "last")
    assert (seen[1], seen[-1], len(seen)) == (text, "last", 3)
    assert hash(seen) == hash(("", text, "last"))
    assert repr(seen) == repr(("", text, "last"))
    for copied in (deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert type(copied) is tuple
        write(space, 1, "later", memory)
        assert copied[1] == text
    assert deepcopy(seen) in batch_space(space, 3)


def test_too_long_a_text_is_refused_where_it_would_overwrite_its_neighbour() -> None:
    space: Any = Text(2)
    memory = create_shared_memory(space, n=2)
    with pytest.raises(ValueError, match="longer"):
        write(space, 0, "123456789", memory)


class Echo(gymnasium.Env[Any, str]):
    """Shows the last action, at the top and inside."""

    observation_space = spaces.Dict({"text": Text(20), "pair": spaces.Tuple((Text(20), spaces.Discrete(9)))})
    action_space = Text(20)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return {"text": "begin", "pair": ("begin", 0)}, {}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return {"text": action, "pair": (action[::-1], len(action))}, 0.0, False, False, {}


def test_nested_texts_in_asynchronous_environments() -> None:
    envs = AsyncVectorEnv([Echo, Echo])
    try:
        first, _ = envs.reset()
        assert first["text"] == ("begin", "begin")
        seen, *_ = envs.step(("né\n", "🙂!"))
        assert seen["text"] == ("né\n", "🙂!")
        assert seen["pair"][0] == ("\nén", "!🙂")
        assert first["text"] == ("begin", "begin")  # a copy, not a view
    finally:
        envs.close()
