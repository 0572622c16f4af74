"""What the standard faces cost: `gymnasium.make` beside the bare environment, and every face beside the bare rules."""

from typing import Any

import gymnasium
import pettingzoo
from gymnasium.vector import VectorEnv

from arena.env import GameEnv
from benchmarks import loops
from benchmarks.timing import Figure, Loop, differences, interleave, loop, ratios

__all__ = ["beside_rules", "gym_make"]

GAMES = ("TicTacToe-v0", "ConnectFour-v0", "KuhnPoker-v0", "LeducPoker-v0", "LiarsDice-v0")
COPIES = 64


def gym_make(seconds: float) -> list[Figure]:
    """k steps a second (own actions) with and without the wrappers that `gymnasium.make` puts on by default."""
    return [_wrapped(game, seconds) for game in GAMES]


def _wrapped(game: str, seconds: float) -> Figure:
    made, bare = interleave([loop(loops.gym(gymnasium.make(f"arena/{game}"))), loop(loops.gym(GameEnv(game)))], seconds)
    return Figure(game, "x", 1e3 / min(made), 1e3 / min(bare), ratios(made, bare), 0.9)


def beside_rules(seconds: float) -> list[Figure]:
    """k actions a second of a face and of the bare rules; the result is what the face adds to an action, in us.

    An action in the Gymnasium and vector faces is one of the learner's: the opponent's is played inside it.
    """
    return [figure for game in GAMES[:2] for figure in _faces(game, seconds)]


def _faces(game: str, seconds: float) -> list[Figure]:
    faces: dict[str, Loop] = {
        "AEC": loop(loops.aec(pettingzoo.make("aec", f"arena/{game}"))),
        "gym": loop(loops.gym(GameEnv(game))),
        f"vector of {COPIES}": loop(_vector(gymnasium.make_vec(f"arena/{game}", num_envs=COPIES))),
    }
    floor, *spent = interleave([loop(loops.rules(game)), *faces.values()], seconds)
    return [
        Figure(f"{game} {name}", "us", 1e3 / min(own), 1e3 / min(floor), differences(own, floor))
        for name, own in zip(faces, spent, strict=True)
    ]


def _vector(env: "VectorEnv[Any, Any, Any]") -> Any:
    """Eight steps of all copies; the first legal action of each."""
    infos = [env.reset(seed=0)[1]]

    def steps() -> int:
        for _ in range(8):
            legal = infos[0]["legal_actions"]
            *_, infos[0] = env.step([actions[0] if actions else "" for actions in legal])
        return 8 * COPIES

    return steps
