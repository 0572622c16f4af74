"""TextArena's side: its raw loop (`-raw` ids: no wrapper), which lists no legal moves.

Only what the environment itself does is timed: `get_observation` and `step`. Actions are drawn beforehand, in the same
seeded episodes, so that no policy runs in the timed part; `reset` is left out too. Both favour TextArena: our side
counts its policy and its first positions.
"""

import contextlib
import importlib
import io
import time
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from benchmarks.timing import Loop

__all__ = ["BOARDS", "Unplayable", "replay"]

Policy = Callable[[Any, Random], str]
_MOST = 400  # actions of one episode
_clock = time.process_time


class Unplayable(RuntimeError):
    """The game cannot be made or played on this Python; the message says why."""


class _Script(NamedTuple):
    seed: int
    actions: list[str]


def tictactoe(env: Any, rng: Random) -> str:
    board = env.state.game_state["board"]
    return f"[{rng.choice([r * 3 + c for r in range(3) for c in range(3) if board[r][c] == ''])}]"


def connect_four(env: Any, rng: Random) -> str:
    board = env.state.game_state["board"]
    return f"[col {rng.choice([c for c in range(env.num_cols) if board[0][c] == '.'])}]"


def kuhn(env: Any, rng: Random) -> str:
    return f"[{rng.choice(list(env.state.game_state['current_legal_action_tree']))}]"


def chess(env: Any, rng: Random) -> str:
    return f"[{rng.choice(list(env.state.game_state['board'].legal_moves)).uci()}]"


def liars_dice(env: Any, rng: Random) -> str:
    bid = env.state.game_state["current_bid"]
    quantity, face = bid["quantity"], bid["face_value"]
    if quantity and (rng.random() < 0.3 or quantity > 2 * env.num_dice):
        return "[Call]"
    return f"[Bid: {quantity + 1}, {max(face, 1)}]"


def prisoners(env: Any, rng: Random) -> str:
    return rng.choice(["[Cooperate]", "[Defect]"])


def mafia(env: Any, rng: Random) -> str:
    me = env.state.current_player_id
    return f"[{rng.choice([p for p in env.state.game_state['alive_players'] if p != me])}]"


BOARDS: dict[str, tuple[int, Policy]] = {
    "TicTacToe-v0": (2, tictactoe),
    "ConnectFour-v0": (2, connect_four),
    "KuhnPoker-v0": (2, kuhn),
    "Chess-v0": (2, chess),
    "LiarsDice-v0": (2, liars_dice),
    "IteratedPrisonersDilemma-v0": (2, prisoners),
    "SecretMafia-v0": (7, mafia),
}
"""Players and policy, by TextArena's id. The policies are those of random legal play."""


def replay(name: str, episodes: int = 40) -> Loop:
    """The loop of one game. Raises Unplayable."""
    players, policy = BOARDS[name]
    env = _made(name)
    scripts = [_drawn(env, players, policy, seed) for seed in range(episodes)]
    at = iter(range(1 << 62))

    def run(seconds: float) -> float:
        spent, count = 0.0, 0
        while spent < seconds:
            script = scripts[next(at) % len(scripts)]
            env.reset(num_players=players, seed=script.seed)
            start = _clock()
            _played(env, script.actions)
            spent += _clock() - start
            count += len(script.actions)
        return spent / count * 1e6

    return run


def _made(name: str) -> Any:
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            library = importlib.import_module("textarena")
            return library.make(f"{name}-raw")
    except (ImportError, SyntaxError, AttributeError, LookupError) as error:
        raise Unplayable(f"TextArena: {type(error).__name__}: {str(error).splitlines()[0][:90]}") from error


def _drawn(env: Any, players: int, policy: Policy, seed: int) -> _Script:
    """An episode's actions; a second play of them must end at the same place."""
    rng, actions, done = Random(seed), list[str](), False
    env.reset(num_players=players, seed=seed)
    while not done and len(actions) < _MOST:
        env.get_observation()
        actions.append(policy(env, rng))
        done, _ = env.step(actions[-1])
    env.reset(num_players=players, seed=seed)
    if _played(env, actions) != done:
        raise Unplayable("TextArena: the same seed and actions end elsewhere")
    return _Script(seed, actions)


def _played(env: Any, actions: list[str]) -> bool:
    done = False
    for action in actions:
        env.get_observation()
        done, _ = env.step(action)
    return bool(done)
