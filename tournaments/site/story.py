"""One game as data for the page that shows it move by move: what was shown, said, read and played, and the boards.

Boards and tables come from playing the recorded actions again. They end, with the reason, where the game at hand shows
a seat something else than the record; what was shown and said is the record's own.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from arena.drawing import Drawing
from arena.episode import Attempt, Episode, Turn, joined, validate
from arena.game import Game, LiveGame
from arena.registry import make_game
from arena.tournaments.site.look import signed

__all__ = ["story"]

_USED = {"prompt_tokens": "tokens in", "cached_tokens": "of them cached", "completion_tokens": "tokens out"}


class _Shelf(dict[Any, int]):
    """Things by number, each kept once."""

    def put(self, thing: Any) -> int:
        """Its number."""
        return self.setdefault(thing, len(self))


def story(episode: Episode) -> dict[str, Any]:
    """Of an episode; texts and boards are numbers in `texts` and `boards`. Raises EpisodeError for a broken record.

    Position 0 is the start, position k is after the k-th ply of `plies`, and one more tells the end.
    """
    validate(episode)
    texts, boards, heads = _Shelf(), _Shelf(), _Shelf()
    plies = [list(turns) for _, turns in groupby(episode.turns, lambda turn: turn.ply)]
    scenes, broken = _scenes(episode, plies, texts, boards, heads)
    return {
        "seats": [seat.agent for seat in episode.seats],
        "rules": [texts.put(seat.rules) for seat in episode.seats],
        "plies": [[_turn(turn, texts) for turn in turns] for turns in plies],
        "scenes": scenes,
        "broken": broken,
        "final": [texts.put(shown) for shown in episode.final],
        "end": _end(episode),
        "texts": list(texts),
        "boards": [{"head": head, "rows": rows, "marked": marked} for head, rows, marked in boards],
        "heads": [
            {"style": style, "down": down, "across": across, "owners": dict(owners)}
            for style, down, across, owners in heads
        ],
    }


def _turn(turn: Turn, texts: _Shelf) -> dict[str, Any]:
    own = bool(turn.attempts) and turn.attempts[-1].verdict == "legal"
    return {
        "seat": turn.seat,
        "ply": turn.ply,
        "view": texts.put(joined(turn.events, turn.observation)),
        "legal": turn.legal,
        "action": turn.action,
        "own": own,
        "reward": signed(turn.reward) if turn.reward else "",
        "tries": [_try(attempt, texts) for attempt in turn.attempts],
    }


def _try(attempt: Attempt, texts: _Shelf) -> dict[str, Any]:
    return {
        "raw": texts.put(attempt.raw),
        "thought": texts.put(attempt.reasoning) if attempt.reasoning else None,
        "verdict": attempt.verdict,
        "reason": attempt.reason,
        "used": list(_used(attempt)),
    }


def _used(attempt: Attempt) -> Iterator[str]:
    """Time, calls, tokens and cost, as far as they were recorded."""
    if attempt.latency >= 0.005:
        yield f"{attempt.latency:.2f} s"
    kinds = sorted([call.kind for call in attempt.calls])
    for kind, same in groupby(kinds):
        yield f"{len(list(same))} × {kind}"
    for key, words in _USED.items():
        if total := sum(call.usage.get(key, 0.0) for call in attempt.calls):
            yield f"{total:,.0f} {words}"
    if cost := sum(call.usage.get("cost", 0.0) for call in attempt.calls):
        yield f"${cost:,.6f}"
    yield from dict.fromkeys([f"ended by {call.finish_reason}" for call in attempt.calls if call.finish_reason])


def _end(episode: Episode) -> list[list[str]]:
    """Lines (what, text)."""
    lines = [["Outcome", f"{episode.outcome}{f': {episode.reason}' if episode.reason else ''}"]]
    for seat, earned in enumerate(episode.returns or ()):
        forfeit = ", by forfeit" if seat in episode.forfeits else ""
        lines.append([f"Seat {seat}, {episode.seats[seat].agent}", signed(earned) + forfeit])
    for seat, scores in enumerate(episode.scores):
        lines += [[f"Seat {seat}, {key}", f"{value:g}"] for key, value in scores.items()]
    return [*lines, *[["Not recorded", gap] for gap in episode.gaps]]


def _scenes(
    episode: Episode, plies: list[list[Turn]], texts: _Shelf, boards: _Shelf, heads: _Shelf
) -> tuple[list[dict[str, Any]], str]:
    """What lies on the table at every position, as far as it can be played again, and why no further."""
    scenes: list[dict[str, Any]] = []
    before: Drawing | None = None
    try:
        for game in _positions(episode, plies):
            drawing = game.drawing()
            if drawing is None:
                scenes.append({"table": texts.put(game.render())})
                continue
            if problem := drawing.problem():
                return scenes, f"the board cannot be drawn: {problem}"
            owners = tuple(sorted(drawing.owners.items()))
            head = heads.put((drawing.style, drawing.row_labels, drawing.column_labels, owners))
            scenes.append({"board": boards.put((head, drawing.rows, drawing.marked)), "new": _changed(before, drawing)})
            before = drawing
    except Exception as error:  # noqa: BLE001  whatever is wrong with a game, what was recorded of it is shown
        return scenes, str(error) or type(error).__name__
    return scenes, ""


def _positions(episode: Episode, plies: Sequence[Sequence[Turn]]) -> Iterator[Game]:
    """Every position of the recorded play, the first one included. Raises ValueError where it differs."""
    game = make_game(episode.env, episode.seed, episode.options)
    if isinstance(game, LiveGame):
        raise ValueError(f"{episode.env} drives something alive and is not played again")
    if game.players != len(episode.seats):
        raise ValueError(f"{episode.env} has {game.players} seats here, recorded are {len(episode.seats)}")
    yield game
    for turns in plies:
        for turn in turns:
            if game.observation(turn.seat) != turn.observation:
                raise ValueError(f"{episode.env} now shows seat {turn.seat} something else at ply {turn.ply}")
        actions = {turn.seat: turn.action for turn in turns if turn.action is not None}
        if len(actions) == len(turns):
            game = game.apply(actions)
        yield game


def _changed(before: Drawing | None, after: Drawing) -> list[tuple[int, int]]:
    """Cells that differ, unless most of the board does."""
    if before is None or [len(row) for row in before.rows] != [len(row) for row in after.rows]:
        return []
    pairs = [(row, column) for row, cells in enumerate(after.rows) for column in range(len(cells))]
    changed = [(row, column) for row, column in pairs if before.rows[row][column] != after.rows[row][column]]
    return changed if 2 * len(changed) <= len(pairs) else []
