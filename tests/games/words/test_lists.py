import hashlib
import pickle
import timeit
from pathlib import Path

import pytest

from arena.game import Actions
from arena.games.words import lists
from tests.games.words.make_lists import NOT_ASKED, REFUSED, ROMAN
from tests.games.words.make_lists import lists as made

SIZES = {4: (1_554, 3_332), 5: (2_392, 6_699), 6: (4_110, 11_152)}


@pytest.mark.parametrize("length", lists.LENGTHS)
def test_the_lists_are_words_of_one_length_in_order(length: int) -> None:
    answers, guesses = lists.answers(length), lists.guesses(length)
    assert (len(answers), len(guesses)) == SIZES[length]
    assert all(len(word) == length and word.isascii() and word.isalpha() and word.islower() for word in guesses)
    assert list(answers) == sorted(set(answers))
    assert list(guesses) == sorted(set(guesses))
    assert set(answers) <= set(guesses)
    assert not NOT_ASKED & set(answers)
    assert not REFUSED & set(guesses)
    assert not [word for word in guesses if ROMAN.fullmatch(word)]


def test_the_same_words_are_asked_for_ever() -> None:
    """Another list is another game: a change here needs a new version of the id."""
    text = "".join(
        word for length in lists.LENGTHS for words in (lists.answers, lists.guesses) for word in words(length)
    )
    assert hashlib.blake2b(text.encode(), digest_size=8).hexdigest() == "9021e96ef52450c1"


def test_the_lists_are_made_by_the_rules_of_the_script() -> None:
    common = {"cards", "glass", "chaos", "crane", "abc", "Paris", "it's", "fagot"}
    large = {"card", "glas", "zebra", "cranes", "xcvii", "civic", "contd"}
    assert made(common, large, 5) == (
        ["chaos", "crane", "glass"],
        ["cards", "chaos", "civic", "crane", "glass", "zebra"],
    )


def test_the_licence_lies_beside_the_lists() -> None:
    text = Path(lists.__file__).with_name("LICENSE-SCOWL.txt").read_text(encoding="utf-8")
    assert "Copyright 2000-2011 by Kevin Atkinson" in text
    assert "Permission to use, copy, modify, distribute and sell these word" in text
    assert "WordNet 1.6 Copyright 1997 by Princeton University" in text


def test_a_long_list_of_actions_is_a_tuple_with_fast_membership() -> None:
    words = lists.guesses(6)
    assert isinstance(words, Actions)
    assert words == tuple(words)
    assert hash(words) == hash(tuple(words))
    assert words.index("zombie") == list(words).index("zombie")
    assert words[-1] in words
    assert "zzzzzz" not in words
    assert None not in words
    copy = pickle.loads(pickle.dumps(words))
    assert type(copy) is Actions
    assert copy == words
    assert "zombie" in copy
    plain = tuple(words)
    fast = min(timeit.repeat(lambda: words[-1] in words, number=20, repeat=3))
    slow = min(timeit.repeat(lambda: words[-1] in plain, number=20, repeat=3))
    assert fast * 20 < slow
