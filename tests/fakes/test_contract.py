"""The contract: the vendored types, and what is called a violation."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import contract
from tests.fakes.asking import Asker, asked
from tests.fakes.server import FakeSGLang
from tests.repository import ROOT

HEADER = 5
INSTALLED = ".venv-sglang/lib/python3*/site-packages/sglang/api/v1/api_types.py"


@pytest.mark.sglang
def test_the_vendored_types_are_those_of_the_wheel() -> None:
    found = sorted(ROOT.glob(INSTALLED))
    if not found:
        pytest.skip("no .venv-sglang here")
    vendored = (Path(__file__).parent / "sglang_api_types.py").read_text(encoding="utf-8").splitlines(keepends=True)
    assert "".join(vendored[HEADER:]) == found[0].read_text(encoding="utf-8")


def test_the_header_names_source_and_licence() -> None:
    head = (Path(__file__).parent / "sglang_api_types.py").read_text(encoding="utf-8").splitlines()[:HEADER]
    assert "0.5.23" in head[0]
    assert "Apache License" in head[1]
    assert set(head[-1]) == {"#", " ", "-"}
    licence = (Path(__file__).parent / "LICENSE-SGLANG.txt").read_text(encoding="utf-8")
    assert "Apache License" in licence
    assert "Copyright 2023-2024 SGLang Team" in licence


@pytest.mark.parametrize(
    ("route", "body", "says"),
    [
        ("/generate", {"text": "x", "sampling_params": {"foo": 1}}, "unknown field `foo`"),
        ("/generate", {"text": "x", "samplin_params": {}}, "'samplin_params' is no key SGLang knows"),
        ("/generate", {"text": 5}, "invalid type: integer `5`"),
        ("/generate", [], "not a JSON object"),
        ("/abort_request", {"rid": None}, "invalid type: null"),
        ("/update_weight_version", {}, "'new_version' is missing"),
        ("/tokenize", {"text": "x"}, "'text' is no key"),
    ],
)
def test_requests_that_break_it(route: str, body: Any, says: str) -> None:
    assert any(says in line for line in contract.problems_of_request(route, body))


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/generate", {"input_ids": [[1], [2]], "sampling_params": [{"n": 1}, {}], "rid": ["a", "b"], "stream": True}),
        ("/generate", {"text": "x", "return_logprob": True, "return_entropy": True}),
        ("/abort_request", {"rid": "a"}),
        ("/pause_generation", {"mode": "in_place"}),
        ("/v1/models", {}),
    ],
)
def test_requests_that_keep_it(route: str, body: Any) -> None:
    assert contract.problems_of_request(route, body) == []


META: dict[str, Any] = {
    "id": "a",
    "finish_reason": {"type": "stop", "matched": 2},
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "cached_tokens": 2,
    "cached_tokens_details": None,
    "reasoning_tokens": 0,
    "weight_version": "default",
    "num_retractions": 0,
    "dp_rank": None,
    "weight_versions": [{"version": "default", "start": 0, "end": 2}],
    "e2e_latency": 0.1,
    "output_token_logprobs": [[-1.0, 8, None], [0.0, 2, None]],
}
WHOLE = {"text": "x", "output_ids": [8, 2], "meta_info": META}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"completion_tokens": 3}, "3 completion_tokens, 2 output_ids"),
        ({"output_token_logprobs": [[-1.0, 9, None], [0.0, 2, None]]}, "are not output_ids"),
        ({"output_token_logprobs": [[-1.0, 9]]}, "3-element tuple"),
        ({"cached_tokens": 3}, "3 cached of 3"),
        ({"finish_reason": {"type": "tired"}}, "finish reason"),
        ({"weight_versions": [{"version": "a", "start": 0, "end": 1}]}, "do not cover"),
        ({"prompt_tokens": -1}, "invalid value"),
    ],
)
def test_answers_that_break_it(change: dict[str, Any], says: str) -> None:
    assert contract.problems_of_answer("/generate", WHOLE) == []
    answer = WHOLE | {"meta_info": META | change}
    assert any(says in line for line in contract.problems_of_answer("/generate", [WHOLE, answer]))


def test_answers_with_gaps() -> None:
    gap = {key: value for key, value in META.items() if key != "weight_version"}
    assert contract.problems_of_answer("/generate", WHOLE | {"meta_info": gap}) == [
        "/generate: meta_info lacks 'weight_version'"
    ]
    assert contract.problems_of_answer("/generate", {"text": "x"}) == ["/generate: an answer without meta_info"]
    assert contract.problems_of_event({"error": {"code": "x"}}) != []


def test_a_violation_fails_the_test_at_exit_and_an_expected_one_does_not() -> None:
    async def test(ask: Asker) -> None:
        await ask.post("/generate", text="hi", samplng_params={})

    with pytest.raises(AssertionError, match="'samplng_params' is no key SGLang knows"):
        asked(test, FakeSGLang())
    fake = FakeSGLang()

    async def meant(ask: Asker) -> None:
        with fake.expected("no key"):
            await ask.post("/generate", text="hi", foo=1)
        with pytest.raises(AssertionError, match="no violation"), fake.expected("no key"):
            await ask.post("/generate", text="hi")

    asked(meant, fake)
