"""What every id must do in every face."""

import os
import pickle
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from random import Random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test

from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import GAMES, make_game
from tests.faces import HOSTILE, NO_TEXTS, advance, digest, make_aec, make_env, make_parallel, pick, trajectory

every_id = pytest.mark.parametrize("game_id", sorted(GAMES))
FINITE = [game_id for game_id in sorted(GAMES) if make_game(game_id).action_table() is not None]
every_finite_id = pytest.mark.parametrize("game_id", FINITE)


@pytest.fixture(autouse=True)
def _global_randomness_is_untouched() -> Iterator[None]:
    before, numpy_before = random.getstate(), repr(np.random.get_state())
    yield
    assert random.getstate() == before
    assert repr(np.random.get_state()) == numpy_before


@every_id
def test_check_env(game_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make_env(game_id))


@every_finite_id
def test_check_env_of_the_numeric_face(game_id: str) -> None:
    env = make_env(game_id, numeric=True)
    check_env(env)
    seen, info = env.reset(seed=3)
    rng = np.random.default_rng(3)
    for _ in range(20):
        mask = env.action_masks()
        assert mask.any()
        assert (mask == info["action_mask"]).all()
        assert len(mask) == env.action_space.n
        assert isinstance(info["text"], str)
        seen, _, over, _, info = env.step(rng.choice(np.flatnonzero(mask)))
        assert seen in env.observation_space
        assert info["verdict"] in ("", "legal")
        if over:
            assert info["action_mask"].all()
            break


@every_id
@pytest.mark.filterwarnings("ignore")  # the tests of PettingZoo warn of what is no Box
def test_pettingzoo_aec(game_id: str) -> None:
    api_test(make_aec(game_id), num_cycles=60)
    api_test(make_aec(game_id, retries=2, illegal="random", history=3), num_cycles=30)
    seed_test(lambda: make_aec(game_id, illegal="random"), num_cycles=30)
    render_test(lambda render_mode: make_aec(game_id, render_mode=render_mode))


@every_id
@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_parallel(game_id: str) -> None:
    parallel_api_test(make_parallel(game_id), num_cycles=40)
    parallel_api_test(make_parallel(game_id, illegal="random", history="new"), num_cycles=40)
    parallel_seed_test(lambda: make_parallel(game_id, illegal="random"), num_cycles=20)


@every_finite_id
@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_numeric(game_id: str) -> None:
    api_test(make_aec(game_id, numeric=True), num_cycles=60)
    seed_test(lambda: make_aec(game_id, numeric=True), num_cycles=30)
    parallel_api_test(make_parallel(game_id, numeric=True), num_cycles=20)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and one.dtype == object:
        return one.shape == other.shape and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(data_equivalence(one, other, exact=True))


@every_id
def test_sync_async_and_own_vectors_are_equal(game_id: str) -> None:
    name = f"arena/{game_id}"
    envs = [gymnasium.make_vec(name, 2, vectorization_mode=mode) for mode in ("sync", "async", None)]
    try:
        first = envs[0].reset(seed=5)
        for other in envs[1:]:
            assert _same(other.reset(seed=5), first)
        rng = Random(5)
        sync: Any = envs[0].unwrapped
        for step in range(12):
            games = [(env.unwrapped.game, env.unwrapped.solo.seat) for env in sync.envs]
            actions = [pick(g, p, rng) if p in g.to_act() and step % 7 != 6 else "nonsense" for g, p in games]
            told = envs[0].step(tuple(actions))
            for other in envs[1:]:
                assert _same(other.step(tuple(actions)), told), f"step {step} of {other}"
    finally:
        for env in envs:
            env.close()


@every_id
def test_spec_survives_json(game_id: str) -> None:
    env = gymnasium.make(f"arena/{game_id}", illegal="random", retries=1, history=2)
    assert env.spec is not None
    spec = EnvSpec.from_json(env.spec.to_json())
    again = gymnasium.make(spec)
    assert trajectory(again.unwrapped, 3, 15) == trajectory(env.unwrapped, 3, 15)
    assert again.spec == env.spec


@every_id
def test_pickled_mid_game_it_continues_the_same(game_id: str) -> None:
    env = make_env(game_id, history="full")
    env.reset(seed=8)
    rng = Random(8)
    for _ in range(3):
        if advance(env, rng)[3]:
            break
    copies = [pickle.loads(pickle.dumps(env)), deepcopy(env)]
    state = rng.getstate()
    for _ in range(20):
        if env.solo.over:
            break
        rng.setstate(state)
        told = advance(env, rng)
        for copy in copies:
            rng.setstate(state)
            assert advance(copy, rng) == told
        state = rng.getstate()


@every_id
def test_a_pickled_table_continues_the_same(game_id: str) -> None:
    aec, parallel = make_aec(game_id), make_parallel(game_id)
    aec.reset(seed=8)
    parallel.reset(seed=8)
    rng = Random(8)
    for _ in range(15):
        if aec.terminations[aec.agent_selection]:
            break
        copies = [aec, pickle.loads(pickle.dumps(aec)), deepcopy(aec)]
        action = pick(aec.game, aec.table.asked, rng)
        for env in copies:
            env.step(action)
        assert copies[0].last() == copies[1].last() == copies[2].last()
        aec = copies[1]
    acting = parallel.game.to_act()
    actions = {f"player_{p}": pick(parallel.game, p, rng) for p in acting}
    assert pickle.loads(pickle.dumps(parallel)).step(actions) == deepcopy(parallel).step(actions)


@every_id
@pytest.mark.parametrize("history", ["full", "new", 2])
def test_observations_stay_in_their_space(game_id: str, history: Any) -> None:
    env = make_env(game_id, history=history, retries=1, illegal="random", seat="random")
    rng = Random(4)
    for seed in range(4):
        seen, _ = env.reset(seed=seed)
        while not env.solo.over:
            assert seen in env.observation_space
            if rng.random() < 0.1:
                seen, *_ = env.step(rng.choice(HOSTILE))
            else:
                seen = advance(env, rng)[1]
        assert seen in env.observation_space


@every_id
@pytest.mark.parametrize("illegal", ["forfeit", "random", "fallback"])
def test_no_text_raises(game_id: str, illegal: str) -> None:
    env, aec = make_env(game_id, illegal=illegal, retries=1), make_aec(game_id, illegal=illegal)
    parallel = make_parallel(game_id, illegal=illegal)
    for seed, text in enumerate(HOSTILE):
        env.reset(seed=seed)
        seen, *_ = env.step(text)
        assert seen in env.observation_space
        aec.reset(seed=seed)
        aec.step(text)
        parallel.reset(seed=seed)
        parallel.step(dict.fromkeys(parallel.agents, text))


@every_id
def test_another_type_is_a_type_error(game_id: str) -> None:
    env, aec, parallel = make_env(game_id), make_aec(game_id), make_parallel(game_id)
    vector = gymnasium.make_vec(f"arena/{game_id}", 2)
    for seed in range(20):  # a reset may land on a finished game, whose first action is not looked at
        env.reset(seed=seed)
        vector.reset(seed=seed)
        if env.game.to_act():
            break
    for no_text in NO_TEXTS:
        aec.reset(seed=0)
        parallel.reset(seed=0)
        with pytest.raises(TypeError, match="an action is a str"):
            env.step(no_text)
        with pytest.raises(TypeError, match="an action is a str"):
            vector.step((no_text, "1"))
        with pytest.raises(TypeError, match="an action is a str"):
            aec.step(no_text)
        with pytest.raises(TypeError, match="an action is a str"):
            parallel.step(dict.fromkeys(parallel.agents, no_text))
    env.step(np.str_("1"))  # a str is what is a str


@every_id
def test_same_seed_same_trajectory_whoever_plays_beside(game_id: str) -> None:
    alone = trajectory(make_env(game_id), 21, 12)
    env, others = make_env(game_id), [make_env(game_id) for _ in range(50)]
    seen, info = env.reset(seed=21)
    for k, other in enumerate(others):
        other.reset(seed=k)
    told, rng, noise = [(seen, sorted(info.items()))], Random(21), Random(0)
    while len(told) < len(alone):
        for other in others:
            if not other.solo.over:
                advance(other, noise)
        told.append(advance(env, rng))
    assert told == alone
    with ThreadPoolExecutor(8) as pool:
        for told in pool.map(lambda _: trajectory(make_env(game_id), 21, 12), range(8)):
            assert told == alone


def test_same_seed_same_trajectory_in_another_process() -> None:
    ids = sorted(GAMES)
    code = f"from tests.faces import digest; print(digest({ids!r}))"
    here = digest(ids)
    for hash_seed in ("1", "777"):
        environ = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here


LIKE_THE_MATCH = [
    ("random", "forfeit", 0),
    ("first", "forfeit", 0),
    ("scripted:1|nonsense|2", "forfeit", 0),
    ("scripted:1|nonsense|2", "random", 0),
    ("scripted:nonsense|1|nonsense|2", "random", 1),
]


@every_id
@pytest.mark.parametrize(("agent", "illegal", "retries"), LIKE_THE_MATCH)
def test_all_faces_tell_what_the_match_tells(game_id: str, agent: str, illegal: Any, retries: int) -> None:
    """Same seed, same agents: same deal, same actions, same returns."""
    seats = make_game(game_id).players
    for seed in (3, 4):
        referee = Referee(illegal, retries)
        episode = play_sync(game_id, [agent] * seats, seed=seed, referee=referee, max_turns=40)
        assert episode.outcome != "void", episode.reason
        for seat in range(seats):
            arguments = {"seat": seat, "opponents": agent, "illegal": illegal, "retries": retries}
            _one_seat_is_told_the_same(make_env(game_id, **arguments), episode)
        _all_seats_are_told_the_same(make_aec(game_id, illegal=illegal, retries=retries), episode)
        if not retries:
            _all_at_once_are_told_the_same(make_parallel(game_id, illegal=illegal), episode)


def _one_seat_is_told_the_same(env: Any, episode: Episode) -> None:
    env.reset(seed=episode.seed)
    seat, over = env.solo.seat, False
    start = total = make_game(episode.env, episode.seed).returns()[seat]
    mine = [turn for turn in episode.turns if turn.seat == seat and turn.attempts]
    for turn in mine:
        assert env.game.observation(seat) == turn.observation
        for attempt in turn.attempts:
            assert not over
            _, reward, over, _, info = env.step(attempt.raw)
            assert info["verdict"] == attempt.verdict
            total += reward
    if not mine:
        _, reward, over, _, _ = env.step("")
        total = start + reward
    if episode.outcome == "terminated":
        assert over
        assert episode.returns is not None
        assert total == pytest.approx(episode.returns[seat])


def _all_seats_are_told_the_same(env: Any, episode: Episode) -> None:
    env.reset(seed=episode.seed)
    for turn in episode.turns:
        for attempt in turn.attempts:
            assert env.agent_selection == f"player_{turn.seat}"
            assert env.game.observation(turn.seat) == turn.observation
            env.step(attempt.raw)
    if episode.outcome == "terminated":
        assert all(env.terminations.values())
        assert env.table.earned == pytest.approx(episode.returns)


def _all_at_once_are_told_the_same(env: Any, episode: Episode) -> None:
    env.reset(seed=episode.seed)
    for ply in range(max(turn.ply for turn in episode.turns) + 1):
        now = [turn for turn in episode.turns if turn.ply == ply and turn.attempts]
        if now:  # where vacated seats alone move, the face goes on by itself
            assert all(env.game.observation(turn.seat) == turn.observation for turn in now)
            env.step({f"player_{turn.seat}": turn.attempts[-1].raw for turn in now})
    if episode.outcome == "terminated":
        assert not env.agents
        assert env.table.earned == pytest.approx(episode.returns)
