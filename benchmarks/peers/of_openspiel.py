"""OpenSpiel's column: through `pyspiel`, and PettingZoo's standard through Shimmy where that is installed."""

import pkgutil
from importlib import import_module
from random import Random
from typing import Any

import pyspiel

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

DISTRIBUTION = "open-spiel"
SAMPLE = [
    "backgammon", "chess", "connect_four", "goofspiel", "hanabi", "kuhn_poker", "leduc_poker", "liars_dice",
    "tic_tac_toe",
]  # fmt: skip
"""Games of every kind, for checks of the interface they all share."""


def advance(state: Any, rng: Random) -> None:
    """One random step: of chance, of one player, or of all at once."""
    if state.is_chance_node():
        outcomes, weights = zip(*state.chance_outcomes(), strict=True)
        state.apply_action(rng.choices(outcomes, weights)[0])
    elif state.is_simultaneous_node():
        legal = [state.legal_actions(p) for p in range(state.num_players())]
        state.apply_actions([rng.choice(actions) if actions else 0 for actions in legal])
    else:
        state.apply_action(rng.choice(state.legal_actions()))


def _dealt(name: str) -> tuple[Any, Random]:
    """The first position in which a player decides."""
    state, rng = pyspiel.load_game(name).new_initial_state(), Random(0)
    while state.is_chance_node():
        advance(state, rng)
    return state, rng


def games() -> Cell:
    """Loaded with default parameters and moved up to ten times."""
    note = "the rest are transforms of other games, mean-field games and games that need parameters or a file"
    return tally(pyspiel.registered_names(), _moves, note=note)


def _moves(name: str) -> None:
    state, rng = pyspiel.load_game(name).new_initial_state(), Random(0)
    for _ in range(10):
        if not state.is_terminal():
            advance(state, rng)


def gymnasium_env() -> Cell:
    """`check_env` of the game."""

    def work() -> None:
        import_module("gymnasium.utils.env_checker").check_env(pyspiel.load_game("tic_tac_toe"))

    fault = attempt(work)
    return Cell("no", failed=(fault,)) if fault else Cell("yes")


def pettingzoo_env() -> Cell:
    """`api_test` of Shimmy's wrapper."""
    cell = tally(SAMPLE, _api_test, 60.0)
    return cell._replace(text=f"{cell.text} sampled", note="through Shimmy, a bridge of the Farama Foundation's")


def _api_test(name: str) -> None:
    api_test = import_module("pettingzoo.test").api_test
    wrapper = import_module("shimmy").OpenSpielCompatibilityV0
    api_test(wrapper(pyspiel.load_game(name)), num_cycles=100)


def driver(name: str) -> Driver:
    """Random play; the caller draws for chance, so the state takes no seed."""

    def start(seed: int) -> Any:
        return [pyspiel.load_game(name).new_initial_state(), Random(seed)]

    def step(held: Any, n: int) -> str:
        state, rng = held
        if state.is_terminal():
            return ""
        advance(state, rng if state.is_chance_node() else Random(n))
        return str(state) + str(state.history())

    return Driver(start, step)


def seeds() -> Cell:
    """The caller draws for chance."""
    return tally(SAMPLE, lambda name: own_seed(driver(name)))._replace(note="the caller draws for chance")


def pickles() -> Cell:
    """Pickled after three moves."""
    return tally(SAMPLE, lambda name: continues(driver(name)))


def legal() -> Cell:
    """Lists of numbers, their texts, and masks."""
    cell = tally(SAMPLE, _listed)
    return Cell(f"text, mask ({cell.text})", cell.note, cell.failed)


def _listed(name: str) -> None:
    state, _ = _dealt(name)
    player = 0 if state.is_simultaneous_node() else state.current_player()
    texts = [state.action_to_string(player, action) for action in state.legal_actions(player)]
    if len(set(texts)) != len(texts) or sum(state.legal_actions_mask(player)) != len(texts):
        raise Broken("texts or mask do not fit the list")


def hidden() -> Cell:
    """`resample_from_infostate` in every loadable game of imperfect information in which players take turns."""
    note = "games of imperfect information in which players take turns"
    return tally([name for name in pyspiel.registered_names() if _hides(name)], _resampled, note=note)


def _hides(name: str) -> bool:
    if attempt(lambda: _moves(name)):
        return False
    kind = pyspiel.load_game(name).get_type()
    turns = kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    return bool(turns and kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION)


def _resampled(name: str) -> None:
    state, rng = _dealt(name)
    state.resample_from_infostate(state.current_player(), rng.random)


def any_text() -> Cell:
    """What `string_to_action` makes of every hostile text."""
    return tally(SAMPLE, _said, note="`string_to_action` raises SpielError, which the caller may catch")


def _said(name: str) -> None:
    state, _ = _dealt(name)
    for text in HOSTILE:
        state.string_to_action(max(0, state.current_player()), text)


def chess() -> Cell:
    """Numbers only: no text is made."""
    return Cell(f"{rate(_chess_game):,.0f}", CHESS)


def _chess_game(rng: Random) -> int:
    state, moves = pyspiel.load_game("chess").new_initial_state(), 0
    while not state.is_terminal():
        state.apply_action(rng.choice(state.legal_actions()))
        moves += 1
    return moves


def pictures() -> Cell:
    """Whether a state renders."""
    state = pyspiel.load_game("tic_tac_toe").new_initial_state()
    return Cell("yes" if hasattr(state, "render") else "no")


def models() -> Cell:
    """What the source has for language models, and the modules of algorithms it brings."""
    folder = import_module("open_spiel.python.algorithms").__path__
    modules = [module.name for module in pkgutil.iter_modules(folder) if not module.name.endswith("_test")]
    cell = language_models("open_spiel")
    return cell._replace(text=f"{len(modules)} modules of algorithms" + f", {cell.text}" * (cell.text != "no"))


def install() -> Cell:
    """Distributions, and CPU seconds to a first game."""
    seconds = start_seconds("import pyspiel; pyspiel.load_game('tic_tac_toe')")
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
