"""The conformance kit: `check_game(MyGame)` plays a game and says which rules of the contract it breaks.

>>> from arena.games.board.tictactoe import TicTacToe
>>> check_game(TicTacToe)

`CHECKS` lists every rule by name. Each check is a function of a `Case` whose docstring states its rule. After
the model of dm_env's test_utils, fsspec's abstract tests and pgx's api_test. It needs neither pytest nor numpy.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from arena.game import Game, LiveGame
from arena.testing import _actions, _chance, _faces, _hostile, _play, _private, _rewards, _values
from arena.testing._case import Case, Violation, random_playthrough

__all__ = ["CHECKS", "Case", "ConformanceError", "Failure", "check_game", "random_playthrough"]

Check = Callable[[Case], None]

_ALWAYS: tuple[Check, ...] = (
    _play.options,
    _play.plays,
    _play.seats,
    _play.defined,
    _play.ends,
    _play.json_options,
    _play.options_only,
    _actions.legal_list,
    _actions.samples,
    _actions.fallback,
    _actions.normalize,
    _rewards.returns,
    _rewards.reward_range,
    _rewards.zero_sum,
    _private.events,
    _private.append_only,
    _private.audience,
    _faces.action_table,
    _faces.features,
    _faces.rules_example,
    _values.frozen,
    _values.reads,
    _hostile.max_action,
)
_LIVE: tuple[Check, ...] = (_values.closing,)
# They apply to one position twice, copy it, or play a game again: a LiveGame is exempt.
_VALUES: tuple[Check, ...] = (
    _chance.determinism,
    _chance.interleaving,
    _chance.threads,
    _chance.hash_seed,
    _chance.global_random,
    _values.purity,
    _values.hashing,
    _values.equality,
    _values.pickling,
    _values.copying,
    _actions.legal_apply,
    _actions.illegal,
    _actions.blame,
    _actions.wrong_seats,
    _actions.key_order,
    _actions.final,
    _hostile.garbage,
    _hostile.reasons,
    _hostile.linear_time,
    _hostile.check_agrees,
    _hostile.forging,
    _hostile.max_length,
    _private.determinize,
    _private.determinize_repeats,
    _private.determinize_plays,
    _private.reseeding,
)

CHECKS: Mapping[str, Check] = {check.__name__: check for check in (*_ALWAYS, *_LIVE, *_VALUES)}
"""Every check by its name. A check raises when the rule in its docstring is broken."""

_SLOW = {"hash_seed"}


class Failure(NamedTuple):
    """One broken rule."""

    check: str
    message: str
    options: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.check}: {self.message}" + (f" with {dict(self.options)}" if self.options else "")


class ConformanceError(AssertionError):
    """The game breaks the contract; `failures` says which rules, and `check` is the name of the first."""

    def __init__(self, game: type[Game], failures: Sequence[Failure]) -> None:
        super().__init__(game, failures)
        self.game = game
        self.failures = tuple(failures)
        self.check = failures[0].check

    def __str__(self) -> str:
        rules = "a rule" if len(self.failures) == 1 else f"{len(self.failures)} rules"
        return "\n".join([f"{self.game.__name__} breaks {rules} of the contract", *map(str, self.failures)])


def check_game(
    game: type[Game],
    options: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    *,
    seeds: Iterable[int] = range(5),
    max_plies: int = 2000,
    checks: Collection[str] | None = None,
    subprocess: bool = False,
) -> None:
    """Raise ConformanceError, with all that was found, if the game breaks a rule of the contract.

    `options` are those of `initial`, or several sets of them, each checked; `seeds` are the deals that are played
    at random, each for at most `max_plies` moves. `checks` names some of `CHECKS`; None is all but `hash_seed`,
    which starts another process and is added by `subprocess=True`. A LiveGame is spared the checks that apply to
    a position twice, copy it or play a game again.
    """
    names = _names(game, checks, subprocess)
    if not (deals := tuple(seeds)):
        raise ValueError("seeds is empty: give at least one")
    variants = [options] if isinstance(options, Mapping) else list(options) or [{}]
    failures: list[Failure] = []
    for variant in variants:
        failures += _run(Case(game, dict(variant), deals, max_plies), names)
    if failures:
        raise ConformanceError(game, failures)


def _names(game: type[Game], checks: Collection[str] | None, subprocess: bool) -> list[str]:
    if not (isinstance(game, type) and issubclass(game, Game)):
        raise TypeError(f"check_game takes a subclass of arena.game.Game, not {game!r}")
    if unknown := sorted(set(checks or ()) - set(CHECKS)):
        raise ValueError(f"unknown checks {unknown}: allowed are {', '.join(CHECKS)}")
    wanted = set(CHECKS) - (set() if subprocess else _SLOW) if checks is None else set(checks)
    spared = _VALUES if issubclass(game, LiveGame) else _LIVE
    return [name for name in CHECKS if name in wanted and CHECKS[name] not in spared]


def _run(case: Case, names: Sequence[str]) -> list[Failure]:
    """What is broken with one set of options. Without a single position there is nothing more to look at."""
    if not all(play.positions for play in case.playthroughs):
        names = ["options", "plays"]
    found = []
    for name in names:
        try:
            CHECKS[name](case)
        except Violation as violation:
            found.append(Failure(name, str(violation), case.options))
        except Exception as error:  # noqa: BLE001 - whatever a game under test raises is a finding
            found.append(Failure(name, f"the game raised {error!r}, which it never should", case.options))
    return found
