"""Games that a GRPOTrainer asks for: what they cost beside the model's own forward passes."""

from benchmarks.timing import Figure, absent

__all__ = ["rollouts"]


def rollouts(seconds: float) -> list[Figure]:
    """CPU milliseconds a turn of a small model, in whole games and without any."""
    if why := absent("torch", "transformers", "datasets"):
        return [Figure("rollouts", "ms", note=why)]
    from benchmarks.grpo import games

    return games.turns(seconds)
