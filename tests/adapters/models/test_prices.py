"""Prices from files and options, and what is wrong with them."""

from pathlib import Path

import msgspec
import pytest

from arena.adapters.models.prices import Price, price_of, read_prices
from arena.adapters.models.settings import Settings

FILE = """
["org/model-1"]
input = 2
cached = 0.5
output = 8

[gpt-4.1]
input = 1
output = 4.0

[gpt-4.1-mini]
input = 0.4
output = 1.6
"""


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.toml"
    path.write_text(FILE)
    return str(path)


def test_the_file_is_read_with_quotes_or_without(prices: str) -> None:
    assert list(read_prices(prices)) == ["org/model-1", "gpt-4.1", "gpt-4.1-mini"]
    assert price_of(Settings(prices=prices), "gpt-4.1") == Price(1, 4)
    assert price_of(Settings(prices=prices), "org/model-1") == Price(2, 8, 0.5)


def test_without_prices_there_is_no_cost() -> None:
    assert price_of(Settings(), "any") is None


def test_options_win_over_the_file_and_need_none(prices: str) -> None:
    assert price_of(Settings(prices=prices, input_price=3.0), "gpt-4.1") == Price(3, 4)
    assert price_of(Settings(input_price=3.0, output_price=0.0, cached_price=1.0), "any") == Price(3, 0, 1)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({}, 0),
        ({"prompt_tokens": 1_000_000}, 2),
        ({"prompt_tokens": 1_000_000, "cached_tokens": 1_000_000}, 0.5),
        (
            {"prompt_tokens": 1000, "cached_tokens": 400, "completion_tokens": 100},
            (600 * 2 + 400 * 0.5 + 100 * 8) / 1e6,
        ),
        ({"cached_tokens": 10}, 10 * 0.5 / 1e6),
    ],
)
def test_cost(usage: dict[str, float], cost: float) -> None:
    assert Price(2, 8, 0.5).cost(usage) == pytest.approx(cost)


def test_cached_tokens_cost_as_much_as_others_unless_said() -> None:
    usage = {"prompt_tokens": 1000, "cached_tokens": 400}
    assert Price(2, 8).cost(usage) == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a", "not TOML"),
        ("input = 3", r'input=3: write a table a model: \["name"\]'),
        ("[a]\ninput = 1", "a: .*output.*allowed are input, cached and output"),
        ("[a]\ninput = 1\noutput = 2\noutputs = 3", "unknown field `outputs`"),
        ("[a]\ninput = '1'\noutput = 2", "Expected `float`"),
        ("[a]\ninput = -1\noutput = 2", "a: input=-1: a price is 0 or more"),
        ("[a]\ninput = nan\noutput = 2", "a: input=nan"),
        ("[a]\ninput = 1\noutput = inf", "a: output=inf"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as caught:
        read_prices(path)
    assert str(path) in str(caught.value) or "write a table" in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"prices=.*none\.toml: No such file"):
        price_of(Settings(prices=str(tmp_path / "none.toml")), "a")


def test_a_binary_file_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not TOML"):
        read_prices(tmp_path / "p")


def test_an_unlisted_model_is_an_error_that_names_those_listed(prices: str) -> None:
    with pytest.raises(ValueError, match=r"gpt-4\.1-nano is not listed; there are gpt-4\.1-mini, gpt-4\.1"):
        price_of(Settings(prices=prices), "gpt-4.1-nano")


@pytest.mark.parametrize("given", [{"input_price": 1.0}, {"output_price": 1.0}, {"cached_price": 1.0}])
def test_half_a_price_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give input_price and output_price"):
        price_of(msgspec.convert(given, Settings), "a")
