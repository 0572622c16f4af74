import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.agent import Agent, Call, Reply, View
from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.tournaments.board import Board
from arena.tournaments.conduct import Conduct, conduct_of, percent, table
from arena.tournaments.config import parse
from arena.tournaments.report import board
from arena.tournaments.runner import run
from arena.tournaments.store import Store


class Said(Agent):
    """Gives these replies in order, then the last again."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def act(self, view: View) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def called(**usage: float) -> Call:
    return Call("generate", usage=usage)


def tictactoe(*replies: Reply, retries: int = 0, **limits: Any) -> Episode:
    """Seat 0 says these, seat 1 takes the first free square."""
    return play_sync("TicTacToe", [Said(*replies), "first"], 0, None, Referee(retries=retries), **limits)


def test_replies_are_counted_by_verdict_whichever_try_they_were() -> None:
    wrong = [Reply("10"), Reply("I think\nof it"), Reply("9", truncated=True), Reply("9"), Reply("77"), Reply("8")]
    episode = tictactoe(*wrong, Reply("7"), retries=3)
    assert episode.forfeits == ()
    counted = conduct_of(episode, 0)
    assert counted == Conduct(turns=3, replies=7, illegal=2, unreadable=1, cut=1)
    assert (counted.retries, counted.wrong) == (4, 4)
    assert conduct_of(episode, 1) == Conduct(turns=2, replies=2)


def test_a_forfeit_is_not_an_illegal_reply() -> None:
    late = tictactoe(Reply("5", truncated=True))
    assert late.forfeits == (0,)
    assert conduct_of(late, 0) == Conduct(turns=1, replies=1, cut=1)
    corrected = tictactoe(Reply("x"), Reply("9"), Reply("8"), Reply("7"), retries=1)
    assert corrected.forfeits == ()
    assert conduct_of(corrected, 0).wrong == 1


def test_what_a_server_aborted_is_a_reply_but_not_a_wrong_one() -> None:
    episode = tictactoe(Reply("9"), Reply("", ends="the server was told to stop"))
    assert (episode.outcome, episode.turns[-1].attempts[0].verdict) == ("truncated", "truncated")
    assert conduct_of(episode, 0) == Conduct(turns=2, replies=2)
    cut = tictactoe(Reply("9"), Reply("8", truncated=True), Reply("8"), retries=1, max_turns=3)
    assert cut.outcome == "truncated"
    assert conduct_of(cut, 0).cut == 1


def test_a_seat_that_was_vacated_is_not_asked() -> None:
    episode = play_sync("LiarsDice", [Said(Reply("?")), "first", "first"], 0, {"players": 3})
    assert [turn.attempts for turn in episode.turns if turn.seat == 0][1:] != []
    counted = conduct_of(episode, 0)
    assert (counted.turns, counted.replies, counted.wrong) == (1, 1, 1)


def test_what_the_calls_used_is_summed() -> None:
    usage = {"prompt_tokens": 40.0, "cached_tokens": 30.0, "completion_tokens": 3.0, "seconds": 0.25, "cost": 0.5}
    twice = (called(**usage), Call("tool"), called(**usage, unheard_of=7.0))
    counted = conduct_of(tictactoe(Reply("9", calls=twice), Reply("8"), Reply("7")), 0)
    expected = {"prompt_tokens": 80, "cached_tokens": 60, "completion_tokens": 6, "seconds": 0.5, "cost": 1.0}
    assert counted == Conduct(turns=3, replies=3, calls=2, **expected)  # type: ignore[arg-type]  # by name


def test_answers_to_one_request_are_one_call_and_waited_for_once() -> None:
    usage = {"completion_tokens": 3.0, "seconds": 0.25}
    votes = (Call("sample", usage=usage), Call("sample", usage=usage), Call("chat", usage=usage))
    counted = conduct_of(tictactoe(Reply("9", calls=votes), Reply("8"), Reply("7")), 0)
    assert (counted.calls, counted.seconds, counted.completion_tokens) == (1, 0.25, 9)


@pytest.mark.parametrize("odd", [-5.0, 1e300, math.inf, math.nan])
def test_a_servers_odd_figures_can_be_stored_and_read(odd: float) -> None:
    call = called(prompt_tokens=odd, completion_tokens=odd, seconds=odd, cost=odd)
    counted = conduct_of(tictactoe(Reply("9", calls=(call, call)), Reply("8"), Reply("7")), 0)
    assert Conduct.of(msgspec.json.decode(msgspec.json.encode(counted.numbers()))) == counted
    assert all(0 <= number <= 2e15 for number in counted.numbers())


def test_numbers_there_and_back() -> None:
    full = Conduct.of([*range(1, 10), 0.5, 0.25])
    for counted in (Conduct(), Conduct(4, 4), Conduct(turns=1, replies=2, cut=1), full):
        assert Conduct.of(counted.numbers()) == counted
    assert (Conduct().numbers(), Conduct(4, 4).numbers(), len(full.numbers())) == ([], [4, 4], 11)
    assert [type(number) for number in msgspec.structs.astuple(Conduct.of([1.0] * 11))] == [int] * 9 + [float] * 2


def test_addition() -> None:
    one = Conduct.of([*range(1, 10), 0.5, 0.25])
    assert one + Conduct() == one
    assert one + one == Conduct.of([*range(2, 20, 2), 1.0, 0.5])


@pytest.mark.parametrize(
    ("share", "said"), [(0, "0 %"), (1e-9, "<0.1 %"), (0.001, "0.1 %"), (0.5, "50 %"), (0.9999, "100 %")]
)
def test_percent(share: float, said: str) -> None:
    assert percent(share) == said


def test_a_table_leaves_out_what_nobody_has() -> None:
    plain = Conduct(turns=1200, replies=1200)
    assert table([plain]) == {"replies": ["1,200"]}
    assert table([plain, Conduct(turns=3, replies=4, illegal=1)]) == {
        "replies": ["1,200", "4"],
        "retries": ["0", "1"],
        "illegal": ["0 %", "25 %"],
    }
    model = Conduct(
        turns=4, replies=4, calls=4, prompt_tokens=4000, cached_tokens=3000, completion_tokens=10, seconds=2
    )
    assert table([plain, model]) == {
        "replies": ["1,200", "4"],
        "illegal": ["0 %", "0 %"],
        "unreadable": ["0 %", "0 %"],
        "cut": ["0 %", "0 %"],
        "tokens in": ["–", "4,000"],
        "cached": ["–", "75 %"],
        "out / reply": ["–", "2.5"],
        "sec / reply": ["–", "0.50"],
    }
    dear = [msgspec.structs.replace(model, cost=cost) for cost in (1234.5, 0.00321, 0.0)]
    assert table(dear)["cost"] == ["$1,234.50", "$0.0032", "–"]
    assert table([Conduct(calls=1)])["cut"] == ["0 %"]


def played(folder: Path, **change: Any) -> Board:
    asked = {"games": ["TicTacToe", "KuhnPoker"], "agents": ["modelled", "first"], "blocks": 3}
    tournament = parse({**asked, "referee": {"retries": 1}, **change})
    with Store.resume(folder, tournament) as store:
        run(tournament, store)
    with Store.open(folder) as store:
        return board(store)


def test_a_board_counts_what_the_episodes_hold(tmp_path: Path) -> None:
    shown = played(tmp_path)
    with Store.open(tmp_path) as store:
        episodes = list(store.episodes())
    for agent, name in enumerate(["modelled", "first"]):
        seats = [(episode, at) for episode in episodes for at, seat in enumerate(episode.seats) if seat.agent == name]
        counted = [(episode.env, conduct_of(episode, at)) for episode, at in seats]
        total = sum([conduct for _, conduct in counted], Conduct())
        assert shown.conduct[agent] == total
        for section in shown.sections:
            row = section.of(agent)
            assert row is not None
            assert row.conduct == sum([conduct for env, conduct in counted if env == section.label], Conduct())
        assert shown.overall is not None
        overall = shown.overall.of(agent)
        assert overall is not None
        assert overall.conduct == total
    asked, plain = shown.conduct
    assert (asked.retries, asked.calls, asked.cost) == (asked.turns, asked.replies, asked.replies / 4)
    assert min(asked.illegal, asked.unreadable, asked.cut) > 0
    assert (plain.retries, plain.wrong, plain.calls) == (0, 0, 0)


def test_games_that_are_left_out_are_not_counted(tmp_path: Path) -> None:
    shown = played(tmp_path, games=["TicTacToe"], max_turns=4, truncated="drop")
    assert shown.sections[0].games == 0
    assert shown.conduct == [Conduct(), Conduct()]
