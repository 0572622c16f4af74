"""Generating: tokens drawn from a transformers model, many prompts at once. Needs torch and transformers.

Why not `model.generate`: it draws with the global generator, one way of sampling for the whole batch, and computes
a prompt as often as it stands in the batch. Here equal prompts are computed once, and what all prompts of a batch begin
with (rules, a system's message) is computed once for all of them.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from arena.model import ModelError, Sampling

__all__ = ["Drawn", "Generator", "Question"]

Ids = tuple[int, ...]
_SHARED = 8  # tokens that prompts must begin with in common for it to be worth a pass of its own


class Question(NamedTuple):
    """A prompt and how its answer is drawn."""

    prompt: Ids
    sampling: Sampling


class Drawn(NamedTuple):
    """An answer: its tokens, and the log-probability of each after the temperature (0 counts as 1), before top-p,
    top-k and min-p."""

    ids: Ids
    logprobs: tuple[float, ...]
    finished: bool
    """It ended by an end token or a stop text; else it was cut at `max_tokens`."""


class Generator:
    """Draws from one model with a generator of its own: the same batches in the same order give the same tokens."""

    def __init__(self, model: Any, tokenizer: Any, ends: frozenset[int], *, seed: int = 0, batch: int = 256) -> None:
        """`ends`: tokens that end an answer. `batch`: the most rows computed at once."""
        self.model, self.tokenizer, self.ends, self.batch = model, tokenizer, ends, batch
        self.device = next(model.parameters()).device
        self._chance = torch.Generator(self.device).manual_seed(seed)
        self._takes = frozenset(signature(model.forward).parameters)
        self._cache = "cache" if "cache" in self._takes else "past_key_values"  # transformers has renamed it
        self._lock = threading.Lock()

    def draw(self, questions: Sequence[Question]) -> list[Drawn]:
        """An answer to each question, in order. Raises ModelError where the model's numbers are none."""
        found: dict[int, Drawn] = {}
        order = sorted(range(len(questions)), key=lambda at: len(questions[at].prompt))
        with self._lock, torch.no_grad(), _evaluating(self.model):
            for start in range(0, len(order), self.batch):
                part = order[start : start + self.batch]
                found |= zip(part, self._draw([questions[at] for at in part]), strict=True)
        return [found[at] for at in range(len(questions))]

    def score(self, questions: Sequence[tuple[Ids, Ids]]) -> list[tuple[float, ...]]:
        """The raw log-probability of every token of each answer after its prompt; (prompt, answer) each."""
        found: dict[int, tuple[float, ...]] = {}
        order = sorted(range(len(questions)), key=lambda at: (len(questions[at][0]), len(questions[at][1])))
        with self._lock, torch.no_grad(), _evaluating(self.model):
            for start in range(0, len(order), self.batch):
                part = order[start : start + self.batch]
                found |= zip(part, self._score([questions[at] for at in part]), strict=True)
        return [found[at] for at in range(len(questions))]

    def _draw(self, questions: Sequence[Question]) -> list[Drawn]:
        state = self._read([question.prompt for question in questions])
        drawing = _Drawing([question.sampling for question in questions], self.device)
        ids: list[list[int]] = [[] for _ in questions]
        logprobs: list[list[float]] = [[] for _ in questions]
        finished = [False] * len(questions)
        alive = list(range(len(questions)))  # rows of `state`, in order
        while True:
            tokens, chosen = drawing.draw(state.logits, self._chance)
            left = []
            for row, (at, token, logprob) in enumerate(zip(alive, tokens.tolist(), chosen.tolist(), strict=True)):
                ids[at].append(token)
                logprobs[at].append(logprob)
                finished[at] = token in self.ends or self._stopped(ids[at], questions[at].sampling)
                if not finished[at] and len(ids[at]) < questions[at].sampling.max_tokens:
                    left.append(row)
            if not left:
                return [Drawn(tuple(i), tuple(p), f) for i, p, f in zip(ids, logprobs, finished, strict=True)]
            if len(left) < len(alive):
                rows = torch.tensor(left, device=self.device)
                state.select(rows)
                drawing.select(rows)
                alive, tokens = [alive[row] for row in left], tokens[rows]
            self._step(state, tokens[:, None])

    def _stopped(self, ids: Sequence[int], sampling: Sampling) -> bool:
        """Whether the answer so far holds a text that ends it."""
        if not sampling.stop:
            return False
        tail = max(map(len, sampling.stop)) + 8  # a token is at least a byte of a stop text or of what is before it
        text = self.tokenizer.decode(list(ids[-4 * tail :]), skip_special_tokens=False)
        return any(stop in text for stop in sampling.stop)

    def _score(self, questions: Sequence[tuple[Ids, Ids]]) -> list[tuple[float, ...]]:
        state = self._read([prompt for prompt, _ in questions])
        answers = [answer for _, answer in questions]
        width = max(1, *map(len, answers))
        padded = torch.tensor([[*answer, *[0] * (width - len(answer))] for answer in answers], device=self.device)
        logits = state.logits[:, None]
        if width > 1:
            real = torch.tensor([[at < len(answer) for at in range(width - 1)] for answer in answers]).to(self.device)
            logits = torch.cat([logits, self._forward(state, padded[:, :-1], real.long(), keep=0)], dim=1)
        logprobs = logits.float().log_softmax(-1).gather(-1, padded[..., None])[..., 0].tolist()
        return [tuple(row[: len(answer)]) for row, answer in zip(logprobs, answers, strict=True)]

    def _read(self, prompts: Sequence[Ids]) -> "_State":
        """The state after each prompt, a row each."""
        unique = {prompt: row for row, prompt in enumerate(dict.fromkeys(prompts))}
        texts = list(unique)
        state = _State(DynamicCache(config=self.model.config), self.device)
        plain = all(type(layer) is DynamicLayer for layer in state.cache.layers)
        head = _common(texts) if plain and len(texts) > 1 else 0
        if head >= _SHARED:
            self._pad_and_read(state, [texts[0][:head]])
            state.select(torch.zeros(len(texts), dtype=torch.long, device=self.device))
            texts = [text[head:] for text in texts]
        self._pad_and_read(state, texts)
        if len(unique) < len(prompts):
            state.select(torch.tensor([unique[prompt] for prompt in prompts], device=self.device))
        return state

    def _pad_and_read(self, state: "_State", texts: Sequence[Ids]) -> None:
        width = max(map(len, texts))
        padded = torch.tensor([[*[0] * (width - len(text)), *text] for text in texts], device=self.device)
        real = torch.tensor([[0] * (width - len(text)) + [1] * len(text) for text in texts], device=self.device)
        state.logits = self._forward(state, padded, real)[:, -1]

    def _step(self, state: "_State", tokens: torch.Tensor) -> None:
        state.logits = self._forward(state, tokens, torch.ones_like(tokens))[:, -1]

    def _forward(self, state: "_State", ids: torch.Tensor, real: torch.Tensor, keep: int = 1) -> torch.Tensor:
        """The logits after the last `keep` (0: all) of these tokens. `real`: 1 where a token is none of padding."""
        state.mask = real if state.mask is None else torch.cat([state.mask, real], dim=1)
        positions = (state.mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        given = {"input_ids": ids, "attention_mask": state.mask, self._cache: state.cache, "use_cache": True}
        optional = {"position_ids": positions, "logits_to_keep": keep}
        given |= {name: value for name, value in optional.items() if name in self._takes}
        logits: torch.Tensor = self.model(**given).logits
        return logits


class _State:
    """What was read so far, a row for each prompt: keys and values, which of them are real, the logits after it."""

    def __init__(self, cache: Any, device: torch.device) -> None:
        self.cache, self.device = cache, device
        self.mask: torch.Tensor | None = None
        self.logits: torch.Tensor = torch.empty(0)

    def select(self, rows: torch.Tensor) -> None:
        """Keep these rows, which may be named more than once."""
        self.cache.batch_select_indices(rows)
        self.logits = self.logits[rows]
        self.mask = self.mask[rows] if self.mask is not None else None


class _Drawing:
    """How each row draws: temperature, top-k, top-p and min-p, in this order."""

    def __init__(self, samplings: Sequence[Sampling], device: torch.device) -> None:
        def column(values: list[float]) -> torch.Tensor:
            return torch.tensor(values, device=device)[:, None]

        self.temperature = column([sampling.temperature or 1.0 for sampling in samplings])
        self.greedy = column([float(sampling.temperature == 0) for sampling in samplings]) > 0
        self.top_k = column([float("inf") if s.top_k == -1 else float(s.top_k) for s in samplings])
        self.top_p = column([sampling.top_p for sampling in samplings])
        self.min_p = column([sampling.min_p for sampling in samplings])
        self.filters = any(s.top_k != -1 or s.top_p < 1 or s.min_p > 0 for s in samplings)

    def select(self, rows: torch.Tensor) -> None:
        """Keep these rows."""
        for name in ("temperature", "greedy", "top_k", "top_p", "min_p"):
            setattr(self, name, getattr(self, name)[rows])

    def draw(self, logits: torch.Tensor, chance: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """A token for each row, and its log-probability."""
        logprobs = (logits.float() / self.temperature).log_softmax(-1)
        if bool(torch.isnan(logprobs[:, 0]).any()):
            raise ModelError("the model's logits are not numbers: are its weights broken?")
        drawn = torch.multinomial(self._filtered(logprobs.exp()), 1, generator=chance)
        tokens = torch.where(self.greedy, logprobs.argmax(-1, keepdim=True), drawn)
        return tokens[:, 0], logprobs.gather(-1, tokens)[:, 0]

    def _filtered(self, probs: torch.Tensor) -> torch.Tensor:
        """What may be drawn; it need not sum to 1."""
        if not self.filters:
            return probs
        ordered, places = probs.sort(dim=-1, descending=True, stable=True)
        ranks = torch.arange(ordered.shape[-1], device=ordered.device)
        ordered = ordered.masked_fill(ranks >= self.top_k, 0.0)
        ordered = ordered / ordered.sum(-1, keepdim=True)
        before = ordered.cumsum(-1) - ordered
        ordered = ordered.masked_fill((before >= self.top_p) & (ranks > 0), 0.0)
        ordered = ordered.masked_fill(ordered < self.min_p * ordered[:, :1], 0.0)
        return torch.zeros_like(probs).scatter(-1, places, ordered)


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Without dropout; every part of the model is then as it was."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _common(texts: Sequence[Ids]) -> int:
    """The length of what all texts begin with, so that something of each is left."""
    low, high = min(texts), max(texts)
    most = min(map(len, texts)) - 1
    return next((at for at in range(most) if low[at] != high[at]), most)
