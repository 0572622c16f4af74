"""What a match records: everything said, in a form that can be stored and replayed."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from arena.agent import LEAST, Agent, AgentError, AgentInfo, Call, Reply, View
from arena.episode import Episode, EpisodeError, read, write
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import GAMES, make_game
from arena.replaying import replay
from tests.players import Says, sane


def test_thoughts_of_a_legal_reply_can_be_written() -> None:
    class Thinks(Agent):
        def act(self, view: View) -> Reply:
            return Reply("5" if "5" in (view.legal_actions or ()) else view.sample_action(), reasoning="so\ud800")

    episode = sane(play_sync("TicTacToe-v0", [Thinks(), "first"], 0))
    assert episode.turns[0].attempts[0].reasoning == "so\ufffd"
    assert msgspec.json.decode(msgspec.json.encode(episode), type=Episode) == episode


@pytest.mark.parametrize("illegal", ["forfeit", "random", "fallback"])
@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_every_kind_of_end_is_settled_and_replays(game_id: str, illegal: Any) -> None:
    class Slips(Agent):
        """Mostly legal, now and then not."""

        name = "slips"

        def act(self, view: View) -> Reply:
            return Reply("\x00 no such action" if view.draw(5) == 0 else view.sample_action())

    template = make_game(game_id)
    for seed in range(6):
        for limit in (1, 4, None):
            agents = [Slips()] * template.players
            episode = sane(play_sync(game_id, agents, seed, referee=Referee(illegal), max_turns=limit))
            assert episode.outcome in ("terminated", "truncated"), episode.reason
            assert episode.returns is not None
            assert all(episode.returns[seat] == template.reward_range()[0] for seat in episode.forfeits)


def test_what_a_model_wrote_can_always_be_stored(tmp_path: Path) -> None:
    class Odd(Agent):
        """Says things UTF-8 has no bytes for, everywhere."""

        name = "odd"

        def act(self, view: View) -> Reply:
            call = Call("generate", "\ud800", "\udfff!", finish_reason="\ud83d")
            return Reply(view.sample_action(), "thinking \ud800", calls=(call,), gaps=("logprobs",))

        def info(self) -> AgentInfo:
            return AgentInfo(model="odd-1", weight_version="7", sampling={"temperature": 0.5}, trainable=False)

    episode = sane(play_sync("TicTacToe-v0", [Odd(), "first"], 0))
    write(tmp_path / "odd.jsonl", [episode])
    (again,) = read(tmp_path / "odd.jsonl")
    attempt = again.turns[0].attempts[0]
    assert (attempt.reasoning, attempt.calls[0].received) == ("thinking \ufffd", "\ufffd!")
    assert again.gaps == ("logprobs",)
    assert again.seats[0].policy.model == "odd-1"
    assert again.seats[1].policy == AgentInfo()
    assert set(again.versions) == {"arena", "chess", "msgspec", "python"}


def test_numbers_and_texts_of_any_kind_can_be_stored(tmp_path: Path) -> None:
    class Numpy(Agent):
        """Answers with a subclass of str, infinite numbers and no reasoning at all."""

        name = "bad \ud800 name"

        def act(self, view: View) -> Reply:
            nothing: Any = None
            call = Call("g", completion_ids=(1, 2), logprobs=(float("-inf"), -0.5), usage={"a": float("nan"), "b": 2})
            return Reply(np.str_(view.sample_action()), nothing, calls=(call,))

    episode = sane(play_sync("TicTacToe-v0", [Numpy(), "first"], 0))
    assert episode.outcome == "terminated"
    write(tmp_path / "odd.jsonl", [episode])
    (again,) = read(tmp_path / "odd.jsonl")
    (call,) = again.turns[0].attempts[0].calls
    assert (call.logprobs, call.usage) == ((LEAST, -0.5), {"b": 2})
    assert again.seats[0].agent == "bad \ufffd name"
    assert again == episode


def test_an_error_without_bytes_in_utf8_is_recorded(tmp_path: Path) -> None:
    class Fails(Agent):
        name = "fails"

        def act(self, view: View) -> Reply:
            raise ValueError("bad \ud800")

    episode = play_sync("TicTacToe-v0", [Fails(), "first"])
    assert episode.reason == "ValueError: bad \ufffd"
    assert write(tmp_path / "void.jsonl", [episode]) == 1


def test_options_are_recorded_as_json_has_them(tmp_path: Path) -> None:
    episode = play_sync("IteratedPrisonersDilemma-v0", ["first", "first"], 0, {"payoffs": (3, 2, 1, 0)})
    write(tmp_path / "ipd.jsonl", [episode])
    assert list(read(tmp_path / "ipd.jsonl")) == [episode]


def test_an_error_that_repeats_a_key_is_recorded_without_it() -> None:
    class Leaks(Agent):
        name = "leaks"

        def act(self, view: View) -> Reply:
            raise AgentError("401 for Authorization: Bearer sk-12345, api_key=abc, password: hunter2")

    reason = play_sync("TicTacToe-v0", [Leaks(), "first"]).reason
    assert "401" in reason
    assert not any(secret in reason for secret in ("12345", "abc", "hunter2"))


def test_a_view_says_what_is_new() -> None:
    heard: dict[int, list[str]] = {0: [], 1: []}

    class Listens(Agent):
        name = "listens"

        def act(self, view: View) -> Reply:
            heard[view.player] += [event.text for event in view.new_events]
            assert view.open_text == (view.legal_actions is None)
            return Reply(view.sample_action())

    episode = sane(play_sync("LiarsDice-v0", [Listens(), Listens()], 5))
    told = [event for turn in episode.turns if turn.seat == 0 for event in turn.events]
    assert heard[0] == told
    assert len(told) > 5


def test_an_answer_that_ends_the_episode_truncates_it_and_is_kept() -> None:
    class Aborted(Agent):
        """The server stops it in the middle of its second answer."""

        def act(self, view: View) -> Reply:
            if view.ply < 2:
                return Reply(view.sample_action())
            call = Call("generate", completion_ids=(7, 8), logprobs=(-0.5, -1.0), finish_reason="abort")
            return Reply("half an ans", calls=(call,), ends="the server aborted the answer")

    episode = sane(play_sync("TicTacToe-v0", [Aborted(), "first"], 0, referee=Referee(retries=3)))
    assert (episode.outcome, episode.reason) == ("truncated", "the server aborted the answer")
    last = episode.turns[-1]
    assert (last.ply, last.action, last.attempts[0].raw, last.attempts[0].verdict) == (
        2,
        None,
        "half an ans",
        "truncated",
    )
    assert (len(last.attempts), episode.forfeits, episode.returns) == (1, (), (0.0, 0.0))
    episode.turns.append(msgspec.structs.replace(last, ply=3))
    with pytest.raises(EpisodeError, match="turn 3: the episode was cut at turn 2"):
        replay(episode)


def test_an_answer_that_ends_the_episode_costs_nobody_who_moves_at_the_same_time() -> None:
    class Aborts(Agent):
        def act(self, view: View) -> Reply:
            return Reply("", ends="context full")

    episode = sane(play_sync("RockPaperScissors-v0", [Aborts(), Says("nonsense")], 0))
    assert (episode.outcome, episode.forfeits) == ("truncated", ())
    assert [turn.attempts[0].verdict for turn in episode.turns] == ["truncated", "illegal"]
