"""A small model plays TicTacToe for a GRPOTrainer: games with records and sequences, beside the same tokens alone."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache

from arena.adapters.models.generating import Question
from arena.adapters.trl import Rollouts, dataset
from arena.agents.prompting import Prompting
from arena.referee import Referee
from arena.registry import make_game
from benchmarks.timing import ROUNDS, Figure, Loop, interleave, loop, ratios
from examples.train_llm.decoder import make_model, make_tokenizer

__all__ = ["turns"]

GAME, GENERATIONS, MAX_TOKENS = "TicTacToe-v0", 8, 4
WIDTH, LAYERS, CONTEXT = 96, 4, 2048


class Pass(NamedTuple):
    """What one forward pass was given."""

    ids: torch.Tensor
    mask: torch.Tensor
    positions: torch.Tensor
    before: int
    """Columns of keys and values that were there."""


class Watched(NamedTuple):
    """What one rollout asked of the model."""

    turns: int
    passes: list[Pass]
    questions: list[list[Question]]
    """Of every batch."""


def turns(seconds: float) -> list[Figure]:
    """CPU milliseconds a turn of the model's. Illegal moves are replaced, so that games go on to their end."""
    rounds, games = (ROUNDS, (64, 256)) if seconds >= 1 else (2, (16,))
    return [line for count in games for line in _lines(count, seconds, rounds)]


def _lines(games: int, seconds: float, rounds: int) -> list[Figure]:
    trainer, prompts = _trainer(), _prompts(games)
    rollouts = Rollouts(
        GAME, prompting=Prompting(answer="plain"), referee=Referee("random"), max_tokens=MAX_TOKENS, batch=games
    )
    seen = _watched(rollouts, prompts, trainer)

    def played() -> int:
        return sum(rollouts(prompts, trainer)["turns"])

    loops = [loop(played), _passes(trainer.model, seen), _generate(trainer.model, seen)]
    spent = interleave(loops, seconds, rounds)
    ours, bare, theirs = [[each / 1e3 for each in side] for side in spent]
    held = f"{1e3 / min(ours) * games / seen.turns:.0f} games/CPU-s, {seen.turns} turns a rollout"
    name = f"{games} games at once"
    lines = (("the same forward passes alone", bare, held), ("model.generate on the same prompts", theirs, ""))
    return [
        Figure(f"{name}, beside {what}", "x", min(ours), min(peer), ratios(ours, peer), note=note)
        for what, peer, note in lines
    ]


def _trainer() -> Any:
    """What a rollout function reads of a trainer."""
    first = make_game(GAME)
    tokenizer = make_tokenizer(["system user assistant plain", first.rules(0), first.observation(0)])
    model = make_model(tokenizer, 0, WIDTH, LAYERS).eval()
    model.config.max_position_embeddings = CONTEXT
    args = SimpleNamespace(temperature=1.0, top_p=1.0, top_k=0, min_p=None, repetition_penalty=1.0)
    alone = SimpleNamespace(process_index=0, unwrap_model=lambda model: model)
    return SimpleNamespace(
        model=model, processing_class=tokenizer, args=args, accelerator=alone, state=SimpleNamespace(global_step=0)
    )


def _prompts(games: int) -> list[str]:
    seeds = range(games // GENERATIONS // 2)
    return [prompt for prompt in dataset(GAME, seeds)["prompt"] for _ in range(GENERATIONS)]


def _watched(rollouts: Rollouts, prompts: list[str], trainer: Any) -> Watched:
    """One rollout, and what it asked of the model."""
    passes, questions = list[Pass](), list[list[Question]]()

    def asked(_: Any, args: Any, given: dict[str, Any]) -> None:
        before = next(each for each in given.values() if isinstance(each, DynamicCache)).get_seq_length()
        passes.append(Pass(given["input_ids"], given["attention_mask"], given["position_ids"], before))

    model: Any = rollouts.learner(trainer).model
    batches, draw = model._host.draws, model._host.generator.draw

    def watched(wanted: list[Question]) -> Any:
        questions.append(list(wanted))
        return draw(wanted)

    batches._work = watched
    hook = trainer.model.register_forward_pre_hook(asked, with_kwargs=True)
    given = rollouts(prompts, trainer)
    hook.remove()
    batches._work = draw
    return Watched(sum(given["turns"]), passes, questions)


def _passes(model: Any, seen: Watched) -> Loop:
    """The same forward passes, nothing else: what their keys and values are does not change what they cost."""
    size = model.config.hidden_size // model.config.num_attention_heads

    def again() -> int:
        with torch.no_grad():
            for each in seen.passes:
                cache = DynamicCache(config=model.config)
                shape = (len(each.ids), model.config.num_key_value_heads, each.before, size)
                for layer in range(model.config.num_hidden_layers if each.before else 0):
                    cache.update(torch.zeros(shape), torch.zeros(shape), layer)
                model(
                    input_ids=each.ids,
                    attention_mask=each.mask,
                    position_ids=each.positions,
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
        return seen.turns

    return loop(again)


def _generate(model: Any, seen: Watched) -> Loop:
    """The batches of the rollout as transformers answers them, without a game, a record or log-probabilities."""
    padded = []
    for batch in seen.questions:
        width = max(len(question.prompt) for question in batch)
        rows = [[0] * (width - len(question.prompt)) + list(question.prompt) for question in batch]
        mask = [[0] * (width - len(question.prompt)) + [1] * len(question.prompt) for question in batch]
        padded.append((torch.tensor(rows), torch.tensor(mask)))

    def answered() -> int:
        with torch.no_grad():
            for ids, mask in padded:
                model.generate(ids, attention_mask=mask, max_new_tokens=MAX_TOKENS, do_sample=True, top_k=0)
        return seen.turns

    return loop(answered)
