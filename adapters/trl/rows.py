"""Rows: what a GRPOTrainer's data set holds of a game, and the reward function that reads what was earned.

A rollout function is given prompts and nothing else of a row, so the prompt says what is to be played: `Task`, as JSON.
What the model is told is written by the agent, turn by turn.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from arena.deal import deal_of
from arena.game import Game, Player
from arena.registry import id_of

__all__ = ["Seats", "Task", "dataset", "game_reward"]

Seats = Literal["all"] | Sequence[Player]


class Task(msgspec.Struct, frozen=True):
    """What is to be played for one prompt."""

    game: str
    seed: int
    seat: Player
    """The learner's."""
    options: dict[str, Any] = {}

    @classmethod
    def read(cls, prompt: object) -> "Task":
        """The task that a prompt of `dataset` names. Raises ValueError for another one."""
        if isinstance(prompt, str):
            try:
                return msgspec.json.decode(prompt, type=cls)
            except (msgspec.DecodeError, UnicodeEncodeError):
                pass
        raise ValueError(f"a prompt must name a task, as arena.adapters.trl.dataset writes it, got {prompt!r:.80}")

    def prompt(self) -> str:
        """The prompt that names it: equal tasks have equal prompts."""
        return msgspec.json.encode(self, order="deterministic").decode()


def dataset(
    game: str | type[Game],
    seeds: Iterable[int],
    *,
    seats: Seats = "all",
    options: Mapping[str, Any] | None = None,
    chat: bool = False,
) -> Any:
    """A `datasets.Dataset` with a row for each seed and each of the learner's `seats`.

    Columns: `prompt` (the task, for `rollout_func`; `chat`: an empty message of a user, which `environment_factory`
    fills), `game`, `seed`, `seat`, and `environment`, the game's name, by which a trainer chooses among several
    environments. Rows of several games may be joined (`datasets.concatenate_datasets`). Raises ValueError for a seat
    that there is not or that the house holds.
    """
    try:
        datasets: Any = importlib.import_module("datasets")
    except ModuleNotFoundError as error:
        told = f"dataset() needs {error.name}: pip install 'gymnasium-arena[train]'"
        raise ModuleNotFoundError(told, name=error.name) from error
    name, first = id_of(game), deal_of(game, options or {}).template
    free = [player for player in range(first.players) if player not in first.house]
    chosen = free if isinstance(seats, str) and seats == "all" else list(seats)
    if not chosen or (isinstance(seats, str) and seats != "all") or set(chosen) - set(free):
        raise ValueError(f"seats={seats!r}: allowed are 'all' or a list of {', '.join(map(str, free))}")
    tasks = [Task(name, seed, seat, dict(options or {})) for seed in seeds for seat in chosen]
    rows = [
        {
            "prompt": [{"role": "user", "content": ""}] if chat else task.prompt(),
            "game": name,
            "environment": name,
            "seed": task.seed,
            "seat": task.seat,
        }
        for task in tasks
    ]
    return datasets.Dataset.from_list(rows)


def game_reward(
    reward: Sequence[float],
    outcome: Sequence[str],
    illegal: Sequence[bool],
    log_metric: Callable[[str, float], None] | None = None,
    **_: Any,
) -> list[float]:
    """The reward function for `rollout_func`: what was earned. It logs the shares of illegal play and cut games."""
    if log_metric is not None and reward:
        log_metric("game/illegal", sum(illegal) / len(illegal))
        log_metric("game/truncated", sum(each == "truncated" for each in outcome) / len(outcome))
    return list(reward)
