"""The numeric face: action numbers, masks, features, bytes."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from arena.env import GameEnv
from arena.game import Game
from arena.numeric import TOKENS, Codec, finite_ids, tokens
from arena.registry import GAMES, make_game
from tests.faces import make_aec, make_env
from tests.toy_games import Take


def test_tokens_are_the_last_bytes_padded_at_the_end() -> None:
    assert tokens("añ").tolist()[:5] == [97, 195, 177, 0, 0]
    assert bytes(tokens("x" * 2000 + "end")) == b"x" * (TOKENS - 3) + b"end"
    assert tokens("\ud800")[0] == ord("?")
    assert tokens("").shape == (TOKENS,)
    tokens("a")[0] = 1  # writable


def test_actions_by_their_place_in_the_table() -> None:
    codec = Codec("TicTacToe-v0", make_game("TicTacToe-v0"))
    assert codec.action_space() == spaces.Discrete(9)
    assert [codec.action(n) for n in (0, np.int64(4), np.array(8))] == ["1", "5", "9"]
    for number in (-1, 9):
        with pytest.raises(ValueError, match=f"action {number}: allowed are 0 to 8"):
            codec.action(number)
    for wrong in ("1", 1.0, None, np.array([1, 2])):
        with pytest.raises(TypeError, match="a numeric action is an integer"):
            codec.action(wrong)


def test_masks_are_never_empty() -> None:
    codec = Codec("TicTacToe-v0", make_game("TicTacToe-v0"))
    assert codec.mask(("1", "9")).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert codec.mask(()).all()
    assert codec.mask(None).all()
    assert codec.mask(("1",)).dtype == np.int8


def test_features_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_env("TicTacToe-v0", numeric=True, opponents="first")
    seen, info = env.reset(seed=0)
    assert env.observation_space == spaces.Box(-1.0, 1.0, (18,), np.float32)
    assert seen.dtype == np.float32
    assert info["text"] == env.game.observation(0)
    monkeypatch.setattr(Take, "features", Game.features)
    plain = GameEnv(Take, numeric=True)
    assert plain.observation_space == spaces.Box(0, 255, (TOKENS,), np.uint8)
    seen, info = plain.reset(seed=0)
    assert seen in plain.observation_space
    assert bytes(seen).rstrip(b"\0").decode() == info["text"]
    check_env(plain, skip_render_check=True)


def test_an_illegal_number_is_judged_as_its_text() -> None:
    env = make_env("TicTacToe-v0", numeric=True, opponents="first", retries=1)
    env.reset(seed=0)
    env.step(4)
    seen, reward, over, _, info = env.step(4)
    assert (reward, over, info["verdict"]) == (0.0, False, "illegal")
    assert info["text"].startswith("[Not accepted: square 5 is taken")
    _, reward, over, _, info = env.step(4)
    assert (reward, over) == (-1.0, True)
    assert info["action_mask"].all()
    assert env.action_masks().all()
    assert seen in env.observation_space


def test_show_legal_hides_the_mask_too() -> None:
    env = make_env("TicTacToe-v0", numeric=True, show_legal=False, opponents="first")
    env.reset(seed=0)
    assert env.step(0)[4]["action_mask"].all()
    assert env.action_masks().all()


def test_aec_gives_plus_one_to_the_winner() -> None:
    env = make_aec("TicTacToe-v0", numeric=True)
    env.reset(seed=0)
    for number in (0, 3, 1, 4, 2):
        seen, _, _, _, info = env.last()
        assert seen in env.observation_space("player_0")
        assert info["action_mask"][number]
        env.step(np.int64(number))
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
    assert env.last()[4]["action_mask"].all()


@pytest.mark.parametrize("game_id", sorted(set(GAMES) - set(finite_ids())))
def test_open_text_has_no_numeric_face(game_id: str) -> None:
    with pytest.raises(ValueError, match=f"{game_id} with these options has no action_table") as caught:
        make_env(game_id, numeric=True)
    assert "ConnectFour-v0" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_decide_whether_there_is_one() -> None:
    options: dict[str, Any] = {"talk": 1}
    assert make_game("IteratedPrisonersDilemma-v0", 0, options).action_table() is None
    with pytest.raises(ValueError, match="no action_table"):
        make_env("IteratedPrisonersDilemma-v0", numeric=True, **options)


def test_action_masks_need_the_numeric_face() -> None:
    with pytest.raises(ValueError, match="numeric=True"):
        make_env("TicTacToe-v0").action_masks()
