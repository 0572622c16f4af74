"""TextArena's column."""

from random import Random
from typing import Any

import textarena
from textarena.envs.registration import ENV_REGISTRY

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

DISTRIBUTION = "textarena"
SEATS = (2, 1, 4, 3, 6, 5, 8)
"""Numbers of players to try: an id does not tell how many it takes."""
SECONDS = 20.0
REASONS = {
    "FileNotFoundError": "a file is missing",
    "ImportError": "a module is missing",
    "LookupError": "a download of NLTK's",
    "SyntaxError": "does not parse on this Python",
    "ValueError": "an API key",
}
"""What the errors of games that do not start mean, as read from their messages."""
CHANCE = {
    "2048-v0": "[up] [left] [down] [right]",
    "Blackjack-v0": "[hit] [stand]",
    "KuhnPoker-v0": "[check] [bet] [call] [fold]",
    "LiarsDice-v0": "[call] [bid: 1, 3] [bid: 2, 4] [bid: 3, 5]",
    "Minesweeper-v0": "[reveal 0 0] [reveal 5 5] [reveal 7 1]",
    "PigDice-v0": "[roll] [hold]",
}
"""Games of chance that need nothing downloaded, and things to say in them."""
SPOKEN = [
    *CHANCE, "TicTacToe-v0", "ConnectFour-v0", "Nim-v0", "Othello-v0", "Countdown-v0", "SecretMafia-v0",
    "IteratedPrisonersDilemma-v0", "IteratedRockPaperScissors-v0", "SimpleNegotiation-v0",
]  # fmt: skip


def families() -> list[str]:
    """One id of every entry point, the shortest: variants and wrappers are left out."""
    ids = sorted(ENV_REGISTRY, key=lambda game_id: (-len(game_id), game_id))
    return sorted({str(ENV_REGISTRY[game_id].entry_point): game_id for game_id in ids}.values())


def begun(game_id: str, seed: int = 1) -> Any:
    """An environment after its reset with a number of players it takes. Raises what the last try raised."""
    env = textarena.make(game_id)
    for n in SEATS:
        if not (fault := _reset(env, n, seed)):
            return env
    raise Broken(fault)


def _reset(env: Any, players: int, seed: int) -> str:
    try:
        env.reset(num_players=players, seed=seed)
    except Exception as error:  # noqa: BLE001 - any error means: not this number of players
        return f"{type(error).__name__}: {error}"
    return ""


def games() -> Cell:
    """Built, reset, looked at and moved once, the network refused."""
    cell = tally(families(), _one_move, SECONDS)
    why = cell.note
    for kind, words in REASONS.items():
        why = why.replace(kind, words)
    return cell._replace(text=f"{cell.text} families", note=f"most of the others: {why}" if why else "")


def _one_move(game_id: str) -> None:
    env = begun(game_id)
    env.get_observation()
    env.step("[0]")


def _standard(module: str, check: str) -> Cell:
    """Whether TicTacToe passes a standard's own checker."""

    def work() -> None:
        checker = getattr(__import__(module, fromlist=[check]), check)
        checker(begun("TicTacToe-v0"))

    fault = attempt(work)
    return Cell("no", failed=(fault,)) if fault else Cell("yes")


def gymnasium_env() -> Cell:
    """`check_env`."""
    return _standard("gymnasium.utils.env_checker", "check_env")


def pettingzoo_env() -> Cell:
    """`api_test`."""
    return _standard("pettingzoo.test", "api_test")


def driver(game_id: str, variant: str = "") -> Driver:
    """Play with things that can be said in the game."""
    said = [f"[{words}]" for words in CHANCE[game_id].strip("[]").split("] [")]

    def step(env: Any, n: int) -> str:
        if env.state.done:
            return ""
        seen = env.get_observation()
        env.step(Random(n).choice(said))
        return repr(seen)

    return Driver(lambda seed: begun(game_id + variant, seed), step)


def seeds() -> Cell:
    """The seed is the environment's own: games of chance only."""
    return tally([*CHANCE], lambda game_id: own_seed(driver(game_id)))


def pickles() -> Cell:
    """Pickled after three moves."""
    cell = tally([*CHANCE], lambda game_id: continues(driver(game_id)))
    raw = tally([*CHANCE], lambda game_id: continues(driver(game_id, "-raw")))
    return cell._replace(note=f"{cell.note}; {raw.text} without wrappers")


def legal() -> Cell:
    """Whether an environment tells what is legal."""
    env = begun("TicTacToe-v0")
    names = ("legal_actions", "legal_moves", "get_legal_actions", "action_space", "action_mask", "action_masks")
    found = [name for name in names if hasattr(env, name)]
    return Cell("text" if found else "no")


def hidden() -> Cell:
    """Whether an environment can complete a seat's view at random."""
    env = begun("KuhnPoker-v0")
    found = [name for name in ("determinize", "resample", "resample_from_infostate") if hasattr(env, name)]
    return Cell("yes" if found else "no")


def any_text() -> Cell:
    """Every hostile text at two positions."""
    return tally(SPOKEN, _said)


def _said(game_id: str) -> None:
    for text in HOSTILE:
        env = begun(game_id)
        for _ in range(2):
            if not env.state.done:
                env.get_observation()
                env.step(text)


def chess() -> Cell:
    """The raw environment; it has no list, so its own python-chess board gives the legal moves."""
    if fault := attempt(lambda: begun("Chess-v0-raw")):
        return Cell("—", f"Chess does not load on this Python: {fault}")
    return Cell(f"{rate(_chess_game):,.0f}", CHESS)


def _chess_game(rng: Random) -> int:
    env, moves, done = begun("Chess-v0-raw"), 0, False
    while not done:
        env.get_observation()
        move = rng.choice(list(env.state.game_state["board"].legal_moves))
        done, _ = env.step(f"[{move.uci()}]")
        moves += 1
    return moves


def pictures() -> Cell:
    """Whether an environment renders."""
    return Cell("yes" if hasattr(begun("TicTacToe-v0"), "render") else "no")


def models() -> Cell:
    """What the source has for language models."""
    return language_models("textarena")


def install() -> Cell:
    """Distributions, and CPU seconds to a first game."""
    seconds = start_seconds("import textarena; textarena.make('TicTacToe-v0')")
    return Cell(f"{packages(DISTRIBUTION)} · {seconds:.2f}")


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
