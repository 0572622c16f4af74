"""PettingZoo's column: its classic games, which `pip install pettingzoo[classic]` brings."""

import warnings
from random import Random
from typing import Any

import numpy as np
import pettingzoo
from pettingzoo.test import api_test

from benchmarks.peers.checks import (
    CHESS,
    Broken,
    Cell,
    Driver,
    Facts,
    continues,
    language_models,
    own_seed,
    packages,
    rate,
    start_seconds,
    tally,
)

DISTRIBUTION = "pettingzoo"
REQUIREMENT = "pettingzoo[classic]"
SLOW = 60.0
warnings.filterwarnings("ignore")
CLASSIC = [game_id for game_id in pettingzoo.aec_registry if game_id.startswith("classic/")]


def begun(game_id: str, seed: int = 1, **options: Any) -> Any:
    """An environment after its reset."""
    env = pettingzoo.make("aec", game_id, **options)
    env.reset(seed=seed)
    return env


def choose(env: Any, rng: Random) -> Any:
    """A random legal action of the agent to act; None once it has to leave."""
    observation, _, terminated, truncated, info = env.last()
    if terminated or truncated:
        return None
    mask = observation.get("action_mask") if isinstance(observation, dict) else info.get("action_mask")
    space = env.action_space(env.agent_selection)
    return rng.randrange(space.n) if mask is None else int(rng.choice(np.flatnonzero(mask).tolist()))


def games() -> Cell:
    """Built, reset and moved once; its other games come with other extras."""
    every = len({*pettingzoo.aec_registry, *pettingzoo.parallel_registry})
    cell = tally(CLASSIC, _one_move, note=f"the classic games; {every} are registered, the others need other extras")
    return cell._replace(text=f"{cell.text} classic")


def _one_move(game_id: str) -> None:
    env = begun(game_id)
    env.step(choose(env, Random(0)))


def gymnasium_env() -> Cell:
    """Not asked: it is the standard for many agents."""
    return Cell("— (many agents)")


def pettingzoo_env() -> Cell:
    """`api_test`."""
    return tally(CLASSIC, lambda game_id: api_test(pettingzoo.make("aec", game_id), num_cycles=100), SLOW)


def driver(game_id: str) -> Driver:
    """Random legal play of every agent."""

    def step(env: Any, n: int) -> str:
        if not env.agents or (action := choose(env, Random(n))) is None:
            return ""
        observation, reward, *_ = env.last()
        seen = observation["observation"] if isinstance(observation, dict) else observation
        env.step(action)
        return f"{env.agent_selection} {action} {reward} {np.asarray(seen).tobytes().hex()}"

    return Driver(lambda seed: begun(game_id, seed), step)


def seeds() -> Cell:
    """The seed is the environment's own."""
    return tally(CLASSIC, lambda game_id: own_seed(driver(game_id)), SLOW)


def pickles() -> Cell:
    """Pickled after three moves."""
    note = "pickled by EzPickle: it comes back as it was made, not as it stood"
    return tally(CLASSIC, lambda game_id: continues(driver(game_id)), SLOW, note)


def legal() -> Cell:
    """Masks, in the observation or in the info."""
    cell = tally(CLASSIC, _masked)
    return cell._replace(text=f"mask ({cell.text.removeprefix('all ')})", note="")


def _masked(game_id: str) -> None:
    observation, _, _, _, info = begun(game_id).last()
    if "action_mask" not in {*info, *(observation if isinstance(observation, dict) else ())}:
        raise Broken("no mask")


def hidden() -> Cell:
    """Whether an environment can complete a seat's view at random."""
    env = begun("classic/leduc_holdem-v4").unwrapped
    found = [name for name in ("determinize", "resample", "resample_from_infostate") if hasattr(env, name)]
    return Cell("yes" if found else "no")


def any_text() -> Cell:
    """Not asked: actions are numbers."""
    return Cell("— (numbers)")


def chess() -> Cell:
    """The AEC loop with its mask."""
    return Cell(f"{rate(_chess_game):,.0f}", CHESS)


def _chess_game(rng: Random) -> int:
    env, moves = begun("classic/chess-v6"), 0
    while env.agents:
        action = choose(env, rng)
        env.step(action)
        moves += action is not None
    return moves


def pictures() -> Cell:
    """A picture of every game."""
    return tally(CLASSIC, _picture)


def _picture(game_id: str) -> None:
    picture = begun(game_id, render_mode="rgb_array").render()
    if np.asarray(picture).ndim != 3:
        raise Broken("no picture")


def models() -> Cell:
    """What the source has for language models."""
    return language_models("pettingzoo")


def install() -> Cell:
    """Distributions, and CPU seconds to a first game."""
    seconds = start_seconds("import pettingzoo; pettingzoo.make('aec', 'classic/tictactoe-v3')")
    return Cell(f"{packages(REQUIREMENT)} · {seconds:.2f}")


FACTS: Facts = {
    "games": games,
    "gymnasium": gymnasium_env,
    "pettingzoo": pettingzoo_env,
    "seeds": seeds,
    "pickles": pickles,
    "legal": legal,
    "hidden": hidden,
    "any_text": any_text,
    "chess": chess,
    "pictures": pictures,
    "models": models,
    "install": install,
}
