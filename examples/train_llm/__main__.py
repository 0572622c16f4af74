"""The command: `python -m examples.train_llm --help`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from examples.train_llm.plan import SIZES, Refused, Size

__all__ = ["Settings", "main", "read"]


def main(argv: Sequence[str] | None = None) -> int:
    """Train, measure, rate and report every seed; what is finished is not done again. The exit code comes back."""
    settings = read(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is there; so small matrices gain nothing from more
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    try:
        from examples.train_llm.course import train_all
    except ImportError as error:
        print(f"{error}: pip install 'gymnasium-arena[train]'", file=sys.stderr)
        return 1
    try:
        train_all(*settings)
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    return 0


class Settings(NamedTuple):
    """What was asked for."""

    out: Path
    runs: tuple[int, ...]
    size: Size
    checkpoint: str


def read(argv: Sequence[str] | None = None) -> Settings:
    """The command line. What has learned before is not to be overrun: a checkpoint's rates are smaller."""
    parser = argparse.ArgumentParser("python -m examples.train_llm", description=__doc__)
    parser.add_argument("--out", default="runs/train-llm", help="folder of the runs (%(default)s)")
    parser.add_argument("--seeds", default="4,5,6", type=_seeds, help="one run for each of these (%(default)s)")
    parser.add_argument("--size", default="full", choices=SIZES, help="quick: a minute, to see that all works")
    parser.add_argument(
        "--model",
        default="",
        help="a checkpoint to begin with, a folder or a name of the Hugging Face Hub, such as "
        "HuggingFaceTB/SmolLM2-135M-Instruct; without it a small decoder is made",
    )
    for name, of in (("sft", "a hundredth"), ("grpo", "a thousandth")):
        told = f"learning rate of {name.upper()}; 0: the plan's ({{}}), of a checkpoint {of} of it"
        rate = getattr(SIZES["full"], f"{name}_rate")
        parser.add_argument(f"--{name}-rate", default=0.0, type=float, help=told.format(rate))
    asked = parser.parse_args(argv)
    size = SIZES[asked.size]
    sft, grpo = (size.sft_rate / 100, size.grpo_rate / 1000) if asked.model else (size.sft_rate, size.grpo_rate)
    size = msgspec.structs.replace(size, sft_rate=asked.sft_rate or sft, grpo_rate=asked.grpo_rate or grpo)
    return Settings(Path(asked.out), asked.seeds, size, asked.model)


def _seeds(text: str) -> tuple[int, ...]:
    found = tuple(int(part) for part in text.split(","))
    if not found or min(found) < 0 or max(found) >= 1 << 31 or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError("different whole numbers from 0, with commas between")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
