"""OpenSpiel's side: random play with the observation as text and the legal actions as strings."""

from collections.abc import Callable
from random import Random
from typing import Any

__all__ = ["play"]


def play(name: str) -> Callable[[], int]:
    """One random episode of the game at each call; it says how many player actions it took."""
    import pyspiel

    game: Any = pyspiel.load_game(name)
    rng = Random(0)
    kind = game.get_type()
    text = "observation_string" if kind.provides_observation_string else "information_state_string"

    def episode() -> int:
        state = game.new_initial_state()
        observe = getattr(state, text)
        count = 0
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, weights = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(outcomes, weights)[0])
                continue
            player = state.current_player()
            legal = state.legal_actions()
            observe(player)
            [state.action_to_string(player, action) for action in legal]
            state.apply_action(rng.choice(legal))
            count += 1
        return count

    return episode
