"""How tests ask a model in this process, and what a plain forward pass says of an answer."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch  # after importorskip: the extra may be missing

from arena.adapters.models.local import LocalModel
from arena.model import Completion, Message, Request, Sampling
from tests.adapters.models import tiny

HI = (Message("user", "hi"),)
GREEDY = Sampling(max_tokens=12, temperature=0.0)
TEXTS = ("a", "what is your move?", "x" * 40, "one, two, three", "rules: take a stone. 1", "rules: take a stone. 22")


def together(model: LocalModel, requests: Sequence[Request]) -> list[tuple[Completion, ...]]:
    """The answers to requests that wait at the same time."""

    async def ask() -> list[tuple[Completion, ...]]:
        return list(await asyncio.gather(*map(model.complete, requests)))

    return asyncio.run(ask())


def one(model: LocalModel, request: Request) -> Completion:
    return together(model, [request])[0][0]


def prompt(text: str) -> tuple[int, ...]:
    return tuple(tiny.tokenizer().encode(text, add_special_tokens=False))


def logprobs_of(net: Any, before: Sequence[int], answer: Sequence[int], temperature: float = 1.0) -> list[float]:
    ids = [*before, *answer]
    with torch.no_grad():
        logits = net(torch.tensor([ids])).logits[0, len(before) - 1 : -1].float() / temperature
    rows = logits.log_softmax(-1)
    return [float(row[token]) for row, token in zip(rows, answer, strict=True)]
