"""What tests of training share: a small model, short prompts, a GRPOTrainer that shows what it computes with."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from arena.adapters.trl import dataset, game_reward
from arena.agents.prompting import Prompting, Style
from tests.adapters.models import tiny

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
DIGITS = "\n 123456789xo|-."


def short(folder: Path, *, style: Style = "chat") -> Prompting:
    """Prompts that hold the position and nothing else: a token a character makes the usual ones long."""
    (folder / "system.j2").write_text("{{ player }}")
    (folder / "turn.j2").write_text("{{ note }}{{ observation }}")
    return Prompting(style=style, answer="plain", template=str(folder))


def arguments(folder: Path, **changes: Any) -> Any:
    """A GRPOConfig for a CPU that writes nothing."""
    given = {
        "per_device_train_batch_size": 16,
        "num_generations": 4,
        "max_steps": 3,
        "max_completion_length": 2,
        "learning_rate": 1e-3,
        "gradient_checkpointing": False,
        "bf16": False,
        "use_cpu": True,
        "report_to": [],
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    return import_module("trl").GRPOConfig(str(folder / "run"), **(given | changes))


def trainer(folder: Path, rollouts: Any, game: Any, model: Any = None, **changes: Any) -> Any:
    """A GRPOTrainer; `seen` holds, for each of its steps, what its loss was computed from and the loss."""
    trl: Any = import_module("trl")

    class Showing(trl.GRPOTrainer):  # type: ignore[misc]  # of a package that is imported here
        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            self.seen.append({"inputs": {key: value.clone() for key, value in inputs.items()}, "logps": []})
            loss = super()._compute_loss(model, inputs)
            self.seen[-1]["loss"] = float(loss.detach())
            return loss

        def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
            found = super()._get_per_token_logps_and_entropies(*args, **kwargs)
            if found[0].requires_grad:
                found[0].retain_grad()
                self.seen[-1]["logps"].append(found[0])
            return found

    rows = dataset(game, range(8))
    made = Showing(
        model or tiny.model(1, characters=DIGITS),
        game_reward,
        args=arguments(folder, **changes),
        train_dataset=rows,
        rollout_func=rollouts,
        processing_class=tiny.tokenizer(DIGITS),
    )
    made.seen = []
    return made
