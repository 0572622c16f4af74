"""A decoder and its tokenizer, made from nothing: one token a word of what the games tell."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from examples.train_llm.plan import Refused

__all__ = ["CONTEXT", "load", "make", "make_model", "make_tokenizer", "save"]

CONTEXT = 256
"""Tokens: a whole game with its rules has about 120."""
PAD, UNKNOWN, START, END = "<|pad|>", "<|unk|>", "<|im_start|>", "<|im_end|>"
TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{%- if message['role'] == 'assistant' -%}
{%- generation -%}{{- message['content'] + '<|im_end|>' -}}{%- endgeneration -%}
{%- else -%}
{{- message['content'] + '<|im_end|>' -}}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
"""ChatML. What stands between the marks of a generation, its end included, is what is learned."""


def make_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """One token for every word and every sign in the texts."""
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=[PAD, UNKNOWN, START, END], show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        chat_template=TEMPLATE,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int, width: int = 64, layers: int = 3) -> LlamaForCausalLM:
    """A Llama of about 160,000 parameters, its weights drawn by the seed."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.1,  # the usual 0.02 is meant for wide models: of 64 channels nothing is learned for minutes
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def make(texts: Iterable[str], seed: int) -> tuple[Any, Any]:
    """A model that knows nothing, and its tokenizer."""
    tokenizer = make_tokenizer(["system user assistant", *texts])
    return make_model(tokenizer, seed), tokenizer


def load(path: str | Path) -> tuple[Any, Any]:
    """A checkpoint, a folder or a name of the Hugging Face Hub, and its tokenizer.

    Only replies are learned, so that its chat template must mark them. One that does not (SmolLM2's) is exchanged for
    ours, if ours writes the same. Raises Refused where it does not.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be loaded: {' '.join(str(error).split())[:300]}") from error
    if not tokenizer.chat_template:
        raise Refused(f"{path} has no chat template: take a model that was made for conversations (-Instruct)")
    if "{%- generation" not in tokenizer.chat_template and "{% generation" not in tokenizer.chat_template:
        if _written(tokenizer, TEMPLATE) != _written(tokenizer, tokenizer.chat_template):
            raise Refused(f"the chat template of {path} does not mark replies ({{% generation %}}) and is no ChatML")
        tokenizer.chat_template = TEMPLATE
    return model, tokenizer


def _written(tokenizer: Any, template: str) -> list[str]:
    """Two conversations as a template writes them."""
    told = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    answered = [*told, {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}]
    return [
        tokenizer.apply_chat_template(each, chat_template=template, tokenize=False, add_generation_prompt=asked)
        for each, asked in ((told, True), (answered, False), (answered, True))
    ]


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a checkpoint that `load` reads."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
