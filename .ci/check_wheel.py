"""Checks an installed wheel from inside its clean environment: size, every module, every id.

Run as `python -I .ci/check_wheel.py` from outside the repository. Prints one line, which must be the same on every
Python but for its version; any failure is an exception.
"""

import importlib
import pickle
import platform
import re
import sys
from hashlib import blake2b
from importlib.metadata import distribution, distributions
from pathlib import Path, PurePosixPath
from random import Random

MOST_PACKAGES = 30
MOST_STEPS = 300
GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "episodes.jsonl.zst"


def packages() -> list[str]:
    """What a clean install brought, pip and setuptools not counted. Raises AssertionError over the limit."""
    names = sorted({d.name.lower() for d in distributions()} - {"pip", "setuptools"})
    assert len(names) <= MOST_PACKAGES, f"{len(names)} packages, at most {MOST_PACKAGES} are allowed: {names}"
    return names


def extras() -> set[str]:
    """What the wheel's extras would bring, by the name it is imported under; a clean environment has none of it."""
    asked = [line for line in distribution("gymnasium-arena").requires or () if "extra ==" in line]
    names = {re.split(r"[^\w.-]", line, maxsplit=1)[0].replace("-", "_") for line in asked}
    assert names, "the wheel names no extras"
    return names


def modules() -> list[str]:
    """Every module of the wheel, imported; all one may lack is what an extra brings. Raises ImportError."""
    files = [PurePosixPath(str(f)) for f in distribution("gymnasium-arena").files or ()]
    paths = [f.with_suffix("") for f in files if f.suffix == ".py"]
    names = sorted(".".join(p.parent.parts if p.name == "__init__" else p.parts) for p in paths)
    assert names, "the wheel has no modules"
    lacking = extras()
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] not in lacking:
                raise
            print(f"  {name}: needs an extra ({error})", file=sys.stderr)
    return names


def play(game_id: str) -> list[str]:
    """Play the id with random actions, pickled at every turn, and step it in Gymnasium; returns what was seen."""
    import gymnasium

    import arena
    from arena.registry import make_game

    assert "site-packages" in arena.__file__, f"{arena.__file__} is not the installed wheel"
    game, rng, seen = make_game(game_id, 1), Random(1), list[str]()
    while game.to_act() and len(seen) < MOST_STEPS:
        actions = {p: game.sample_action(p, rng) for p in game.to_act()}
        assert all(game.rules(p) and game.observation(p) for p in actions), game_id
        seen.append(f"{game.render()} {actions} {game.returns()}")
        game = pickle.loads(pickle.dumps(game.apply(actions)))  # noqa: S301  our own bytes
    assert len(game.returns()) == game.players, game_id
    env = gymnasium.make(f"arena/{game_id}")
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation), game_id
    env.step(info["legal_actions"][0] if info.get("legal_actions") else "?")
    env.close()
    return seen


def main() -> None:
    """Check everything; say what was checked."""
    installed, found = packages(), modules()
    from arena import episode, replaying
    from arena.registry import game_ids

    seen = {game_id: play(game_id) for game_id in game_ids()}
    golden = list(episode.read(GOLDEN))
    for played in golden:
        replaying.replay(played)
    digest = blake2b(repr(seen).encode(), digest_size=8).hexdigest()
    print(
        f"Python {platform.python_version()}: {len(installed)} packages, {len(found)} modules imported, "
        f"{len(seen)} ids played ({sum(map(len, seen.values()))} turns, digest {digest}), "
        f"{len(golden)} golden episodes replayed"
    )


if __name__ == "__main__":
    main()
