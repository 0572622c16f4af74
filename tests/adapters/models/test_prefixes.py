"""Conversations go on from what was computed before: the same numbers, fewer tokens, nothing after weights changed."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("transformers")

import torch  # after importorskip: the extra may be missing

from arena.adapters.models.local import LocalModel
from arena.adapters.models.prefixes import Batch, Prefixes, Row
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.match import play
from arena.model import Completion, Request, Sampling
from arena.referee import Referee
from tests.adapters.models import tiny
from tests.adapters.models.local_asking import logprobs_of, one, prompt, together

pytestmark = pytest.mark.train
TURNS = (("a", "what is it?"), ("your turn", "no", "yes, go on"), ("b", "3"))


def counting(net: Any) -> list[int]:
    """The tokens of every forward pass to come."""
    seen = list[int]()
    net.register_forward_pre_hook(lambda _, args, given: seen.append(given["input_ids"].numel()), with_kwargs=True)
    return seen


def said(model: LocalModel, *, keys: bool = True, talks: int = 6) -> list[list[Completion]]:
    """Some conversations of three turns; what is told and what is answered differ in length."""
    before: list[tuple[int, ...]] = [prompt("rules of the game. you are " + "xo"[at % 2]) for at in range(talks)]
    found: list[list[Completion]] = [[] for _ in range(talks)]
    for turn in TURNS:
        before = [ids + prompt(turn[at % len(turn)]) for at, ids in enumerate(before)]
        asked = [
            Request(prompt_ids=ids, sampling=greedy(1 + 3 * at), affinity=f"talk {at}" if keys else "")
            for at, ids in enumerate(before)
        ]
        for at, (answer,) in enumerate(together(model, asked)):
            found[at].append(answer)
            before[at] += answer.ids
    return found


def greedy(tokens: int) -> Sampling:
    return Sampling(max_tokens=tokens, temperature=0.0)


def ids_of(talks: Sequence[Sequence[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[answer.ids for answer in talk] for talk in talks]


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma", "gpt2", "mistral"])
def test_what_was_kept_changes_nothing(kind: str) -> None:
    net = tiny.model(5, kind)
    kept = said(LocalModel(net, tiny.tokenizer()))
    assert ids_of(kept) == ids_of(said(LocalModel(net, tiny.tokenizer(), prefix_gb=0)))
    assert ids_of(kept) == ids_of(said(LocalModel(net, tiny.tokenizer()), keys=False))
    assert len({len(answer.ids) for talk in kept for answer in talk}) > 4
    cached = [answer.usage["cached_tokens"] for talk in kept for answer in talk[1:]]
    assert (min(cached) > 20) is (kind != "mistral")  # a sliding window is read anew


def test_logprobs_are_those_of_a_plain_pass_turn_after_turn() -> None:
    net = tiny.model(2)
    model = LocalModel(net, tiny.tokenizer())
    before = prompt("rules of the game")
    for turn in range(6):
        before += prompt(f"turn {turn}")
        answer = one(model, Request(prompt_ids=before, sampling=Sampling(max_tokens=5), affinity="talk"))
        assert answer.logprobs == pytest.approx(logprobs_of(net, before, answer.ids), abs=1e-5)
        before += answer.ids


def test_only_what_is_new_is_computed() -> None:
    net = tiny.model(2)
    model, seen = LocalModel(net, tiny.tokenizer()), counting(net)
    first = prompt("x" * 300)
    answer = one(model, Request(prompt_ids=first, sampling=Sampling(max_tokens=4), affinity="talk"))
    assert sum(seen) == 300 + len(answer.ids) - 1
    seen.clear()
    second = first + answer.ids + prompt("yz")
    again = one(model, Request(prompt_ids=second, sampling=Sampling(max_tokens=1), affinity="talk"))
    assert sum(seen) == 3  # the last token of the answer was drawn, but never read
    assert again.usage["cached_tokens"] == len(second) - 3
    seen.clear()
    one(model, Request(prompt_ids=second, sampling=Sampling(max_tokens=1), affinity="another"))
    assert sum(seen) == len(second)


def test_equal_prompts_and_what_all_begin_with_are_computed_once() -> None:
    net = tiny.model(2)
    model, seen = LocalModel(net, tiny.tokenizer()), counting(net)
    head = "x" * 200
    asked = [Request(prompt_ids=prompt(head + end), sampling=Sampling(max_tokens=1)) for end in ("a", "b", "b", "b")]
    together(model, asked)
    assert sum(seen) == 200 + 2


def test_a_conversation_that_was_rewritten_is_read_from_there_on() -> None:
    net = tiny.model(2)
    model = LocalModel(net, tiny.tokenizer())
    one(model, Request(prompt_ids=prompt("abcdefgh"), sampling=greedy(6), affinity="talk"))
    for text in ("abcdxyz", "abc", "zzz", "zzz"):
        answer = one(model, Request(prompt_ids=prompt(text), sampling=greedy(6), affinity="talk"))
        fresh = one(LocalModel(net, tiny.tokenizer()), Request(prompt_ids=prompt(text), sampling=greedy(6)))
        assert answer.ids == fresh.ids
        assert answer.logprobs == pytest.approx(fresh.logprobs, abs=1e-5)


def test_an_optimizer_makes_it_forget() -> None:
    net = tiny.model(2)
    model = LocalModel(net, tiny.tokenizer())
    ask = Request(prompt_ids=prompt("hello there"), sampling=greedy(4), affinity="talk")
    one(model, ask)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.3)
    net(torch.tensor([[5, 6, 7]])).logits.sum().backward()
    optimizer.step()
    answer = one(model, ask)
    assert answer.usage["cached_tokens"] == 0
    assert answer.logprobs == pytest.approx(logprobs_of(net, ask.prompt_ids, answer.ids), abs=1e-5)
    assert one(model, ask).usage["cached_tokens"] == len(ask.prompt_ids) - 1
    net.lm_head.weight.data.mul_(2)
    model.forget()
    assert one(model, ask).usage["cached_tokens"] == 0


def test_scores_go_on_from_there_too() -> None:
    net = tiny.model(2)
    model, seen = LocalModel(net, tiny.tokenizer()), counting(net)
    answers = [prompt("a"), prompt("bcd")]
    before = prompt("x" * 100)
    for _ in range(3):
        scores = asyncio.run(model.score(before, answers, "talk")).rows
        for answer, row in zip(answers, scores, strict=True):
            assert row == pytest.approx(logprobs_of(tiny.model(2), before, answer), abs=1e-5)
        before += prompt("yz")
    assert seen == [100, 4, 2, 4, 2, 4]  # a prompt, then both answers at once without their last tokens


def test_memory_is_bounded_and_the_longest_unused_go() -> None:
    def batch(rows: int) -> Batch:
        return Batch([(torch.zeros(rows, 1, 4, 1), torch.zeros(rows, 1, 4, 1))], torch.ones(rows, 4, dtype=torch.long))

    ids = (1, 2, 3, 4)
    size = batch(2).bytes
    prefixes = Prefixes(2 * size)
    first = batch(2)
    prefixes.keep("a", Row(first, 0, ids))
    prefixes.keep("b", Row(first, 1, ids))
    prefixes.keep("c", Row(batch(2), 0, ids))
    assert prefixes.bytes == 2 * size
    assert prefixes.longest("a", (*ids, 5)) == Row(first, 0, ids)
    prefixes.keep("d", Row(batch(2), 0, ids))
    assert prefixes.bytes <= 2 * size
    assert prefixes.longest("d", (*ids, 5)) is not None
    assert prefixes.longest("b", (*ids, 5)) is None
    for _ in range(5):
        prefixes.keep("d", Row(batch(2), 0, ids))
    assert prefixes.bytes <= 2 * size
    prefixes.forget()
    assert (prefixes.bytes, prefixes.longest("d", ids)) == (0, None)
    prefixes.keep("", Row(first, 0, ids))
    assert prefixes.bytes == 0


def test_the_longest_known_beginning_leaves_a_token_to_read() -> None:
    prefixes = Prefixes(1 << 20)
    held = Batch([(torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 4, 1))], torch.ones(1, 4, dtype=torch.long))
    prefixes.keep("a", Row(held, 0, (1, 2, 3, 4)))

    def known(*ids: int) -> int:
        row = prefixes.longest("a", ids)
        return len(row.ids) if row is not None else 0

    assert [known(1, 2, 3, 4, 5), known(1, 2, 3, 4), known(1, 2), known(1), known(1, 9, 3), known(9, 2)] == [
        4, 3, 1, 0, 1, 0,
    ]  # fmt: skip


def test_with_hardly_any_memory_games_come_out_the_same() -> None:
    """Batches are pushed out while their conversations go on."""
    net = tiny.model(3)

    def games(gb: float) -> Any:
        model = LocalModel(net, tiny.tokenizer(), prefix_gb=gb)
        agent = LLMAgent(model, Prompting(answer="plain"), greedy(4))

        async def all_of_them() -> Any:
            rule = Referee("random")
            return await asyncio.gather(*[play("TicTacToe-v0", [agent, "random"], s, {}, rule) for s in range(12)])

        found = asyncio.run(all_of_them())
        return [[turn.attempts[0].raw for turn in e.turns] for e in found], model

    much, _ = games(1)
    little, model = games(0.002)
    assert much == little
    assert 0 < model._host.generator.prefixes.bytes <= 0.002 * 2**30
