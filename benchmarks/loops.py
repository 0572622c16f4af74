"""Our side of the comparisons: random play, the policy included."""

from collections.abc import Callable
from random import Random
from typing import Any

from arena.game import Game
from arena.registry import load

__all__ = ["aec", "gym", "rules"]


def rules(game_id: str, policy: str = "random", rng: Random | None = None, **options: Any) -> Callable[[], int]:
    """The bare rules, no face: every seat to act gets its text and its legal list, then moves.

    `policy`: "random", or "first" for the first action of the list.
    """
    game, rng = load(game_id), rng or Random(0)
    pick: Callable[[Any], str] = rng.choice if policy == "random" else _first

    def episode() -> int:
        state: Game = game.initial(rng, **options)
        count = 0
        while acting := state.to_act():
            actions = {}
            for player in acting:
                state.observation(player)
                legal = state.legal_actions(player)
                actions[player] = pick(legal) if legal is not None else state.sample_action(player, rng)
            count += len(acting)
            state = state.apply(actions)
        state.returns()
        return count

    return episode


def _first(legal: Any) -> str:
    action: str = legal[0]
    return action


def aec(env: Any) -> Callable[[], int]:
    """Our AEC face, in PettingZoo's own loop."""
    rng, seeds = Random(0), iter(range(1 << 62))

    def episode() -> int:
        env.reset(seed=next(seeds))
        count = 0
        for _ in env.agent_iter(1 << 30):
            _, _, terminated, truncated, info = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            legal = info["legal_actions"]
            env.step(rng.choice(legal) if legal is not None else env.action_space(env.agent_selection).sample())
            count += 1
        return count

    return episode


def gym(env: Any) -> Callable[[], int]:
    """Our Gymnasium face; an action of one's own is a step, the opponents' answers happen inside."""
    rng, seeds = Random(0), iter(range(1 << 62))

    def episode() -> int:
        _, info = env.reset(seed=next(seeds))
        count, over = 0, False
        while not over:
            legal = info["legal_actions"]
            action = rng.choice(legal) if legal else env.action_space.sample()
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            count += 1
        return count

    return episode
