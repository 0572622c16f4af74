"""The record: written, read, validated, replayed; tampering shows."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from arena.agent import Call
from arena.episode import SCHEMA, Attempt, Episode, EpisodeError, Turn, Writer, link, read, validate, write
from arena.games.board.tictactoe import TicTacToe
from arena.match import play_sync
from arena.registry import GAMES, make_game
from arena.replaying import replay


def played(game: str = "LiarsDice-v0", seed: int = 3) -> Episode:
    return play_sync(game, ["random"] * make_game(game).players, seed)


@pytest.mark.parametrize("name", ["games.jsonl", "games.jsonl.zst", "deep/down/games.jsonl"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    path, episodes = tmp_path / name, [played(seed=seed) for seed in range(5)]
    assert write(path, episodes[:3]) == 3
    assert write(path, episodes[3:]) == 2  # appended
    assert list(read(path)) == episodes
    for episode in read(path):
        replay(episode)


@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_every_games_record_survives_json(game_id: str) -> None:
    episode = played(game_id)
    again = msgspec.json.decode(msgspec.json.encode(episode), type=Episode)
    assert again == episode
    replay(again)


def test_broken_files_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, [played()])
    with path.open("ab") as file:
        file.write(b'{"id": 5}\n')
    with pytest.raises(EpisodeError, match=r"a\.jsonl:2: not an episode"):
        list(read(path))
    cut = tmp_path / "b.jsonl"
    cut.write_bytes(path.read_bytes()[:200])
    with pytest.raises(EpisodeError, match=r"b\.jsonl:1.*\(the line was cut short: delete it"):
        list(read(cut))
    deep = tmp_path / "d.jsonl"
    deep.write_bytes(b'{"id":"x","options":' + b'{"a":' * 100_000 + b"\n")
    with pytest.raises(EpisodeError, match=r"d\.jsonl:1"):
        list(read(deep))
    foreign = tmp_path / "c.jsonl.zst"
    foreign.write_bytes(b"not zstd at all")
    with pytest.raises(EpisodeError, match="not a whole zstd file"):
        list(read(foreign))


def test_a_compressed_file_cut_anywhere_is_an_error(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.jsonl.zst", tmp_path / "cut.jsonl.zst"
    write(whole, [played(seed=1)])
    write(whole, [played(seed=2)])  # a second frame
    data = whole.read_bytes()
    assert [episode.seed for episode in read(whole)] == [1, 2]
    for at in (1, 4, 10, len(data) // 2, len(data) - 1):
        cut.write_bytes(data[:at])
        with pytest.raises(EpisodeError, match=r"cut\.jsonl\.zst"):
            list(read(cut))
    cut.write_bytes(b"")
    assert list(read(cut)) == []


def test_the_chain_depends_on_every_part() -> None:
    base = link("", 0, "abc", "d")
    assert len(base) == 32
    others = [link("x", 0, "abc", "d"), link("", 1, "abc", "d"), link("", 0, "abcd", ""), link("", 0, "ab", "cd")]
    assert len({base, *others, link("", 0, "abc", None)}) == 6


def test_replay_gives_the_final_position() -> None:
    episode = played("TicTacToe-v0")
    final = replay(episode)
    assert isinstance(final, TicTacToe)
    assert final.to_act() == ()
    assert final.returns() == episode.returns


def seat(episode: Episode, **changes: str) -> None:
    episode.seats = (msgspec.structs.replace(episode.seats[0], **changes), *episode.seats[1:])


TAMPER: dict[str, Callable[[Episode, Turn], object]] = {
    "action": lambda episode, turn: setattr(turn, "action", "2 x 2" if turn.action != "2 x 2" else "2 x 3"),
    "observation": lambda episode, turn: setattr(turn, "observation", turn.observation + "~"),
    "hash": lambda episode, turn: setattr(turn, "hash", turn.hash[:-1] + "~"),
    "seat": lambda episode, turn: setattr(turn, "seat", 1 - turn.seat),
    "events": lambda episode, turn: setattr(turn, "events", (*turn.events[:-1], "Nothing happened.")),
    "reward": lambda episode, turn: setattr(turn, "reward", turn.reward + 0.5),
    "legal": lambda episode, turn: setattr(turn, "legal", 1000),
    "rules": lambda episode, turn: seat(episode, rules="another"),
    "role": lambda episode, turn: seat(episode, role="Mafia"),
    "options": lambda episode, turn: setattr(episode, "options", {"players": 99}),
    "seed": lambda episode, turn: setattr(episode, "seed", episode.seed + 1),
    "env": lambda episode, turn: setattr(episode, "env", "TicTacToe-v0"),
    "unknown env": lambda episode, turn: setattr(episode, "env", "Tic-v0"),
    "returns": lambda episode, turn: setattr(episode, "returns", (0.5, -0.5)),
    "final": lambda episode, turn: setattr(episode, "final", ("You won.", *episode.final[1:])),
    "scores": lambda episode, turn: setattr(episode, "scores", ({"correct": 1.0}, {})),
    "forfeits": lambda episode, turn: setattr(episode, "forfeits", (0,)),
    "cut": lambda episode, turn: episode.turns.pop(),
}


@pytest.mark.parametrize("what", TAMPER)
def test_tampering_is_found(what: str) -> None:
    episode = played()
    replay(episode)
    TAMPER[what](episode, next(turn for turn in episode.turns if turn.events))
    with pytest.raises(EpisodeError):
        replay(episode)


def test_a_forged_chain_over_an_illegal_action_is_found() -> None:
    episode = played("TicTacToe-v0")
    last, before = episode.turns[-1], episode.turns[-2]
    last.action = before.action  # the square is taken
    last.hash = link(before.hash, last.seat, last.observation, last.action)
    with pytest.raises(EpisodeError, match="the game refuses"):
        replay(episode)


def test_a_class_that_is_not_registered_is_named_at_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(GAMES, "TicTacToe-v0")
    episode = play_sync(TicTacToe, ["random", "random"], 1)
    assert episode.env == "TicTacToe"
    with pytest.raises(ValueError, match="unknown game"):
        replay(episode)
    assert replay(episode, TicTacToe).to_act() == ()


BREAKS: dict[str, dict[str, object]] = {
    "schema": {"schema": SCHEMA + 1},
    "paid": {"returns": None},
    "paid unless it is void": {"outcome": "void", "reason": "x"},
    "every seat is paid": {"returns": (1.0,)},
    "its seed is not": {"seed": -1},
    "have a reason": {"outcome": "truncated", "reason": ""},
    "seats that exist": {"forfeits": (7,)},
    "shown at the end": {"final": ()},
}


@pytest.mark.parametrize("said", BREAKS)
def test_each_invariant_can_fail(said: str) -> None:
    good = played()
    validate(good)
    with pytest.raises(EpisodeError, match=said):
        validate(msgspec.structs.replace(good, **BREAKS[said]))


def test_the_turns_invariants_can_fail() -> None:
    back = played()
    back.turns[0].ply = 99
    with pytest.raises(EpisodeError, match="plies never go back"):
        validate(back)
    uneven = played()
    uneven.turns[0].attempts = (Attempt("x", calls=(Call("generate", completion_ids=(1, 2), logprobs=(0.1,)),)),)
    with pytest.raises(EpisodeError, match="equal lengths"):
        validate(uneven)
    torn = played()
    torn.turns[0].attempts = (Attempt("x", calls=(Call("generate", extends=3),)),)
    with pytest.raises(EpisodeError, match="prompts extend"):
        validate(torn)


def test_private_words_stay_out_of_other_seats_turns() -> None:
    episode = play_sync("SecretMafia-v0", ["random"] * 7, 2)
    roles = [seat.role for seat in episode.seats]
    mafia = {seat for seat, role in enumerate(roles) if role == "Mafia"}
    assert mafia
    for turn in episode.turns:
        if turn.ply == 0 and turn.seat not in mafia:
            assert not any("is not Mafia" in event or "are the Mafia" in event for event in turn.events)


def test_the_writer_counts_and_makes_folders(tmp_path: Path) -> None:
    with Writer(tmp_path / "x" / "y.jsonl") as out:
        out.write(played())
        out.write(played(seed=4))
        assert out.count == 2
    assert (tmp_path / "x" / "y.jsonl").read_bytes().count(b"\n") == 2
