"""A transformers model in this process: what it draws is what transformers would, however requests are batched."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("transformers")
import torch  # after importorskip: the extra may be missing

from arena.adapters.models.local import LocalModel
from arena.adapters.models.probe import probe
from arena.model import Completion, Constraint, ContextOverflow, ModelError, Request, Sampling
from tests.adapters.models import tiny
from tests.adapters.models.local_asking import GREEDY, HI, TEXTS, logprobs_of, one, prompt, together

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def net() -> Any:
    return tiny.model()


@pytest.fixture
def local(net: Any) -> LocalModel:
    return LocalModel(net, tiny.tokenizer(), name="tiny", version="7")


def plain(net: Any, ids: Sequence[int], start: int) -> torch.Tensor:
    """The log-probabilities of a whole vocabulary at each of the tokens from `start` on, by one plain forward pass."""
    with torch.no_grad():
        logits = net(torch.tensor([list(ids)])).logits[0, start - 1 : -1]
    found: torch.Tensor = logits.float().log_softmax(-1)
    return found


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma", "gpt2", "mistral"])
def test_greedy_batched_equals_greedy_alone_equals_transformers(kind: str) -> None:
    net = tiny.model(3, kind)
    requests = [Request(prompt_ids=prompt(text), sampling=GREEDY) for text in (*TEXTS, TEXTS[1])]
    batched = [answers[0].ids for answers in together(LocalModel(net, tiny.tokenizer()), requests)]
    alone = [one(LocalModel(net, tiny.tokenizer()), request).ids for request in requests]
    theirs = []
    for request in requests:
        ids = torch.tensor([request.prompt_ids])
        made = net.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        theirs.append(tuple(made[0, ids.shape[1] :].tolist()))
    assert batched == alone == theirs
    assert len(set(batched)) > 3


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_logprobs_are_those_of_a_plain_forward_pass(net: Any, local: LocalModel, temperature: float) -> None:
    sampling = Sampling(max_tokens=9, temperature=temperature)
    requests = [Request(prompt_ids=prompt(text), sampling=sampling) for text in TEXTS]
    for request, (answer,) in zip(requests, together(local, requests), strict=True):
        expected = logprobs_of(net, request.prompt_ids, answer.ids, temperature)
        assert answer.logprobs == pytest.approx(expected, abs=1e-5)
        assert answer.logprob_kind == ("raw" if temperature == 1 else f"temperature={temperature:g}")


def test_greedy_answers_tell_raw_logprobs(net: Any, local: LocalModel) -> None:
    answer = one(local, Request(prompt_ids=prompt("a"), sampling=GREEDY))
    assert answer.logprobs == pytest.approx(logprobs_of(net, prompt("a"), answer.ids), abs=1e-5)
    assert answer.logprob_kind == "raw"


def test_tokens_are_drawn_as_often_as_the_model_says(net: Any, local: LocalModel) -> None:
    before = prompt("what is your move?")
    answers = together(local, [Request(prompt_ids=before, sampling=Sampling(max_tokens=1), n=4000)])[0]
    counts = torch.bincount(torch.tensor([answer.ids[0] for answer in answers]), minlength=len(tiny.tokenizer()))
    expected = plain(net, [*before, 0], len(before))[0].exp()
    spread = (expected * (1 - expected) / 4000).sqrt()
    assert bool(((counts / 4000 - expected).abs() <= 5 * spread + 1e-3).all())


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(max_tokens=1, top_k=3), lambda p: p.argsort(descending=True)[:3].tolist()),
        (Sampling(max_tokens=1, top_p=0.5), lambda p: nucleus(p, 0.5)),
        (Sampling(max_tokens=1, top_p=1e-6), lambda p: [int(p.argmax())]),
        (Sampling(max_tokens=1, min_p=0.3), lambda p: (p >= 0.3 * p.max()).nonzero()[:, 0].tolist()),
    ],
)
def test_what_filters_leave_is_drawn_and_nothing_else(
    net: Any, local: LocalModel, sampling: Sampling, kept: Any
) -> None:
    before = prompt("what is your move?")
    answers = together(local, [Request(prompt_ids=before, sampling=sampling, n=600)])[0]
    probs = plain(net, [*before, 0], len(before))[0].exp()
    assert {answer.ids[0] for answer in answers} == set(kept(probs))


def nucleus(probs: torch.Tensor, mass: float) -> list[int]:
    """The likeliest tokens, as few as have that mass together."""
    found, left = [], mass
    for token in probs.argsort(descending=True).tolist():
        if left <= 0:
            break
        found.append(token)
        left -= float(probs[token])
    return found


def test_rows_of_a_batch_keep_their_own_sampling(net: Any, local: LocalModel) -> None:
    greedy = Request(prompt_ids=prompt("a"), sampling=GREEDY)
    free = Request(prompt_ids=prompt("a"), sampling=Sampling(max_tokens=30, top_k=40))
    short = Request(prompt_ids=prompt("bb"), sampling=Sampling(max_tokens=1, temperature=0.0))
    mixed = together(local, [free, greedy, short, free])
    assert mixed[1][0].ids == one(local, greedy).ids
    assert mixed[2][0].ids == one(local, short).ids
    assert len(mixed[2][0].ids) == 1
    assert mixed[0][0].ids != mixed[3][0].ids


def test_the_same_seed_draws_the_same_and_torchs_own_generator_is_left_alone(net: Any) -> None:
    requests = [Request(prompt_ids=prompt(text), sampling=Sampling(max_tokens=9)) for text in TEXTS]

    def drawn(seed: int) -> list[tuple[int, ...]]:
        return [answers[0].ids for answers in together(LocalModel(net, tiny.tokenizer(), seed=seed), requests)]

    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = drawn(5)
    assert torch.equal(torch.rand(3), expected)
    assert drawn(5) == first
    assert drawn(6) != first


def test_batches_may_be_smaller_than_what_waits(net: Any) -> None:
    requests = [Request(prompt_ids=prompt(text), sampling=GREEDY) for text in TEXTS]
    whole, parts = LocalModel(net, tiny.tokenizer()), LocalModel(net, tiny.tokenizer(), batch=2)
    ids = [answers[0].ids for answers in together(parts, requests)]
    assert ids == [answers[0].ids for answers in together(whole, requests)]


def test_an_answer_ends_at_its_end_token_which_is_no_text(local: LocalModel) -> None:
    answers = together(local, [Request(HI, sampling=Sampling(max_tokens=200, temperature=1.5), n=40)])[0]
    ended = [answer for answer in answers if answer.finish == "stop"]
    assert len(ended) > 10
    for answer in ended:
        assert answer.ids[-1] == 2
        assert 2 not in answer.ids[:-1]
        assert len(answer.logprobs) == len(answer.ids)
        assert "<|im_end|>" not in answer.text


def test_an_answer_that_is_cut_says_so(local: LocalModel) -> None:
    answers = together(local, [Request(HI, sampling=Sampling(max_tokens=4, temperature=2.0), n=200)])[0]
    assert {(answer.finish, answer.ids[-1] == 2) for answer in answers} == {("stop", True), ("length", False)}


def test_a_stop_text_ends_an_answer_and_stays_in_it(local: LocalModel) -> None:
    sampling = Sampling(max_tokens=60, temperature=0.0)
    free = one(local, Request(HI, sampling=sampling))
    mark = free.text[2:4]
    held = one(local, Request(HI, sampling=Sampling(max_tokens=60, temperature=0.0, stop=(mark, "never?!"))))
    assert held.finish == "stop"
    assert held.text == free.text[: free.text.index(mark) + 2]
    assert held.ids == free.ids[: len(held.ids)]


def test_scores_are_those_of_a_plain_forward_pass(net: Any, local: LocalModel) -> None:
    answers = [prompt(text) for text in ("a", "4 2", "resign", "a")]

    async def ask() -> Any:
        return await asyncio.gather(*[local.score(prompt(text), [*answers, ()]) for text in TEXTS])

    for text, scores in zip(TEXTS, asyncio.run(ask()), strict=True):
        for answer, row in zip(answers, scores.rows, strict=False):
            assert row == pytest.approx(logprobs_of(net, prompt(text), answer), abs=1e-5)
        assert scores.rows[-1] == ()


def test_what_was_sampled_is_scored_as_it_was_sampled(local: LocalModel) -> None:
    answer = one(local, Request(prompt_ids=prompt("hi"), sampling=Sampling(max_tokens=9)))
    assert asyncio.run(local.rescore(prompt("hi"), answer.ids)) == pytest.approx(answer.logprobs, abs=1e-5)


def test_dropout_is_off_for_an_answer_only() -> None:
    net = tiny.model(0, "gpt2").train()
    net.transformer.h[0].eval()
    model = LocalModel(net, tiny.tokenizer())
    request = Request(prompt_ids=prompt("hi"), sampling=GREEDY)
    assert one(model, request) is not None
    assert len({one(model, request).ids for _ in range(5)}) == 1
    assert net.training
    assert not net.transformer.h[0].mlp.training
    assert net.transformer.h[1].mlp.training
    assert all(parameter.grad is None and parameter.requires_grad for parameter in net.parameters())


def test_messages_are_written_by_the_template(local: LocalModel) -> None:
    async def ask() -> tuple[tuple[int, ...], tuple[int, ...]]:
        return await local.render(HI), await local.render(HI, reply=False)

    opened, closed = asyncio.run(ask())
    decode = tiny.tokenizer().decode
    assert decode(opened) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert decode(closed) == "<|im_start|>user\nhi<|im_end|>\n"
    said = one(local, Request(HI, sampling=GREEDY))
    assert said.ids == one(local, Request(prompt_ids=opened, sampling=GREEDY)).ids


def test_it_says_what_it_is(local: LocalModel) -> None:
    info = asyncio.run(local.info())
    assert (info.model, info.context, info.weight_version) == ("tiny", 2048, "7")
    assert info.server.startswith("transformers 5")
    assert set(info.features) == {"tokens", "logprobs", "score", "n"}
    host: Any = local._host
    assert info.details["parameters"] == f"{sum(p.numel() for p in host.model.parameters()):,}"
    other = tiny.tokenizer()
    other.chat_template = tiny.TEMPLATE.replace("<|im_start|>assistant", "<|im_start|>: ")
    changed = asyncio.run(LocalModel(tiny.model(), other).info())
    assert changed.tokenizer_hash == info.tokenizer_hash
    assert changed.template_hash != info.template_hash


def test_probe_finds_what_it_can_do(local: LocalModel) -> None:
    found = asyncio.run(probe(local))
    failed = {finding.what for finding in found.findings if not finding.works}
    assert failed <= {"prefix cache"}
    assert found.tokens_per_second > 0


def test_the_version_goes_with_every_answer(local: LocalModel) -> None:
    request = Request(HI, sampling=GREEDY)
    assert one(local, request).weight_versions == ((0, "7"),)
    local.version = "8"
    assert one(local, request).weight_versions == ((0, "8"),)
    local.version = ""
    assert one(local, request).weight_versions == ()


# What cannot be


def refused(model: LocalModel, request: Request) -> str:
    with pytest.raises(ModelError) as error:
        one(model, request)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_does_not_fit_is_a_context_overflow() -> None:
    model = LocalModel(tiny.model(context=16), tiny.tokenizer(), name="small")
    with pytest.raises(ContextOverflow, match="small: a prompt of 10 tokens and an answer of 7 need more than 16"):
        one(model, Request(prompt_ids=prompt("x" * 10), sampling=Sampling(max_tokens=7)))
    assert len(one(model, Request(prompt_ids=prompt("x" * 10), sampling=Sampling(max_tokens=6))).ids) <= 6


def test_what_it_cannot_do_is_an_error_in_one_line(local: LocalModel) -> None:
    size = len(tiny.tokenizer())
    assert f"ids are 0 to {size - 1}" in refused(local, Request(prompt_ids=(4, size)))
    assert f"ids are 0 to {size - 1}" in refused(local, Request(prompt_ids=(-1,)))
    assert "decode=score" in refused(local, Request(HI, constraint=Constraint("regex", "a|b")))
    with pytest.raises(ValueError, match="either messages or prompt_ids"):
        one(local, Request())
    with pytest.raises(ValueError, match="at least one token"):
        asyncio.run(local.score((), [(1,)]))


def test_a_template_that_refuses_says_why() -> None:
    tokenizer = tiny.tokenizer()
    tokenizer.chat_template = "{{ raise_exception('no system message,\nplease') }}"
    assert "refuses: no system message, please" in refused(LocalModel(tiny.model(), tokenizer), Request(HI))
    tokenizer.chat_template = None
    assert "chat_template" in refused(LocalModel(tiny.model(), tokenizer), Request(HI))


def test_broken_weights_are_told_to_all_who_asked() -> None:
    net = tiny.model()
    net.lm_head.weight.data.fill_(float("nan"))
    model = LocalModel(net, tiny.tokenizer())

    async def ask() -> list[Any]:
        return await asyncio.gather(*[model.complete(Request(HI)) for _ in range(3)], return_exceptions=True)

    told = asyncio.run(ask())
    assert [type(error) for error in told] == [ModelError] * 3
    assert "logits are not numbers" in str(told[0])
    assert len({id(error) for error in told}) == 3


def test_what_torch_raises_is_a_model_error(net: Any) -> None:
    class Broken(type(net)):  # type: ignore[misc]  # a class of transformers
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("out of memory:\ntried to allocate")

    broken = Broken(net.config)
    assert "RuntimeError: out of memory: tried" in refused(LocalModel(broken, tiny.tokenizer()), Request(HI))


def test_whoever_stops_waiting_does_not_stop_the_others(local: LocalModel) -> None:
    async def ask() -> Completion:
        tasks = [asyncio.create_task(local.complete(Request(HI, sampling=GREEDY))) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        return (await tasks[2])[0]

    assert asyncio.run(ask()).ids == one(local, Request(HI, sampling=GREEDY)).ids


def test_a_thread_gives_the_same(net: Any) -> None:
    requests = [Request(prompt_ids=prompt(text), sampling=GREEDY) for text in TEXTS]
    beside = LocalModel(net, tiny.tokenizer(), thread=True)
    within = LocalModel(net, tiny.tokenizer())
    assert [a[0].ids for a in together(beside, requests)] == [a[0].ids for a in together(within, requests)]
