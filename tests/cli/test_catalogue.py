"""What the catalogue says of options, and where it reads it."""

import inspect
import re
from random import Random

import pytest
from click.testing import CliRunner, Result

from arena.cli.catalogue import meanings, summary
from arena.cli.main import cli
from arena.registry import agent_names, game_ids, load, load_agent, options_of
from arena.task import Task


def arena(*args: str) -> Result:
    return CliRunner().invoke(cli, args)


class Base:
    """What it is, in a
    sentence.

    More of it.

    Options:
        one: the first, 1 to 9
        two: the second, and a meaning that is
            longer than a line: 0 to 3

    Not an option: here.
    """


class Derived(Base):
    """Another.

    Options:
        three: the third
        one: the first, 1 to 5
    """


class Silent(Derived):
    pass


def test_options_are_read_from_their_section_and_those_of_the_bases() -> None:
    assert summary(Base) == "What it is, in a sentence."
    two = "the second, and a meaning that is longer than a line: 0 to 3"
    assert meanings(Base) == {"one": "the first, 1 to 9", "two": two}
    assert meanings(Derived) == meanings(Silent) == {"one": "the first, 1 to 5", "two": two, "three": "the third"}
    assert meanings(int) == {}


@pytest.mark.parametrize("game_id", game_ids())
def test_every_option_of_every_game_is_described_with_its_range(game_id: str) -> None:
    said = meanings(load(game_id))
    options = options_of(load(game_id))
    if issubclass(load(game_id), Task) and "item" not in options:
        said.pop("item")
    assert said.keys() == options.keys()
    for name, parameter in options.items():
        assert re.search(r"\d|true or false|one or more|Notation", said[name]), said[name]
        if isinstance(parameter.default, bool):
            assert said[name].startswith("true or false; "), name
    assert summary(load(game_id)).endswith(".")


RANGED = [(i, name) for i in game_ids() for name, p in options_of(load(i)).items() if type(p.default) is int]


@pytest.mark.parametrize(("game_id", "name"), RANGED)
def test_the_range_told_is_the_range_allowed(game_id: str, name: str) -> None:
    said = meanings(load(game_id))[name]
    told = re.search(r"(\d+) to (\d+)", said) or re.search(r"(\d), \d or (\d)", said)
    if told is None:
        pytest.skip("the range depends on another option")
    low, high = int(told[1]), int(told[2])
    for value in (low, high):
        load(game_id).initial(Random(0), **{name: value})
    for value in (low - 1, high + 1):
        if value == 0 and "0:" in said:
            continue
        with pytest.raises(ValueError, match=f"{name}="):
            load(game_id).initial(Random(0), **{name: value})


@pytest.mark.parametrize("name", agent_names())
def test_every_option_of_every_agent_is_described(name: str) -> None:
    try:
        cls = load_agent(name)
    except ValueError as missing:
        pytest.skip(str(missing))
    options = inspect.signature(cls).parameters.keys() - {"name"}
    if name != "sb3" or cls.__module__.startswith("arena."):
        assert meanings(cls).keys() == options
    done = arena("agents", name)
    assert done.exit_code == 0
    assert done.output.startswith(f"{name}  {summary(cls)[:40]}")
    assert all(meaning[:60] in done.output for meaning in meanings(cls).values())
    assert "inspect" not in done.output


def test_an_agent_is_shown_with_what_its_options_mean() -> None:
    done = arena("agents", "mcts")
    assert "  c: float = 1.0\n      how much it explores" in done.output
    assert "A spec: mcts?simulations=200" in done.output
    wrong = arena("agents", "mtcs")
    assert wrong.exit_code == 2
    assert "Did you mean 'mcts'?" in wrong.stderr


@pytest.mark.parametrize("game_id", game_ids())
def test_a_game_is_shown_without_words_for_programmers(game_id: str) -> None:
    shown = arena("games", game_id).output
    assert not re.search(r"ValueError|rng|`|Raises|See `", shown)
    assert all(f"  {name}: " in shown for name in options_of(load(game_id)))


def test_an_option_is_shown_with_type_default_and_meaning() -> None:
    shown = arena("games", "LiarsDice").output
    assert "  wild: int = 0\n      the face that counts as every face, 1 to the number of sides; 0: none\n" in shown
