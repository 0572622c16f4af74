"""The table of formats, and formats from spec strings."""

import inspect

import pytest

from arena.adapters.datasets.format import Format
from arena.adapters.datasets.formats import FORMATS, load_format, make_format, options_of_format
from arena.adapters.datasets.writers import kind_of
from arena.cli.catalogue import meanings, summary
from tests.adapters.datasets.toys import Seats


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "seats", "tests.adapters.datasets.toys:Seats")


@pytest.mark.parametrize("name", [*FORMATS, "seats"])
def test_every_format_says_what_it_is(name: str) -> None:
    cls = load_format(name)
    assert issubclass(cls, Format)
    assert cls.name == name
    assert all((cls.consumer, cls.checked, summary(cls)))
    assert cls.unit in ("seat", "episode", "group")
    assert options_of_format(name).keys() == meanings(cls).keys()
    for parameter in options_of_format(name).values():
        assert parameter.default is not inspect.Parameter.empty
    form = make_format(name)
    assert kind_of(form, "jsonl" if "jsonl" in form.files else "") in form.files
    if "parquet" in form.files:
        pytest.importorskip("pyarrow")
        schema = form.schema()
        assert schema is not None
        assert len(schema.names) == len(set(schema.names)) > 0


def test_options_by_spec() -> None:
    made = make_format("seats?lacks=random&barren=b")
    assert isinstance(made, Seats)
    assert (made.lacks, made.barren) == ("random", "b")
    assert make_format(made) is made


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "has no name"),
        ("seat", "unknown format 'seat'. Did you mean 'seats'"),
        ("seats?lack=x", "unknown option of format seats 'lack'. Did you mean 'lacks'. Allowed: barren, lacks"),
        ("seats?lacks=1", "option lacks of format seats must be str"),
        ("seats:x", "a format takes no target"),
    ],
)
def test_refusals(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", ".").replace("'.", "'.*")):
        make_format(spec)
