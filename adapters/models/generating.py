"""Generating: tokens drawn from a transformers model, many prompts at once. Needs torch and transformers.

Why not `model.generate`: it draws with the global generator, one way of sampling for the whole batch, and computes
a prompt as often as it stands in the batch. Here equal prompts are computed once, what new prompts of a batch begin
with (rules, a system's message) once for all of them, and of a conversation that goes on only what is new.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from arena.adapters.models.prefixes import Batch, Prefixes, Row, gathered
from arena.model import ModelError, Sampling

__all__ = ["Drawn", "Generator", "Question"]

Ids = tuple[int, ...]
_SHARED = 8  # tokens that prompts must begin with in common for it to be worth a pass of its own


class Question(NamedTuple):
    """A prompt and how its answer is drawn."""

    prompt: Ids
    sampling: Sampling
    key: str = ""
    """Of its conversation, whose later prompts extend this one; "": it has none."""


class Drawn(NamedTuple):
    """An answer: its tokens, and the log-probability of each after the temperature (0 counts as 1), before top-p,
    top-k and min-p."""

    ids: Ids
    logprobs: tuple[float, ...]
    finished: bool
    """It ended by an end token or a stop text; else it was cut at `max_tokens`."""
    cached: int = 0
    """Tokens of the prompt that were known from before."""


class Generator:
    """Draws from one model with a generator of its own: the same batches in the same order give the same tokens."""

    def __init__(
        self, model: Any, tokenizer: Any, ends: frozenset[int], *, seed: int = 0, batch: int = 256, cache: int = 1 << 30
    ) -> None:
        """`ends`: tokens that end an answer. `batch`: the most rows computed at once. `cache`: bytes for prefixes."""
        self.model, self.tokenizer, self.ends, self.batch = model, tokenizer, ends, batch
        plain = all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)
        self.prefixes = Prefixes(cache if plain else 0)  # a sliding window or a state cannot be gathered
        self._plain, self._weights = plain, self._fingerprint()
        self.device = next(model.parameters()).device
        self._chance = torch.Generator(self.device).manual_seed(seed)
        self._takes = frozenset(signature(model.forward).parameters)
        self._cache = "cache" if "cache" in self._takes else "past_key_values"  # transformers has renamed it
        self._lock = threading.Lock()

    def draw(self, questions: Sequence[Question]) -> list[Drawn]:
        """An answer to each question, in order. Raises ModelError where the model's numbers are none."""
        return self._in_parts(questions, self._draw)

    def score(self, questions: Sequence[tuple[Ids, Ids, str]]) -> list[tuple[float, ...]]:
        """The raw log-probability of every token of each answer after its prompt; (prompt, answer, key) each."""
        return self._in_parts(questions, self._score)

    def _in_parts(self, questions: Sequence[Any], work: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """The work on all questions, those of about one length together."""
        found: dict[int, Any] = {}
        order = sorted(range(len(questions)), key=lambda at: len(questions[at][0]))
        with self._lock, torch.no_grad(), _evaluating(self.model):
            if (now := self._fingerprint()) != self._weights:
                self.prefixes.forget()
                self._weights = now
            for start in range(0, len(order), self.batch):
                part = order[start : start + self.batch]
                found |= zip(part, work([questions[at] for at in part]), strict=True)
        return [found[at] for at in range(len(questions))]

    def _fingerprint(self) -> int:
        """Another number once weights were changed in place, as optimizers do. (Not by `parameter.data`.)"""
        return sum([parameter._version for parameter in self.model.parameters()])

    def _draw(self, questions: list[Question]) -> list[Drawn]:
        state, cached = self._read([(question.prompt, question.key) for question in questions])
        drawing = _Drawing([question.sampling for question in questions], self.device)
        ids: list[list[int]] = [[] for _ in questions]
        logprobs: list[list[float]] = [[] for _ in questions]
        finished = [False] * len(questions)
        rows, done = list(range(len(questions))), set[int]()  # the question of each row of `state`
        while True:
            tokens, chosen = drawing.draw(state.logits, self._chance)
            for at, token, logprob in zip(rows, tokens.tolist(), chosen.tolist(), strict=True):
                if at in done:
                    continue
                ids[at].append(token)
                logprobs[at].append(logprob)
                finished[at] = token in self.ends or self._stopped(ids[at], questions[at].sampling)
                if finished[at] or len(ids[at]) >= questions[at].sampling.max_tokens:
                    done.add(at)
            left = [row for row, at in enumerate(rows) if at not in done]
            if 2 * len(left) <= len(rows):
                self._keep(state, [(row, questions[at], ids[at]) for row, at in enumerate(rows) if at in done])
                if not left:
                    break
                chosen_rows = torch.tensor(left, device=self.device)
                state.select(chosen_rows)
                drawing.select(chosen_rows)
                rows, tokens, left = [rows[row] for row in left], tokens[chosen_rows], list(range(len(left)))
            real = torch.zeros_like(tokens)
            real[left] = 1
            state.logits = self._forward(state, tokens[:, None], real[:, None])[:, -1]
        both = zip(ids, logprobs, finished, cached, strict=True)
        return [Drawn(tuple(each), tuple(own), end, known) for each, own, end, known in both]

    def _keep(self, state: "_State", rows: Sequence[tuple[int, Question, list[int]]]) -> None:
        """Keep what was computed of these rows: (row, question, answer). The last token was drawn, but never read."""
        if not self.prefixes.most or state.mask is None:
            return
        batch = state.batch()
        for row, question, answer in rows:
            self.prefixes.keep(question.key, Row(batch, row, question.prompt + tuple(answer[:-1])))

    def _stopped(self, ids: Sequence[int], sampling: Sampling) -> bool:
        """Whether the answer so far holds a text that ends it."""
        if not sampling.stop:
            return False
        tail = max(map(len, sampling.stop)) + 8  # a token is at least a byte of a stop text or of what is before it
        text = self.tokenizer.decode(list(ids[-4 * tail :]), skip_special_tokens=False)
        return any(stop in text for stop in sampling.stop)

    def _score(self, questions: list[tuple[Ids, Ids, str]]) -> list[tuple[float, ...]]:
        state, _ = self._read([(prompt, key) for prompt, _, key in questions])
        answers = [answer for _, answer, _ in questions]
        width = max(1, *map(len, answers))
        padded = torch.tensor([[*answer, *[0] * (width - len(answer))] for answer in answers], device=self.device)
        logits = state.logits[:, None]
        if width > 1:
            real = torch.tensor([[at < len(answer) for at in range(width - 1)] for answer in answers]).to(self.device)
            logits = torch.cat([logits, self._forward(state, padded[:, :-1], real.long(), keep=0)], dim=1)
        logprobs = logits.float().log_softmax(-1).gather(-1, padded[..., None])[..., 0].tolist()
        return [tuple(row[: len(answer)]) for row, answer in zip(logprobs, answers, strict=True)]

    def _read(self, prompts: Sequence[tuple[Ids, str]]) -> tuple["_State", list[int]]:
        """The state after each prompt, a row each, and how many tokens were known. `prompts`: (prompt, key) each."""
        unique: dict[Ids, Row | None] = {}
        for prompt, key in prompts:
            if unique.get(prompt) is None:
                unique[prompt] = self.prefixes.longest(key, prompt) if key else None
        cached = [len(row.ids) if (row := unique[prompt]) is not None else 0 for prompt, _ in prompts]
        new = [prompt for prompt, row in unique.items() if row is None]
        head = _common(new) if self._plain and len(new) > 1 else 0
        if head >= _SHARED:
            first = _State(DynamicCache(config=self.model.config))
            self._pad_and_read(first, [new[0][:head]])
            unique |= dict.fromkeys(new, Row(first.batch(), 0, new[0][:head]))
        state = _State(DynamicCache(config=self.model.config))
        known = list(unique.values())
        if (some := next((row for row in known if row is not None), None)) is not None:
            state.cache, state.mask = gathered(known, some.batch, self.model.config)
        self._pad_and_read(state, [p[len(row.ids) if row is not None else 0 :] for p, row in unique.items()])
        if self.prefixes.most:
            batch = state.batch()
            places = {prompt: at for at, prompt in enumerate(unique)}
            for prompt, key in prompts:
                self.prefixes.keep(key, Row(batch, places[prompt], prompt))
        if len(unique) < len(prompts):
            places = {prompt: at for at, prompt in enumerate(unique)}
            state.select(torch.tensor([places[prompt] for prompt, _ in prompts], device=self.device))
        return state, cached

    def _pad_and_read(self, state: "_State", texts: Sequence[Ids]) -> None:
        width = max(map(len, texts))
        padded = torch.tensor([[*[0] * (width - len(text)), *text] for text in texts], device=self.device)
        real = torch.tensor([[0] * (width - len(text)) + [1] * len(text) for text in texts], device=self.device)
        state.logits = self._forward(state, padded, real)[:, -1]

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

    def __init__(self, cache: DynamicCache) -> None:
        self.cache = cache
        self.mask: torch.Tensor | None = None
        self.logits: torch.Tensor = torch.empty(0)

    def select(self, rows: torch.Tensor) -> None:
        """Keep these rows, which may be named more than once."""
        self.cache.batch_select_indices(rows)
        self.logits = self.logits[rows]
        self.mask = self.mask[rows] if self.mask is not None else None

    def batch(self) -> Batch:
        """What was computed so far; later steps leave it as it is."""
        assert self.mask is not None, "nothing was read"
        return Batch([(layer.keys, layer.values) for layer in self.cache.layers], self.mask)


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
