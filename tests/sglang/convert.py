"""Unpack a GGUF model to a folder that SGLang can serve: `python convert.py MODEL.gguf FOLDER`.

Runs in the SGLang environment. Weights are written as bfloat16, tokenizer and chat template beside them.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

UNTYPED: Callable[[str], Any] = import_module
"""For packages that are in the SGLang environment only, where no type checker looks."""


def convert(source: Path, folder: Path) -> None:
    """Write config, weights and tokenizer of `source` to `folder`."""
    torch, transformers = UNTYPED("torch"), UNTYPED("transformers")
    # Kept packed, as transformers does by default, a model cannot be saved.
    unpacked = transformers.GgufConfig(dequantize=True)
    named = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        **named, dtype=torch.bfloat16, quantization_config=unpacked
    )
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**named)
    if not tokenizer.chat_template:
        raise ValueError(f"{source.name} has no chat template")
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
