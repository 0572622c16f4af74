"""Shown events: one line each, whatever a player says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.game import Event
from arena.text import clean, mask_secrets, quote, show, transcript

ANY = st.text(st.characters(exclude_categories=()), max_size=60)


@given(ANY)
def test_what_a_player_says_stays_on_one_line_in_its_quotes(said: str) -> None:
    line = show(Event(said, sender=2))
    assert len(line.splitlines()) == 1
    assert line.startswith('Player 2: "')
    assert line.endswith('"')
    inner = line[len('Player 2: "') : -1]
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")
    line.encode()  # no lone surrogate is left


@given(ANY, ANY)
def test_quoting_loses_nothing(one: str, other: str) -> None:
    assert (quote(one) == quote(other)) == (one == other)


@pytest.mark.parametrize("char", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\u202e", "\u200b"])
def test_characters_that_break_or_hide_a_line_are_written_out(char: str) -> None:
    assert char not in quote(f"a{char}b")
    assert "\\" in quote(f"a{char}b")


def test_ordinary_text_in_any_script_is_left_alone() -> None:
    assert quote("Ünïcode ♞ 日本語 🎲") == '"Ünïcode ♞ 日本語 🎲"'


def test_whispers_name_their_audience() -> None:
    assert show(Event("psst", 0, (0, 3))) == 'Player 0 (to Player 3): "psst"'
    assert show(Event("Night falls.")) == "Night falls."


def test_a_transcript_is_the_events_and_then_the_observation() -> None:
    assert transcript([Event("Start."), Event("hi", 1)], "Your turn.") == 'Start.\nPlayer 1: "hi"\nYour turn.'
    assert transcript([], "Your turn.") == "Your turn."


@given(ANY)
def test_clean_text_can_be_encoded_and_keeps_its_length(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    if not any(0xD800 <= ord(char) < 0xE000 for char in text):
        assert cleaned == text


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert clean("a\ud800b") == "a\ufffdb"


@pytest.mark.parametrize(
    "told",
    [
        "Authorization: Bearer hunter2",
        "authorization: Basic hunter2",
        "api_key=hunter2",
        '{"api_key": "hunter2", "n": 1}',
        "access-token: hunter2",
        "password: hunter2!",
        "sk-hunter2 is no key",
    ],
)
def test_keys_are_masked(told: str) -> None:
    assert "hunter2" not in mask_secrets(told)


@pytest.mark.parametrize("told", ["a secret role", "SecretMafia: basic rules", "no password was given", "tokens: 5"])
def test_words_that_only_sound_like_keys_stay(told: str) -> None:
    assert mask_secrets(told) == told
