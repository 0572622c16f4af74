"""Reading and writing what goes over SGLang's wire, without a server."""

import json
from typing import Any

import msgspec
import pytest

from arena.adapters.models.sglang_wire import (
    answer_of,
    answers_of,
    completion,
    failure,
    generate,
    params,
    retryable,
    scores,
    scoring,
    streamed,
)
from arena.model import Completion, Constraint, ContextOverflow, ModelError, Request, Sampling
from tests.fakes.sglang_api_types import GenerateRequest

PROMPT = (5, 6, 7)
ASKED = Request(prompt_ids=PROMPT, sampling=Sampling(temperature=0.7))


def told(**changes: Any) -> dict[str, Any]:
    """An answer as the real server writes it; `changes` to the top level, or to meta_info where a key is there."""
    meta: dict[str, Any] = {
        "id": "x",
        "finish_reason": {"type": "stop", "matched": 2},
        "prompt_tokens": 3,
        "completion_tokens": 3,
        "cached_tokens": 2,
        "weight_version": "v2",
        "weight_versions": [{"version": "v1", "start": 0, "end": 1}, {"version": "v2", "start": 1, "end": 3}],
        "output_token_logprobs": [[-0.5, 10, None], [-0.25, 11, None], [-0.125, 2, None]],
        "e2e_latency": 0.1,
    }
    top: dict[str, Any] = {"text": "Hi you", "output_ids": [10, 11, 2]}
    for key, value in changes.items():
        (meta if key in meta or key == "input_token_logprobs" else top)[key] = value
    return {key: value for key, value in {**top, "meta_info": meta}.items() if value is not ...}


def read(request: Request = ASKED, *, logprobs: bool = True, **changes: Any) -> Completion:
    (answer,) = answers_of(json.dumps(told(**changes)).encode(), "http://s")
    return completion(answer, request, PROMPT, logprobs=logprobs, seconds=0.5)


def test_an_answer_is_read_whole() -> None:
    assert read() == Completion(
        text="Hi you",
        finish="stop",
        ids=(10, 11, 2),
        logprobs=(-0.5, -0.25, -0.125),
        logprob_kind="temperature=0.7",
        usage={"prompt_tokens": 3, "cached_tokens": 2, "completion_tokens": 3, "seconds": 0.5},
        weight_versions=((0, "v1"), (1, "v2")),
    )


def test_without_spans_the_one_version_counts() -> None:
    assert read(weight_versions=None).weight_versions == ((0, "v2"),)
    assert read(weight_versions=None, weight_version=None).weight_versions == ()


def test_ids_that_were_lost_come_from_the_log_probabilities() -> None:
    found = read(output_ids=None)
    assert (found.ids, found.gaps) == ((10, 11, 2), ())


@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        ({"output_ids": None, "output_token_logprobs": None}, "ids: the answer's tokens did not come"),
        ({"output_ids": [10, 11], "output_token_logprobs": [[-1.0, 10, None], [-1.0, 11, None]]}, "ids: 2 of 3 tokens"),
        ({"output_token_logprobs": None}, "logprobs: did not come"),
        ({"output_token_logprobs": [[-0.5, 10, None]]}, "logprobs: are of other tokens"),
        ({"output_token_logprobs": [[None, 10, None], [-1, 11, None], [-1, 2, None]]}, "logprobs: some are null"),
        ({"prompt_tokens": 4}, "prompt: 3 tokens were sent, the server read 4"),
        ({"prompt_token_ids": [5, 6, 8]}, "prompt: the server read other tokens"),
    ],
)
def test_what_is_missing_is_a_gap(changes: dict[str, Any], gap: str) -> None:
    assert [line for line in read(**changes).gaps if line.startswith(gap)]


def test_what_was_aborted_while_it_waited_has_no_gap() -> None:
    found = read(
        finish_reason={"type": "abort", "message": "Abort in waiting queue"},
        output_ids=[],
        output_token_logprobs=[],
        prompt_tokens=0,
        completion_tokens=0,
    )
    assert (found.finish, found.ids, found.gaps) == ("abort", (), ())


def test_log_probabilities_that_were_not_asked_for_are_no_gap() -> None:
    found = read(output_token_logprobs=None, logprobs=False)
    assert (found.logprobs, found.logprob_kind, found.gaps) == ((), "", ())


@pytest.mark.parametrize(
    ("reason", "finish", "why"),
    [
        ({"type": "stop", "matched": "###"}, "stop", ""),
        ({"type": "length", "length": 3}, "length", ""),
        ({"type": "abort", "message": "Aborted\nby request"}, "abort", "Aborted by request"),
        ({"type": "abort"}, "abort", "abort"),
        ({"type": "something new"}, "abort", "something new"),
    ],
)
def test_why_an_answer_ended(reason: dict[str, Any], finish: str, why: str) -> None:
    found = read(finish_reason=reason)
    assert (found.finish, found.reason, found.ids) == (finish, why, (10, 11, 2))


def test_a_stop_text_the_server_trimmed_is_put_back_where_special_tokens_are_kept() -> None:
    tools = ({"type": "function", "function": {"name": "f"}},)
    asked = msgspec.structs.replace(ASKED, tools=tools, sampling=Sampling(stop=("###",)))
    assert read(asked, finish_reason={"type": "stop", "matched": "###"}).text == "Hi you###"
    assert read(asked).text == "Hi you"
    assert read(finish_reason={"type": "stop", "matched": "###"}).text == "Hi you"


def test_lone_surrogates_do_not_survive() -> None:
    (answer,) = answer_of({"text": "a\ud800b", "output_ids": [], "meta_info": {}}, "s")
    assert completion(answer, ASKED, PROMPT, logprobs=False, seconds=0).text == "a\ufffdb"
    assert answers_of(b'{"text": "a\\ud800b", "output_ids": [], "meta_info": {}}', "s") == [answer]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b'{"text": 5}',
        b'{"meta_info": []}',
        b'{"text": "x',
        b"[1]",
        b"null",
        b'{"text": "\xff"}',
        b'{"text": "\\ud800", "output_ids": 5}',
        b'{"text": "\\ud800',
    ],
)
def test_what_is_no_answer_is_an_error(body: bytes) -> None:
    with pytest.raises(ModelError, match=r"http://s: not an answer of /generate .*: is it an SGLang server\?"):
        answers_of(body, "http://s")


def test_the_engines_answers_are_read_alike() -> None:
    assert answer_of(told(), "s") == answers_of(json.dumps(told()).encode(), "s")
    assert len(answer_of([told(), told()], "s")) == 2
    with pytest.raises(ModelError, match="not an answer"):
        answer_of({"text": 5}, "s")


def body(request: Request, **options: Any) -> dict[str, Any]:
    made = generate(request, request.prompt_ids, "rid", logprobs=True, prompt_ids=False, **options)
    sent: dict[str, Any] = json.loads(msgspec.json.encode(made))
    GenerateRequest.from_json_value(sent)
    return sent


def test_a_request_is_written_as_the_contract_has_it() -> None:
    sent = body(msgspec.structs.replace(ASKED, n=2, priority=3), lora_path="a", session_id="s", stream=True)
    assert sent == {
        "input_ids": [5, 6, 7],
        "rid": "rid",
        "return_logprob": True,
        "stream": True,
        "lora_path": "a",
        "session_id": "s",
        "priority": 3,
        "sampling_params": {
            "max_new_tokens": 1024,
            "temperature": 0.7,
            "top_p": 1.0,
            "top_k": -1,
            "min_p": 0.0,
            "n": 2,
            "skip_special_tokens": True,
            "spaces_between_special_tokens": False,
        },
    }


@pytest.mark.parametrize("kind", ["regex", "json_schema", "ebnf"])
def test_a_constraint_is_named_by_its_kind(kind: Any) -> None:
    sent = body(msgspec.structs.replace(ASKED, constraint=Constraint(kind, "x")))["sampling_params"]
    assert {key: sent.get(key) for key in ("regex", "json_schema", "ebnf") if key in sent} == {kind: "x"}


def test_stop_texts_stay_in_the_answer() -> None:
    assert params(Sampling(stop=("#",))).no_stop_trim
    assert not params(Sampling()).no_stop_trim
    special = params(Sampling(stop=("#",)), special=True)
    assert (special.no_stop_trim, special.skip_special_tokens) == (False, False)


def test_scores_are_asked_from_the_last_token_of_the_prompt() -> None:
    sent = json.loads(msgspec.json.encode(scoring(PROMPT, [(1,), (2, 3)], "r")))
    GenerateRequest.from_json_value(sent)
    assert (sent["input_ids"], sent["logprob_start_len"], sent["rid"]) == (
        [[5, 6, 7, 1], [5, 6, 7, 2, 3]],
        2,
        ["r-0000", "r-0001"],
    )
    assert (sent["sampling_params"]["max_new_tokens"], sent["sampling_params"]["temperature"]) == (0, 1.0)


def test_scores_are_read_after_the_null() -> None:
    entries = [[None, 7, None], [-1.5, 8, None], [-2.5, 9, None]]
    answers = answer_of(told(input_token_logprobs=entries), "s")
    assert scores(answers, [(8, 9)], "s") == [(-1.5, -2.5)]
    with pytest.raises(ModelError, match="not those of the answer"):
        scores(answers, [(8, 1)], "s")
    with pytest.raises(ModelError, match="2 answers were to be scored, 1"):
        scores(answers, [(8, 9), (8,)], "s")


def test_of_a_stream_the_last_lines_count() -> None:
    lines = {1: json.dumps(told(text="b", index=1)).encode(), 0: json.dumps(told(text="a", index=0)).encode()}
    assert [answer.text for answer in streamed(lines, "s")] == ["a", "b"]


def test_a_stream_of_parts_is_refused() -> None:
    with pytest.raises(ModelError, match="--incremental-streaming-output"):
        streamed({0: json.dumps(told(output_ids=[2])).encode()}, "s")


@pytest.mark.parametrize(
    ("line", "again"),
    [
        (told(), ""),
        (told(finish_reason={"type": "abort", "message": "full", "status_code": 503}), "full"),
        (told(finish_reason={"type": "abort", "message": "by request"}), ""),
        (told(finish_reason={"type": "abort", "message": "too long", "status_code": 400}), ""),
        (told(finish_reason=None), "the answer broke off"),
        ({"error": {"message": "busy", "code": 503}}, "busy"),
        ({"error": {"message": "no", "code": 400}}, ""),
    ],
)
def test_what_is_asked_again(line: dict[str, Any], again: str) -> None:
    assert retryable(answer_of(line, "s")) == again


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        (
            {"error": {"message": "Failed to compile regex", "code": 400}},
            ModelError,
            "s refuses the request: Failed to",
        ),
        ({"error": {"message": "longer than the model's context length", "code": 400}}, ContextOverflow, "context"),
        (
            told(finish_reason={"type": "abort", "message": "maximum context length", "status_code": 400}),
            ContextOverflow,
            "",
        ),
    ],
)
def test_what_is_refused(line: dict[str, Any], kind: type[ModelError], words: str) -> None:
    error = failure(answer_of(line, "s"), "s")
    assert type(error) is kind
    assert words in str(error)
    assert failure(answer_of(told(), "s"), "s") is None
