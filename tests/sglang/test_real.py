"""The recipe brings up a server that does what agents need, and a router before it."""

import pytest

from tests.sglang.server import Endpoint, Router

pytestmark = pytest.mark.sglang
CAPITAL = [504, 3575, 282, 4649, 314]  # "The capital of France is"


def generate(server: Endpoint) -> dict[str, object]:
    """Four tokens, always the same."""
    sampling = {"temperature": 0, "max_new_tokens": 4}
    answer = server.post("/generate", {"input_ids": CAPITAL, "sampling_params": sampling, "return_logprob": True})
    assert isinstance(answer, dict)
    return answer


def test_the_server_says_what_it_is(sglang: Endpoint) -> None:
    told = sglang.get("/model_info")
    assert told["is_generation"] is True
    assert told["weight_version"]
    assert sglang.get("/v1/models")["data"][0]["id"] == told["served_model_name"]


def test_tokens_in_and_tokens_out(sglang: Endpoint) -> None:
    answer = generate(sglang)
    assert str(answer["text"]).startswith(" Paris")
    meta = answer["meta_info"]
    assert isinstance(meta, dict)
    assert [token for _, token, _ in meta["output_token_logprobs"]] == answer["output_ids"]
    assert all(logprob <= 0 for logprob, _, _ in meta["output_token_logprobs"])
    assert meta["prompt_tokens"] == len(CAPITAL)


def test_a_regex_is_obeyed(sglang: Endpoint) -> None:
    sampling = {"temperature": 1, "max_new_tokens": 8, "regex": r"\[[0-8]\]"}
    text = sglang.post("/generate", {"text": "Pick a square: ", "sampling_params": sampling})["text"]
    assert text[0] + text[-1] == "[]"
    assert text[1:-1] in set("012345678")


def test_the_router_hands_on_to_its_worker(sglang: Endpoint, router: Router) -> None:
    assert router.url != sglang.url
    assert router.get("/workers")["total"] == 1
    assert generate(router)["output_ids"] == generate(sglang)["output_ids"]
