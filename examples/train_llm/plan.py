"""Plan: how much is played and learned, what each number is for, and which seeds belong to which purpose."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from arena.agents.prompting import Prompting
from arena.model import Sampling
from arena.registry import AgentSpec

__all__ = ["GAME", "PROMPTING", "SAMPLING", "SIZES", "Purpose", "Refused", "Size", "seeds", "spec"]

GAME = "TicTacToe-v0"
PROMPTING = Prompting(answer="plain", template=str(Path(__file__).parent / "prompts"))
"""The rules in eight words, the board with the numbers of its squares, and a reply that is the action alone."""
SAMPLING = Sampling(max_tokens=8, temperature=1.0)
"""Free decoding: any token may come, nothing is forbidden, and the whole distribution is drawn from."""


class Refused(ValueError):
    """What was asked for cannot be done, and why, in one line."""


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How large a run is. The numbers of "full" were chosen on seeds that no run reports."""

    blocks: int
    """Seed blocks of the tournament whose records are learned; each has four games of minimax."""
    sft_steps: int
    sft_batch: int = 32
    sft_rate: float = 3e-3
    grpo_steps: int
    prompts: int = 16
    """Groups of a step of GRPO."""
    group: int = 8
    """Games from one prompt, which are compared with each other."""
    grpo_rate: float = 2e-3
    sft_looks: int
    """Points of the curve during SFT."""
    grpo_looks: int
    look: int
    """Games against each opponent for a point of the curve."""
    games: int
    """Games against each opponent for the figures before and after."""
    rated: int
    """Seed blocks of the tournament at the end."""


SIZES = {
    "full": Size(blocks=250, sft_steps=400, grpo_steps=300, sft_looks=5, grpo_looks=10, look=100, games=400, rated=40),
    "quick": Size(blocks=100, sft_steps=160, grpo_steps=50, sft_looks=2, grpo_looks=2, look=50, games=100, rated=5),
}

Purpose = Literal["records", "practice", "curve", "figures", "ratings"]
_ORDER: tuple[Purpose, ...] = ("records", "practice", "curve", "figures", "ratings")
_ROOM = 1 << 24


def seeds(purpose: Purpose, run: int, count: int = 1) -> Sequence[int]:
    """The deals of one purpose in one run: no two purposes or runs share any.

    >>> seeds("curve", 3, 2)
    range(285212672, 285212674)
    """
    if not 0 < count <= _ROOM:
        raise ValueError(f"count={count}: allowed are 1 to {_ROOM}")
    first = (run * len(_ORDER) + _ORDER.index(purpose)) * _ROOM
    return range(first, first + count)


def spec(checkpoint: Path) -> str:
    """The model of a checkpoint as an agent of a tournament."""
    told = {
        "answer": PROMPTING.answer,
        "template": PROMPTING.template,
        "max_tokens": SAMPLING.max_tokens,
        "temperature": SAMPLING.temperature,
    }
    return str(AgentSpec("local", str(checkpoint), tuple(told.items())))
