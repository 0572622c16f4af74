"""Episode: the one record of a match, from which every other format is a view; written, read, checked, replayed."""

import io
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
import zstandard

from arena.agent import AgentInfo, Call
from arena.frames import Frames
from arena.game import Action, Game, Player
from arena.referee import Referee, Verdict
from arena.text import show

__all__ = [
    "SCHEMA",
    "Attempt",
    "Episode",
    "EpisodeError",
    "Outcome",
    "Seat",
    "Turn",
    "Writer",
    "joined",
    "link",
    "prompts",
    "read",
    "shown_to",
    "validate",
    "write",
]

SCHEMA = 1
Outcome = Literal["terminated", "truncated", "void"]


class EpisodeError(ValueError):
    """A record that contradicts itself, or play that does not repeat."""


# Records hold data only, never themselves: the garbage collector need not walk thousands of them (gc=False).
class Attempt(msgspec.Struct, omit_defaults=True, gc=False):
    """One reply of a seat and what the referee made of it."""

    raw: str
    verdict: Verdict = "legal"
    reason: str = ""
    reasoning: str = ""
    latency: float = 0.0
    """Seconds."""
    calls: tuple[Call, ...] = ()


class Turn(msgspec.Struct, omit_defaults=True, gc=False):
    """One seat's part in one ply."""

    ply: int
    seat: Player
    observation: str
    action: Action | None
    """What was played: the seat's own action, or the one substituted for it; None: the forfeit that ended the game, or
    the last ply of an episode that was cut there (`Reply.ends`)."""
    attempts: tuple[Attempt, ...]
    """In order; empty for a seat that was vacated by an earlier forfeit."""
    legal: int | None = None
    """The size of the legal list (replay gives the list back); None: open text."""
    events: tuple[str, ...] = ()
    """What happened since the seat's last turn, as it was shown."""
    reward: float = 0.0
    """What the seat earned from here to its next turn, or to the end."""
    hash: str = ""
    """Link of the chain over (previous link, seat, events and observation, action)."""


class Seat(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Who sat there, and with what."""

    agent: str
    role: str = ""
    rules: str = ""
    policy: AgentInfo = AgentInfo()


class Episode(msgspec.Struct, omit_defaults=True):
    """One match from its seed to its returns."""

    id: str
    env: str
    seed: int
    outcome: Outcome
    returns: tuple[float, ...] | None
    """Of every seat; None: void."""
    seats: tuple[Seat, ...]
    turns: list[Turn]
    options: dict[str, Any] = {}
    referee: Referee = Referee()
    reason: str = ""
    """Why it is truncated or void."""
    forfeits: tuple[Player, ...] = ()
    scores: tuple[dict[str, float], ...] = ()
    """Named parts of each seat's return, where the game gives any."""
    final: tuple[str, ...] = ()
    """What each seat was shown at the end: events since its last turn, then the observation."""
    started: float = 0.0
    """Seconds since the epoch."""
    ended: float = 0.0
    group_id: str = ""
    match_id: str = ""
    sample: int = 0
    """Which of several matches of the same seed and seats: agents draw from other streams, the deal is the same."""
    parent: str = ""
    """Id of the episode from which it was played on (`arena.rollouts.branch`), "" for one from the beginning."""
    fork: int = 0
    """Of one with a parent: the ply from which it was played; what is before is the parent's."""
    versions: dict[str, str] = {}
    gaps: tuple[str, ...] = ()
    """What could not be recorded."""
    schema: int = SCHEMA


def link(previous: str, seat: Player, shown: str, action: Action | None) -> str:
    """The next link of the hash chain: 32 hexadecimal digits (blake2b)."""
    body = f"{previous} {seat} {len(shown)} {shown}{'' if action is None else action}"
    return blake2b(body.encode(), digest_size=16).hexdigest()


def shown_to(game: Game, player: Player, since: int) -> tuple[tuple[str, ...], str]:
    """Events from number `since` on, as shown to the seat, and its observation."""
    return tuple([show(event) for event in game.events(player)[since:]]), game.observation(player)


def prompts(calls: Iterable[Call]) -> list[tuple[int, ...]]:
    """The whole prompt of every call of one seat, in order, from what each adds to the one before.

    >>> first = Call("generate", prompt_ids=(1, 2), completion_ids=(3,))
    >>> prompts([first, Call("generate", extends=3, prompt_ids=(4,))])
    [(1, 2), (1, 2, 3, 4)]

    Raises EpisodeError where a call extends more than there was.
    """
    whole: list[tuple[int, ...]] = []
    before: tuple[int, ...] = ()
    for call in calls:
        if call.extends > len(before):
            raise EpisodeError(f"a call extends {call.extends} tokens, there were {len(before)} before it")
        whole.append(before[: call.extends] + call.prompt_ids)
        before = whole[-1] + call.completion_ids
    return whole


def joined(events: tuple[str, ...], observation: str) -> str:
    """What a seat is shown: the events, a line each, then the observation."""
    return "\n".join((*events, observation)) if events else observation


def validate(episode: Episode) -> None:
    """Raise EpisodeError where the record contradicts itself."""
    for rule, holds in _INVARIANTS.items():
        if not holds(episode):
            raise EpisodeError(f"episode {episode.id or '?'}: {rule}")


def _paid(episode: Episode) -> bool:
    if episode.outcome == "void":
        return episode.returns is None
    return episode.returns is not None and len(episode.returns) == len(episode.seats)


def _seats_known(episode: Episode) -> bool:
    known = range(len(episode.seats))
    return all(turn.seat in known for turn in episode.turns) and all(seat in known for seat in episode.forfeits)


def _calls(episode: Episode, seat: Player) -> list[Call]:
    """The calls of a seat, in order."""
    turns = [turn for turn in episode.turns if turn.seat == seat]
    return [call for turn in turns for attempt in turn.attempts for call in attempt.calls]


def _logprobs_fit(episode: Episode) -> bool:
    calls = [call for seat in range(len(episode.seats)) for call in _calls(episode, seat)]
    return all(not call.logprobs or len(call.logprobs) == len(call.completion_ids) for call in calls)


def _prompts_fit(episode: Episode) -> bool:
    try:
        return all(prompts(_calls(episode, seat)) is not None for seat in range(len(episode.seats)))
    except EpisodeError:
        return False


def _reasoned(episode: Episode) -> bool:
    return episode.outcome == "terminated" or bool(episode.reason)


def _in_order(episode: Episode) -> bool:
    return all(a.ply <= b.ply for a, b in pairwise(episode.turns))


def _end_kept(episode: Episode) -> bool:
    return episode.outcome == "void" or len(episode.final) == len(episode.seats)


def _this_schema(episode: Episode) -> bool:
    return episode.schema == SCHEMA


def _seed_allowed(episode: Episode) -> bool:
    return 0 <= episode.seed < 1 << 64


_INVARIANTS: dict[str, Callable[[Episode], bool]] = {
    f"its schema is not {SCHEMA}": _this_schema,
    "its seed is not 0 to 2**64 - 1": _seed_allowed,
    "every seat is paid unless it is void": _paid,
    "truncated and void have a reason": _reasoned,
    "turns and forfeits name seats that exist": _seats_known,
    "plies never go back": _in_order,
    "logprobs and completion ids have equal lengths": _logprobs_fit,
    "prompts extend what was there before": _prompts_fit,
    "what was shown at the end is kept": _end_kept,
}


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Episode)


class Writer:
    """Appends episodes to a file, one JSON line each; a name that ends in `.zst` is compressed (zstd).

    >>> with Writer("/dev/null") as out:
    ...     out.count
    0
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.count = 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("ab")
        compressed = self.path.suffix == ".zst"
        self._file = zstandard.ZstdCompressor().stream_writer(file, closefd=True) if compressed else file

    def write(self, episode: Episode) -> None:
        """Append one episode."""
        self._file.write(_encoder.encode(episode) + b"\n")
        self.count += 1

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def write(path: str | Path, episodes: Iterable[Episode]) -> int:
    """Append the episodes to a `.jsonl` or `.jsonl.zst` file; how many there were."""
    with Writer(path) as out:
        for episode in episodes:
            out.write(episode)
    return out.count


def read(path: str | Path) -> Iterator[Episode]:
    """The episodes of a file that `write` made. Raises EpisodeError with the number of a line that is none."""
    path = Path(path)
    with path.open("rb") as file:
        lines: Iterable[bytes] = file
        if path.suffix == ".zst":
            lines = io.BufferedReader(Frames(file))
        try:
            for number, line in enumerate(lines, 1):
                yield _decode(line, f"{path}:{number}")
        except zstandard.ZstdError as error:
            raise EpisodeError(f"{path} is not a whole zstd file: {error}") from error


def _decode(line: bytes, where: str) -> Episode:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        whole = line.endswith(b"\n") or isinstance(error, msgspec.ValidationError)
        cut = "" if whole else " (the line was cut short: delete it, what is above is whole)"
        raise EpisodeError(f"{where}: not an episode: {error}{cut}") from error
