"""Steps of a seat: what the Gymnasium face shows and pays, played again; read without Minari."""

import json
from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import make_game
from tests.adapters.datasets.talks import llm, played, seat
from tests.adapters.datasets.test_verifiers_graph import ANSWERS, seats
from tests.agents.toy_model import ToyModel
from tests.players import Says

Row = dict[str, Any]
GAMES = [
    "TicTacToe-v0", "ConnectFour-v0", "KuhnPoker-v0", "LeducPoker-v0", "LiarsDice-v0", "SecretMafia-v0",
    "RockPaperScissors-v0", "IteratedPrisonersDilemma-v0", "Negotiation-v0", "Wordle-v0", "Arithmetic-v0",
]  # fmt: skip
NUMERIC = ["TicTacToe-v0", "ConnectFour-v0", "KuhnPoker-v0", "LiarsDice-v0", "RockPaperScissors-v0"]


def row_of(trajectory: Trajectory, spec: str = "minari") -> Row:
    (row,) = make_format(spec).rows([trajectory])
    found: Row = msgspec.json.decode(msgspec.json.encode(row))
    return found


def plays_again(row: Row, env: Any) -> None:
    """The environment shows, pays and ends as the row says."""
    observation, info = env.reset(seed=row["seed"])
    count = len(row["actions"])
    for at in range(count + 1):
        assert np.array_equal(observation, np.array(row["observations"][at], getattr(observation, "dtype", None)))
        if "action_mask" in row["infos"]:
            assert np.array_equal(env.unwrapped.action_masks(), np.array(row["infos"]["action_mask"][at], bool))
        elif at < count:
            legal = info["legal_actions"]
            assert json.loads(row["infos"]["legal_actions"][at]) == (None if legal is None else list(legal))
        assert info["verdict"] == row["infos"]["verdict"][at]
        if at == count:
            break
        observation, reward, over, cut, info = env.step(row["actions"][at])
        assert reward == pytest.approx(row["rewards"][at])
        assert (over, cut) == (row["terminations"][at], row["truncations"][at])


def environment(row: Row) -> Any:
    told = row["dataset"]
    return gymnasium.make(f"arena/{told['env']}", **told["kwargs"], **told["options"])


@pytest.mark.parametrize("game", GAMES)
def test_every_seat_of_a_random_match_plays_again(game: str) -> None:
    for seed in (1, 2):
        episode = play_sync(game, ["random"] * make_game(game).players, seed)
        for trajectory in seats(episode):
            if not trajectory.turns:
                continue
            row = row_of(trajectory)
            assert sum(row["rewards"]) == pytest.approx(trajectory.reward)
            plays_again(row, environment(row))


@pytest.mark.parametrize("game", NUMERIC)
def test_numbers_play_again(game: str) -> None:
    episode = play_sync(game, ["random"] * make_game(game).players, 3)
    for trajectory in seats(episode):
        row = row_of(trajectory, "minari?face=numeric")
        assert all(type(action) is int for action in row["actions"])
        plays_again(row, environment(row))


def test_options_are_a_dataset_of_their_own() -> None:
    made: tuple[Row, ...] = ({}, {"columns": 5, "rows": 4})
    rows = [row_of(seat(play_sync("ConnectFour-v0", ["random", "minimax?depth=1"], 1, options))) for options in made]
    plays_again(rows[1], environment(rows[1]))
    assert rows[0]["dataset"]["id"] != rows[1]["dataset"]["id"]
    assert rows[1]["dataset"]["options"] == made[1]


def test_seats_and_opponents_are_datasets_of_their_own() -> None:
    first, second = seats(play_sync("TicTacToe-v0", ["minimax", "random"], 1))
    ids = [row_of(each)["dataset"]["id"] for each in (first, second)]
    assert ids[0].startswith("TicTacToe-v0/seat0-vs-random-")
    assert ids[1].startswith("TicTacToe-v0/seat1-vs-minimax-")
    again = row_of(seat(play_sync("TicTacToe-v0", ["random", "random"], 2)))
    assert again["dataset"]["id"] == ids[0]  # another agent at the seat, the same environment


@pytest.mark.parametrize("illegal", ["random", "fallback", "forfeit"])
def test_wrong_replies_are_steps_that_cost_what_they_cost(illegal: Any) -> None:
    referee = Referee(retries=1, illegal=illegal)
    episode = play_sync("TicTacToe-v0", [Says("no", "5", "77", "78", "1"), "first"], 1, {}, referee)
    row = row_of(seat(episode))
    assert row["actions"][0] == "no"
    assert row["observations"][1] != row["observations"][0]
    assert row["infos"]["verdict"][1] != "legal"
    plays_again(row, environment(row))


def test_what_a_language_model_said_is_its_action() -> None:
    episode = played([llm(ToyModel(*ANSWERS)), "first"])
    row = row_of(seat(episode))
    assert row["actions"][:3] == ["9", "<answer>99</answer>", "5"]
    plays_again(row, environment(row))


def test_a_truncated_match_ends_in_a_truncation() -> None:
    for trajectory in seats(play_sync("TicTacToe-v0", ["first", "first"], 1, max_turns=3)):
        row = row_of(trajectory)
        assert (row["terminations"][-1], row["truncations"][-1]) == (False, True)
        assert row["observations"][-1].endswith(trajectory.episode.final[trajectory.player])


def test_a_seat_that_forfeited_among_many_ends_with_its_forfeit() -> None:
    count = make_game("LiarsDice-v0").players
    for game, players in (("LiarsDice-v0", count), ("SecretMafia-v0", make_game("SecretMafia-v0").players)):
        episode = play_sync(game, [*["random"] * (players - 1), Says("\x07", "")], 4, {}, Referee())
        loser = Trajectory(episode, players - 1)
        if not loser.forfeited:
            continue
        row = row_of(loser)
        assert sum(row["rewards"]) == pytest.approx(loser.reward)
        assert row["terminations"][-1]
        assert len(row["actions"]) == 1


def test_what_cannot_be_numbers_is_lacking() -> None:
    lost = play_sync("TicTacToe-v0", [Says("no"), "first"], 1)
    with pytest.raises(Lacking, match="a forfeit is no action"):
        row_of(seat(lost), "minari?face=numeric")
    assert not list(make_format("minari").rows([seat(lost, 1)]))  # it has made no step
    words = play_sync("Negotiation-v0", ["random", "random"], 1)
    with pytest.raises(Lacking, match="no action_table"):
        row_of(seat(words), "minari?face=numeric")


def test_zero_bytes_are_lacking_for_hdf5_only() -> None:
    episode = play_sync("TicTacToe-v0", [Says("a\0b", "5"), "first"], 1, {}, Referee(retries=3, illegal="random"))
    with pytest.raises(Lacking, match="data=arrow"):
        row_of(seat(episode))
    assert row_of(seat(episode), "minari?data=arrow")["actions"][0] == "a\0b"
    said = play_sync("TicTacToe-v0", [Says("a\\u0000b", "5"), "first"], 1, {}, Referee(retries=3, illegal="random"))
    assert row_of(seat(said))["actions"][0] == "a\\u0000b"


@pytest.mark.parametrize("game", ["SecretMafia-v0", "LiarsDice-v0"])
def test_nobody_sees_what_another_seat_alone_was_shown(game: str) -> None:
    episode: Episode = play_sync(game, ["random"] * make_game(game).players, 3)
    checked = 0
    for trajectory in seats(episode):
        if not trajectory.turns:
            continue
        text = "\n".join(row_of(trajectory)["observations"])
        shown = "\n".join([*(turn.observation for turn in trajectory.turns), episode.final[trajectory.player]])
        for turn in episode.turns:
            lines = [line for line in turn.observation.splitlines() if line not in shown]
            assert not any(line in text for line in lines)
            checked += len(lines)
    assert checked > 10


@pytest.mark.parametrize("spec", ["minari?face=x", "minari?data=x"])
def test_options(spec: str) -> None:
    with pytest.raises(ValueError, match="allowed are"):
        make_format(spec)
