"""A language model and its tokenizer, made on the spot: one token a character of plain text, ChatML."""

from importlib import import_module
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{%- for message in messages -%}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>"
    "{{ '\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant{{ '\n' }}{%- endif -%}"
)
MARKS = ("<|pad|>", "<|im_start|>", "<|im_end|>", "<|unk|>")


ALL = "\n abcdefghijklmnopqrstuvwxyz0123456789.,:;!?'\"|+-*/=#()[]<>_\\"


def tokenizer(characters: str = ALL) -> Any:
    """A token for each of the characters (letters are made small); all others are one unknown."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocabulary = {token: at for at, token in enumerate((*MARKS, *characters))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unk|>"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    transformers: Any = import_module("transformers")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=MARKS[0],
        eos_token=MARKS[2],
        unk_token=MARKS[3],
        additional_special_tokens=[MARKS[1]],
        chat_template=TEMPLATE,
    )


def model(
    seed: int = 0, kind: str = "llama", width: int = 32, layers: int = 2, context: int = 2048, characters: str = ALL
) -> Any:
    """Random weights, spread enough that no two tokens are about equally likely. `kind`: a name below."""
    import torch

    transformers: Any = import_module("transformers")
    common = {
        "vocab_size": len(tokenizer(characters)),
        "initializer_range": 0.2,
        "eos_token_id": 2,
        "bos_token_id": None,
        "pad_token_id": 0,
    }
    wide = {"n_embd": width, "n_layer": layers, "n_head": 4, "n_positions": context}
    if kind != "gpt2":
        wide = {
            "hidden_size": width,
            "intermediate_size": 2 * width,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": width // 4,
            "max_position_embeddings": context,
        }
    wide |= {"sliding_window": 12} if kind == "mistral" else {}
    names = {"llama": "Llama", "qwen3": "Qwen3", "gemma": "Gemma", "gpt2": "GPT2", "mistral": "Mistral"}
    config = getattr(transformers, f"{names[kind]}Config")(**common, **wide)
    torch.manual_seed(seed)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def checkpoint(folder: Path, seed: int = 0, **options: Any) -> Path:
    """The folder, with a model saved in it."""
    model(seed, **options).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
