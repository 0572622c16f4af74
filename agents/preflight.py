"""What a language model needs to play a game, checked before it is played: each failure is one line with its remedy."""

from random import Random
from typing import Any, NamedTuple

from arena.agent import View
from arena.agents.conversation import Bridges
from arena.agents.decoding import unfit
from arena.agents.prompting import Prompter, Prompting
from arena.game import Game, IllegalAction, LiveGame
from arena.model import Message, Model, ModelError, ModelInfo, Sampling
from arena.referee import Referee
from arena.tools.task import ToolTask

__all__ = ["Known", "answer_room", "check", "check_features", "check_room", "check_sampling"]

_PLIES = 200  # of the random game that looks for a position without a list
_LETTERS = 3  # characters a token, where nobody counts


class Known(NamedTuple):
    """What a server said of itself."""

    info: ModelInfo
    features: frozenset[str]
    bridges: Bridges | None
    """None: conversations are kept in messages."""


def check_sampling(sampling: Sampling) -> None:
    """Raises ValueError for what no server takes."""
    allowed = {
        "max_tokens": (sampling.max_tokens >= 1, "1 and more"),
        "temperature": (0 <= sampling.temperature < float("inf"), "0 and more"),
        "top_p": (0 < sampling.top_p <= 1, "above 0, up to 1"),
        "top_k": (sampling.top_k == -1 or sampling.top_k >= 1, "1 and more, or -1 (all tokens)"),
        "min_p": (0 <= sampling.min_p <= 1, "0 to 1"),
    }
    for name, (fits, values) in allowed.items():
        if not fits:
            raise ValueError(f"{name}={getattr(sampling, name)!r}: allowed are {values}")


def check(options: Prompting, game: Game, referee: Referee) -> None:
    """What can be seen without the model. `game`: a first position. Raises ValueError."""
    if options.tools and not isinstance(game, ToolTask):
        raise ValueError(f"tools={options.tools}: {type(game).__name__} is no tool task; leave tools out")
    if options.decode in ("constrained", "score"):
        _check_lists(options.decode, game, referee)
    listed = [player for player in game.to_act() if game.legal_actions(player) is not None]
    if listed and options.form != "plain" and options.form not in referee.marks:
        allowed = ", ".join((*referee.marks, "plain"))
        raise ValueError(f"answer={options.form}: the referee does not read that mark; allowed here are {allowed}")


def _check_lists(decode: str, game: Game, referee: Referee) -> None:
    """A list at every turn of a random game, and shown."""
    if not referee.show_legal:
        raise ValueError(f"decode={decode} needs the list of legal actions, the referee has show_legal=False")
    rng, name, state = Random(0), type(game).__name__, game
    for ply in range(_PLIES):
        acting = state.to_act()
        for player in acting:
            if player not in game.house and (why := unfit(state.legal_actions(player))):
                raise ValueError(f"decode={decode} cannot play {name}: at ply {ply} {why}; use decode=free")
        if not acting or isinstance(game, LiveGame):  # what is live must not be moved
            break
        try:
            state = state.apply({player: state.sample_action(player, rng) for player in acting})
        except IllegalAction as error:
            raise ValueError(f"{name} refuses its own sample: {error}") from error


def check_features(options: Prompting, known: Known) -> None:
    """What the server can do. Raises ValueError."""
    wanted = {"constrained": "regex", "score": "score"}.get(options.decode, "")
    if options.tools == "openai":
        wanted = "tools"
    if wanted and wanted not in known.features:
        what = f"tools={options.tools}" if options.tools == "openai" else f"decode={options.decode}"
        has = ", ".join(sorted(known.features)) or "none"
        raise ValueError(f"{what} needs the feature {wanted} of {_named(known.info)}, which has: {has}")
    if options.decode == "score" and known.bridges is None:
        raise ValueError(f"decode=score needs the feature tokens of {_named(known.info)}: use decode=free")
    if options.decode == "score" and known.bridges is not None and known.bridges.end is None:
        raise ValueError(f"decode=score: the chat template of {_named(known.info)} ends no turn; use decode=free")


def answer_room(options: Prompting, sampling: Sampling) -> int:
    """The tokens that must be left for an answer; one that is scored is not written."""
    return 1 if options.decode == "score" else sampling.max_tokens


async def check_room(
    model: Model, prompter: Prompter, sampling: Sampling, known: Known, game: Game, referee: Referee
) -> None:
    """Whether the first prompts fit. Raises ValueError; ModelError where the model cannot be asked."""
    tools = prompter.schemas(game)
    longest = max([_first(prompter, game, player, referee) for player in game.to_act()], key=_letters, default=None)
    if longest is None:
        return
    if known.bridges is None:
        tokens, counted = _letters(longest) // _LETTERS, "about "
    else:
        tokens, counted = len(await model.render(known.bridges.merged(longest), tools)), ""
    context, wanted = known.info.context, answer_room(prompter.options, sampling)
    if context and tokens + wanted > context:
        estimate = " (estimated from its characters)" if counted else ""
        raise ValueError(
            f"the first prompt of {type(game).__name__} has {counted}{tokens} tokens{estimate}, its answer up to"
            f" {wanted}: more than the context of {_named(known.info)}, {context};"
            " lower max_tokens or use a longer context"
        )
    if tools and known.bridges is not None:
        await _check_tools(model, known.bridges, known.info, longest, tools)


async def _check_tools(
    model: Model, bridges: Bridges, info: ModelInfo, first: tuple[Message, ...], tools: tuple[dict[str, Any], ...]
) -> None:
    """The chat template must show tools and take their results."""
    messages = bridges.merged(first)
    if await model.render(messages, tools) == await model.render(messages):
        raise ValueError(f"tools: the chat template of {_named(info)} shows no tools; leave tools out")
    try:
        await bridges.between((Message("tool", "3", tool_call_id="call00000"),))
    except ModelError as error:
        raise ModelError(f"tools: the chat template of {_named(info)} takes no results of tools: {error}") from error


def _first(prompter: Prompter, game: Game, player: int, referee: Referee) -> tuple[Message, ...]:
    legal = game.legal_actions(player) if referee.show_legal else None
    view = View(player, game.observation(player), legal, {}, "", 0, game)
    return (Message("system", prompter.system(view)), Message("user", prompter.turn(view)))


def _letters(messages: tuple[Message, ...]) -> int:
    return sum(len(message.content) for message in messages)


def _named(info: ModelInfo) -> str:
    return f"{info.model or 'the model'}{f' at {info.url}' if info.url else ''}"
