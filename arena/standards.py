"""Tells Gymnasium and PettingZoo which ids there are: strings only, nothing else is imported here."""

import gymnasium
import pettingzoo

from arena.registry import canonical, game_ids

__all__ = ["register_all", "register_game"]


def register_game(game_id: str) -> None:
    """Make the id known as `arena/<id>` to `gymnasium.make`, `make_vec` and `pettingzoo.make`."""
    name = f"arena/{canonical(game_id)}"
    kwargs = {"game": canonical(game_id)}
    if name not in gymnasium.registry:
        gymnasium.register(
            name,
            entry_point="arena.env:GameEnv",
            vector_entry_point="arena.vector:GameVectorEnv",
            order_enforce=False,  # the class says itself where a reset is due
            kwargs=kwargs,
        )
    for kind, entry_point in (("aec", "arena.aec:GameAECEnv"), ("parallel", "arena.parallel:GameParallelEnv")):
        known = pettingzoo.aec_registry if kind == "aec" else pettingzoo.parallel_registry
        if name not in known:
            pettingzoo.register(kind, name, entry_point=entry_point, kwargs=kwargs)


def register_all() -> None:
    """Register every id there is now, those of other installed packages too."""
    for game_id in game_ids():
        register_game(game_id)
