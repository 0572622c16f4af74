"""Arena's column."""

import warnings
from functools import partial
from random import Random
from typing import Any

import gymnasium
import pettingzoo
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test

import arena
from arena.registry import load, make_game
from benchmarks.peers.checks import (
    CHESS,
    HOSTILE,
    Broken,
    Cell,
    Driver,
    Facts,
    attempt,
    continues,
    language_models,
    own_seed,
    packages,
    rate,
    start_seconds,
    tally,
)

DISTRIBUTION = "gymnasium-arena"
IDS = [game_id for game_id in arena.game_ids() if load(game_id).__module__.startswith("arena.")]
SLOW = 60.0
"""Seconds for checks that start processes or play many games."""
warnings.filterwarnings("ignore")


def _gym(game_id: str, **options: Any) -> Any:
    return gymnasium.make(f"arena/{game_id}", **options)


def games() -> Cell:
    """Built, reset and moved once."""
    return tally(IDS, _one_move)


def _one_move(game_id: str) -> None:
    env = _gym(game_id, illegal="random", retries=1)
    env.reset(seed=1)
    env.step(env.action_space.sample())


def gymnasium_env() -> Cell:
    """`check_env`, and text the same in `AsyncVectorEnv` with default arguments as in `SyncVectorEnv`."""
    return tally(IDS, _checked, SLOW)


def _checked(game_id: str) -> None:
    check_env(_gym(game_id).unwrapped)
    sync, parallel = [
        gymnasium.make_vec(f"arena/{game_id}", 2, mode, illegal="random", retries=3) for mode in ("sync", "async")
    ]
    sync.action_space.seed(1)
    seen = [env.reset(seed=1)[0] for env in (sync, parallel)]
    for _ in range(5):
        if seen[0] != seen[1]:
            raise Broken("async shows other text than sync")
        actions = sync.action_space.sample()
        seen = [env.step(actions)[0] for env in (sync, parallel)]
    parallel.close()


def pettingzoo_env() -> Cell:
    """`api_test` of the AEC face."""
    return tally(IDS, lambda game_id: api_test(pettingzoo.make("aec", f"arena/{game_id}"), num_cycles=100), SLOW)


def driver(game_id: str) -> Driver:
    """Random legal play of every seat."""

    def start(seed: int) -> Any:
        env = pettingzoo.make("aec", f"arena/{game_id}")
        env.reset(seed=seed)
        return env

    def step(env: Any, n: int) -> str:
        if not env.agents or any(env.terminations.values()):
            return ""
        agent = env.agent_selection
        observation, reward, *_ = env.last()
        env.step(env.unwrapped.game.sample_action(env.possible_agents.index(agent), Random(n)))
        return repr((agent, observation, reward))

    return Driver(start, step)


def seeds() -> Cell:
    """The seed is the environment's own."""
    return tally(IDS, lambda game_id: own_seed(driver(game_id)), SLOW)


def pickles() -> Cell:
    """Pickled after three moves."""
    return tally(IDS, lambda game_id: continues(driver(game_id)), SLOW)


def legal() -> Cell:
    """Where there is a list of texts, and where masks."""
    first = {game_id: make_game(game_id, 1) for game_id in IDS}
    texts = [game_id for game_id, game in first.items() if game.legal_actions(game.to_act()[0]) is not None]
    masks = [game_id for game_id in IDS if not attempt(partial(_mask, game_id))]
    return Cell(f"text ({len(texts)} of {len(IDS)}), mask ({len(masks)})")


def _mask(game_id: str) -> None:
    env = _gym(game_id, numeric=True)
    env.reset(seed=1)
    if not env.unwrapped.action_masks().any():
        raise Broken("an empty mask")


def hidden() -> Cell:
    """Games with hidden information in which a seat's view can be completed at random."""
    return tally([game_id for game_id in IDS if not load(game_id).perfect_information], _determinized)


def _determinized(game_id: str) -> None:
    game, rng = make_game(game_id, 1), Random(1)
    while acting := game.to_act():
        for p in range(game.players):
            drawn = game.determinize(p, rng)
            same = drawn.observation(p) == game.observation(p) and list(drawn.events(p)) == list(game.events(p))
            if not same:
                raise Broken("the seat would see another position")
        game = game.apply({p: game.sample_action(p, rng) for p in acting})


def any_text() -> Cell:
    """Every hostile text at two positions."""
    return tally(IDS, _said)


def _said(game_id: str) -> None:
    env = _gym(game_id, retries=1)
    for text in HOSTILE:
        env.reset(seed=1)
        for _ in range(2):
            if env.step(text)[2]:
                break


def chess() -> Cell:
    """The bare rules, with the text of the position and the list of moves as text."""
    return Cell(f"{rate(_chess_game):,.0f}", CHESS)


def _chess_game(rng: Random) -> int:
    game, moves = load("Chess-v0").initial(rng), 0
    while acting := game.to_act():
        game.observation(acting[0])
        game = game.apply({acting[0]: rng.choice(game.legal_actions(acting[0]) or ())})
        moves += 1
    return moves


def pictures() -> Cell:
    """Render modes that give an array."""
    return Cell("yes" if "rgb_array" in _gym("TicTacToe-v0").metadata["render_modes"] else "no")


def models() -> Cell:
    """What the source has for language models."""
    return language_models("arena")


def install() -> Cell:
    """Distributions, and CPU seconds to a first game."""
    code = "import arena, gymnasium; gymnasium.make('arena/TicTacToe-v0')"
    return Cell(f"{packages(DISTRIBUTION)} · {start_seconds(code):.2f}")


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
