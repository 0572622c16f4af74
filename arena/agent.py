"""Agents: how a policy is asked. An agent is given a `View` and answers with a `Reply`, plainly or awaitably.

An agent keeps nothing between calls but what it puts into `view.memory`, so one object plays a thousand
games at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from hashlib import blake2b
from math import isfinite
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from arena.game import Action, Event, Game, Player, replace
from arena.text import clean

if TYPE_CHECKING:
    from arena.episode import Turn
    from arena.referee import Referee

__all__ = [
    "LEAST",
    "NO_INFO",
    "Agent",
    "AgentError",
    "AgentInfo",
    "Call",
    "HouseAgent",
    "Reply",
    "View",
    "cleaned",
    "seat_rng",
    "stream_seed",
]


class AgentError(RuntimeError):
    """The agent could not answer, and it is not the player's fault (server down, our own bug): the episode is void."""


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request to a model or a private tool inside a turn."""

    kind: str
    """What was asked, such as "generate" or "tool"."""
    sent: str = ""
    received: str = ""
    extends: int = 0
    """How many tokens the prompt shares with prompt and completion of the seat's previous call."""
    prompt_ids: tuple[int, ...] = ()
    """The tokens of the prompt after those, so that a conversation is stored once (`arena.episode.prompts`)."""
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """One for each completion id, or none; minus infinity is kept as `LEAST`."""
    logprob_kind: str = ""
    finish_reason: str = ""
    usage: dict[str, float] = {}
    weight_versions: tuple[tuple[int, str], ...] = ()
    """(index of the first completion id, weight version) of every span."""


LEAST = -1e9
"""What stands for a log-probability of minus infinity: JSON has no infinities."""


def cleaned(call: Call) -> Call:
    """The call as it can be stored: text with bytes in UTF-8 (`arena.text.clean`), numbers that are finite."""
    finite = isfinite(sum(call.logprobs)) and isfinite(sum(call.usage.values()))
    if finite and all(clean(text) is text for text in (call.sent, call.received, call.finish_reason)):
        return call
    return replace(
        call,
        sent=clean(call.sent),
        received=clean(call.received),
        finish_reason=clean(call.finish_reason),
        logprobs=tuple([p if isfinite(p) else LEAST for p in call.logprobs]),
        usage={key: value for key, value in call.usage.items() if isfinite(value)},
    )


class AgentInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a record says of the policy behind a seat, beside its name."""

    model: str = ""
    weight_version: str = ""
    tokenizer_hash: str = ""
    template_hash: str = ""
    sampling: dict[str, Any] = {}
    trainable: bool = True


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a policy answered: the text the referee reads, and what is worth recording beside it."""

    text: str
    reasoning: str = ""
    truncated: bool = False
    """The answer was cut (out of tokens): the player's fault."""
    calls: tuple[Call, ...] = ()
    gaps: tuple[str, ...] = ()
    """What could not be recorded of this answer."""
    ends: str = ""
    """Why the episode ends here, truncated, by nobody's fault (the server aborted the answer); `text` is not read."""


def stream_seed(seed: int, sample: int = 0, fork: int = -1) -> int:
    """The seed of the seats' private streams, in sample `sample` of a deal, from ply `fork` on (-1: a whole match).

    It is the deal's own for sample 0 of a whole match, else another one below 2**64.
    """
    if not sample and fork < 0:
        return seed
    return int.from_bytes(blake2b(b"%d sample %d fork %d" % (seed, sample, fork), digest_size=8).digest(), "little")


def seat_rng(seed: int, player: Player) -> Random:
    """The private generator of a seat: another stream than the deal's `Random(seed)` for every seed below 2**64."""
    return Random((1 << 64) + (seed << 8) + player)


class View(msgspec.Struct):
    """All that one seat may know at its turn.

    `memory` is the seat's own for the episode; `rng` its private generator (made when first
    asked for, and kept in `memory["rng"]`).
    """

    player: Player
    observation: str
    legal_actions: tuple[Action, ...] | None
    """Every legal action, or None: open text (or a referee who does not show the list)."""
    memory: dict[str, Any]
    note: str = ""
    """The referee's word about the seat's last try, "" at the first."""
    ply: int = 0
    _game: Game | None = None
    _seed: int = 0
    _since: int = 0

    @property
    def rules(self) -> str:
        """How to play, for this seat and these options."""
        return self.game.rules(self.player)

    @property
    def events(self) -> Sequence[Event]:
        """The history this seat has seen, the whole episode's."""
        return self.game.events(self.player)

    @property
    def new_events(self) -> Sequence[Event]:
        """What of it has happened since this seat's last turn."""
        return self.events[self._since :]

    @property
    def open_text(self) -> bool:
        """Any text may be an action: there is no list, shown or not."""
        return self.game.legal_actions(self.player) is None

    @property
    def players(self) -> int:
        """The number of seats."""
        return self.game.players

    @property
    def game(self) -> Game:
        """The true position. It is the match's: an agent that reads more of it than a View shows, cheats."""
        if self._game is None:
            raise AgentError("this view carries no position")
        return self._game

    @property
    def rng(self) -> Random:
        """The seat's private generator: the same seed and seat give the same stream."""
        rng: Random | None = self.memory.get("rng")
        if rng is None:
            rng = self.memory["rng"] = seat_rng(self._seed, self.player)
        return rng

    def draw(self, high: int) -> int:
        """A number in `range(high)` that depends on seed, seat and ply only: cheaper than a generator of one's own."""
        key = b"%d %d %d" % (self._seed, self.player, self.ply)
        return int.from_bytes(blake2b(key, digest_size=16).digest(), "little") % high

    def sample_state(self, rng: Random) -> Game:
        """A full position that agrees with what the seat knows: what a search may look into.

        The true one where nothing is hidden, its chance reseeded; else `determinize`.
        """
        return self.game.determinize(self.player, rng)

    def sample_action(self, rng: Random | None = None) -> Action:
        """A random legal action."""
        return self.game.sample_action(self.player, rng or self.rng)

    def fallback(self) -> Action | None:
        """The game's harmless action for a seat that does not answer, or None."""
        return self.game.fallback(self.player)


NO_INFO = AgentInfo()
"""Of an agent that has nothing to add to its name."""


class Agent(ABC):
    """A policy. Write `act`, plain or `async`."""

    name: str = ""
    """What records and leaderboards call it; the registry sets it to the spec string."""
    blocking: bool = False
    """It computes for long (a search): it is asked in a worker process, never in the event loop."""
    served: bool = False
    """Out of time is the server's fault (void), not the player's (forfeit)."""
    endpoints: tuple[str, ...] = ()
    """The servers it asks, as host and port ("127.0.0.1:30000"); tournaments may cap games at once by them."""
    incidental: ClassVar[frozenset[str]] = frozenset()
    """Options that change how it is reached (time-outs, prices), not how it plays: no part of who it is."""

    @abstractmethod
    def act(self, view: View) -> Reply | Awaitable[Reply]:
        """The answer of the seat `view.player`. An exception makes the episode void."""

    def recall(self, views: Sequence[View], turn: "Turn") -> Awaitable[None] | None:
        """Take up a turn that was played before, as if this agent had played it: an episode goes on from its middle.

        `views`: one for each of the turn's attempts, with this episode's `memory`; nothing is to be done by an agent
        that keeps no history of its own.
        """
        return None

    def prepare(self, game: Game, referee: "Referee") -> Awaitable[None] | None:
        """Show, before anything is played, that this game can be; `game` is a first position of it.

        Raises ValueError or AgentError with one line: why it cannot, and what to do.
        """
        return None

    def standin(self) -> "Agent | None":
        """For a dry run: who plays at random and records the tokens this agent would spend; None: it spends none."""
        return None

    def info(self) -> AgentInfo:
        """What the record says of the policy; asked once at the end of each episode."""
        return NO_INFO

    def close(self) -> Awaitable[None] | None:
        """Let go of connections or processes, at once or awaitably."""
        return None


class HouseAgent(Agent):
    """Holds a seat of the house: plays the game's `fallback`, else a sample."""

    name = "house"

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        action = view.fallback()
        return Reply(view.sample_action() if action is None else action)
