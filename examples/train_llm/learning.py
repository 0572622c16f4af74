"""Learning: TRL's SFTTrainer on exported conversations, then its GRPOTrainer on games that the model plays itself."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset, disable_progress_bars, load_dataset
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from arena.adapters.trl import dataset, game_reward, rollout_func
from examples.train_llm.decoder import CONTEXT
from examples.train_llm.opponents import pool
from examples.train_llm.plan import GAME, PROMPTING, SAMPLING, Size, seeds

__all__ = ["imitate", "improve", "rows_of"]

Progress = Callable[[int, int], None]
Look = Callable[[int], None]
disable_progress_bars()  # there is one bar for each stage
logging.disable_progress_bar()
warnings.filterwarnings("ignore", ".*gradient_checkpointing", FutureWarning)  # the name that older releases know


class _Watch(TrainerCallback):  # type: ignore[misc]  # transformers has no types
    """Tells how far training is, and looks at the model every so many steps."""

    def __init__(self, steps: int, looks: int, look: Look, progress: Progress) -> None:
        self.at = {round(steps * n / looks) for n in range(1, looks + 1)}
        self.look, self.progress = look, progress

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any) -> None:
        """Called by the trainer."""
        self.progress(state.global_step, state.max_steps)
        if state.global_step in self.at:
            self.look(state.global_step)


def rows_of(folder: Path) -> Dataset:
    """The conversations of an export."""
    return load_dataset("parquet", data_files=str(folder / "data" / "train*.parquet"), split="train")


def imitate(
    model: Any, tokenizer: Any, rows: Dataset, run_number: int, size: Size, look: Look, progress: Progress, out: Path
) -> list[dict[str, Any]]:
    """Supervised: the model learns to reply as the teacher did; only replies count. The trainer's log comes back."""
    settings = SFTConfig(
        output_dir=str(out),
        max_steps=size.sft_steps,
        per_device_train_batch_size=size.sft_batch,
        learning_rate=size.sft_rate,
        lr_scheduler_type="linear",
        warmup_steps=min(20, size.sft_steps // 4),
        assistant_only_loss=True,
        max_length=CONTEXT,
        **_shared(run_number),
    )
    trainer = SFTTrainer(
        model=model,
        args=settings,
        train_dataset=rows.select_columns(["messages"]),
        processing_class=tokenizer,
        callbacks=[_Watch(size.sft_steps, size.sft_looks, look, progress)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return list(trainer.state.log_history)


def improve(
    model: Any, tokenizer: Any, run_number: int, size: Size, look: Look, progress: Progress, out: Path
) -> list[dict[str, Any]]:
    """By reward: the model plays, and what did better than the other games of its group becomes likelier.

    A group is one deal and one seat against one opponent. Nothing but the game's return is rewarded; an illegal reply
    loses the game. The trainer's log comes back.
    """
    settings = GRPOConfig(
        output_dir=str(out),
        max_steps=size.grpo_steps,
        per_device_train_batch_size=size.prompts * size.group,
        num_generations=size.group,
        learning_rate=size.grpo_rate,
        lr_scheduler_type="linear",
        warmup_steps=5,
        scale_rewards="none",  # a return of 1 is worth as much in an easy group as in a hard one
        beta=0.0,
        temperature=SAMPLING.temperature,
        max_completion_length=CONTEXT,
        **_shared(run_number),
    )
    count = size.grpo_steps * size.prompts // 2  # a row for each of two seats
    play = rollout_func(GAME, pool(), prompting=PROMPTING, max_tokens=SAMPLING.max_tokens, seed=run_number)
    trainer = GRPOTrainer(
        model=model,
        args=settings,
        train_dataset=dataset(GAME, seeds("practice", run_number, count)),
        reward_funcs=game_reward,
        processing_class=tokenizer,
        rollout_func=play,
        callbacks=[_Watch(size.grpo_steps, size.grpo_looks, look, progress)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    play.close()
    return list(trainer.state.log_history)


def _shared(run_number: int) -> dict[str, Any]:
    """What both trainers are told: this CPU, all numbers in 32 bits, no files on the way."""
    return {
        "seed": run_number,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "report_to": "none",
        "logging_steps": 1,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
