"""verifiers' column: a framework for tasks and training that brings no games of its own rules."""

import pkgutil
from importlib import import_module

from benchmarks.peers.checks import Cell, Facts, language_models, packages, start_seconds

DISTRIBUTION = "verifiers"


def no_games() -> Cell:
    """What makes no sense without games of its own; the bridges it has to other libraries."""
    bridges = ", ".join(module.name for module in pkgutil.iter_modules(import_module("verifiers.v1.tasksets").__path__))
    return Cell("—", f"verifiers brings no games: the rules are the task author's, or come over a bridge ({bridges})")


def standard() -> Cell:
    """Whether any of its public classes is an environment of the standards."""
    public = vars(import_module("verifiers.v1")).values()
    classes = [value for value in public if isinstance(value, type)]
    roots = {base.__module__.partition(".")[0] for value in classes for base in value.__mro__}
    return Cell("yes" if roots & {"gymnasium", "pettingzoo"} else "no")


def pictures() -> Cell:
    """Whether a message to the model can hold one."""
    names = vars(import_module("verifiers.v1.types"))
    return Cell("in messages" if "ImageUrlContentPart" in names else "no")


def models() -> Cell:
    """What the source has for language models."""
    return language_models("verifiers")


def install() -> Cell:
    """Distributions, and CPU seconds to its classes."""
    seconds = start_seconds("import verifiers.v1 as vf; vf.Task; vf.Env")
    return Cell(f"{packages(DISTRIBUTION)} · {seconds:.2f}")


FACTS: Facts = {
    "games": no_games,
    "gymnasium": standard,
    "pettingzoo": standard,
    "seeds": no_games,
    "pickles": no_games,
    "legal": no_games,
    "hidden": no_games,
    "any_text": no_games,
    "chess": no_games,
    "pictures": pictures,
    "models": models,
    "install": install,
}
