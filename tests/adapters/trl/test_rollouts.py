"""What a rollout function plays: groups of one first position, against whom, paid how, recorded where."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from arena.adapters.datasets.tokens import Lacking
from arena.adapters.trl import Rollouts, dataset, rollout_func
from arena.adapters.trl.rows import Task
from arena.agent import AgentError, Reply, View
from arena.agents.simple import RandomAgent
from arena.episode import prompts, read, validate
from arena.model import Sampling
from arena.referee import Referee
from arena.replaying import replay
from tests.adapters.models import tiny
from tests.adapters.trl.training import DIGITS, short, trainer

pytestmark = pytest.mark.train
GAME = "TicTacToe-v0"
LENIENT = Referee("random")
G = 4


@pytest.fixture(scope="module")
def grpo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A trainer that trains nothing here: rollouts are asked for directly."""
    return trainer(tmp_path_factory.mktemp("grpo"), lambda prompts, trainer: {}, GAME)


def repeated(game: str = GAME, seeds: int = 2, **options: Any) -> list[str]:
    """Prompts as the trainer gives them: each as often as there are generations."""
    return [prompt for prompt in dataset(game, range(seeds), **options)["prompt"] for _ in range(G)]


def played(grpo: Any, folder: Path, asked: list[str] | None = None, **how: Any) -> tuple[dict[str, Any], list[Any]]:
    """What the trainer is given, and the episodes."""
    file = folder / "episodes.jsonl"
    options: dict[str, Any] = {"referee": LENIENT, "prompting": short(folder), "record": file} | how
    given = Rollouts(options.pop("game", GAME), **options)(repeated() if asked is None else asked, grpo)
    return given, list(read(file))


def test_rows_name_tasks() -> None:
    rows = dataset(GAME, [3, 9])
    assert [(row["game"], row["seed"], row["seat"]) for row in rows] == [(GAME, s, p) for s in (3, 9) for p in (0, 1)]
    assert Task.read(rows[1]["prompt"]) == Task(GAME, 3, 1)
    assert len(set(rows["prompt"])) == 4
    (row,) = dataset("LiarsDice", [1], seats=[1], options={"dice": 2})
    assert Task.read(row["prompt"]) == Task("LiarsDice-v0", 1, 1, {"dice": 2})
    (chat,) = dataset(GAME, [1], seats=[0], chat=True)
    assert chat["prompt"] == [{"role": "user", "content": ""}]


@pytest.mark.parametrize("seats", [[2], [-1], "first", []])
def test_seats_that_are_none_are_refused(seats: Any) -> None:
    with pytest.raises(ValueError, match="allowed are 'all' or a list of 0, 1"):
        dataset(GAME, [1], seats=seats)


def test_one_sequence_for_each_prompt_in_order(grpo: Any, tmp_path: Path) -> None:
    asked = repeated()
    given, episodes = played(grpo, tmp_path, asked)
    assert {len(column) for column in given.values()} == {len(asked)} == {len(episodes)}
    for at, (prompt, episode) in enumerate(zip(asked, episodes, strict=True)):
        task = Task.read(prompt)
        assert (given["seat"][at], episode.seed) == (task.seat, task.seed)
        assert given["episode"][at] == episode.id
        assert episode.returns is not None
        assert given["reward"][at] == episode.returns[task.seat]
        assert [seat.agent for seat in episode.seats] == (
            ["learner", "random"] if task.seat == 0 else ["random", "learner"]
        )
        validate(episode)
        replay(episode)


def test_sequences_are_the_recorded_calls(grpo: Any, tmp_path: Path) -> None:
    given, episodes = played(grpo, tmp_path)
    for at, episode in enumerate(episodes):
        turns = [turn for turn in episode.turns if turn.seat == given["seat"][at]]
        calls = [call for turn in turns for attempt in turn.attempts for call in attempt.calls]
        whole = [*prompts(calls)[-1], *calls[-1].completion_ids]
        row = [*given["prompt_ids"][at], *given["completion_ids"][at]]
        assert row[: len(whole)] == whole
        assert row[len(whole) :] in ([], [2])
        assert given["prompt_ids"][at] == list(prompts(calls)[0])
        sampled = [t for t, m in zip(given["completion_ids"][at], given["env_mask"][at], strict=True) if m]
        assert sampled == [token for call in calls for token in call.completion_ids]
        assert given["turns"][at] == len(turns)
    assert max(given["turns"]) > 2


@pytest.mark.parametrize("opponents", ["random", "self", "frozen"])
def test_a_group_begins_with_the_same_prompt(grpo: Any, tmp_path: Path, opponents: str) -> None:
    given, episodes = played(grpo, tmp_path, repeated(seeds=4), opponents=opponents)
    firsts = [tuple(given["prompt_ids"][at : at + G][i]) for at in range(0, len(episodes), G) for i in range(G)]
    for at in range(0, len(firsts), G):
        assert len(set(firsts[at : at + G])) == 1
        assert len(set(given["group_id"][at : at + G])) == 1
    second = {firsts[at] for at in range(G, len(firsts), 2 * G)}
    assert len(second) > 1  # seat 1 is dealt different openings
    later = {tuple(e.turns[i].action for i in range(3)) for e in episodes}
    assert len(later) > len(firsts) // G


def test_openings_are_drawn_anew_in_each_rollout(grpo: Any, tmp_path: Path) -> None:
    rollouts = Rollouts(GAME, referee=LENIENT, prompting=short(tmp_path))
    asked = repeated(seeds=8, seats=[1])
    one, two = [rollouts(asked, grpo)["prompt_ids"][::G] for _ in range(2)]
    assert one != two


def test_a_pool_is_drawn_from_by_weight_for_each_group(grpo: Any, tmp_path: Path) -> None:
    given, _ = played(grpo, tmp_path, repeated(seeds=20), opponents={"first": 3, "random": 1, RandomAgent(): 0})
    against = [names[0] for names in given["opponents"]]
    for at in range(0, len(against), G):
        assert len(set(against[at : at + G])) == 1
    count = Counter(against[::G])
    assert set(count) == {"first", "random"}
    assert count["first"] > count["random"] > 0


@pytest.mark.parametrize("wrong", [{}, [], {"random": 0}, {"random": -1, "first": 3}])
def test_pools_without_anybody_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="at least one is needed"):
        Rollouts(GAME, wrong)
    with pytest.raises(ValueError, match="unknown agent 'rndom'"):
        Rollouts(GAME, "rndom")


def test_a_frozen_copy_stays_while_the_learner_moves_on(tmp_path: Path) -> None:
    rollouts = Rollouts(GAME, "frozen", referee=LENIENT, prompting=short(tmp_path), refresh=2)
    copies = []

    def watched(asked: Any, trainer: Any) -> dict[str, list[Any]]:
        given = rollouts(asked, trainer)
        copy = rollouts.opponents._frozen
        assert copy is not None
        model: Any = copy[1].model
        copies.append((copy[0], float(model._host.model.lm_head.weight.detach().double().sum()), model.version))
        return given

    made = trainer(tmp_path, watched, GAME, tiny.model(1, characters=DIGITS), max_steps=5)
    made.train()
    steps, weights, versions = zip(*copies, strict=True)
    assert steps == (0, 0, 2, 2, 4)
    assert versions == ("0", "0", "2", "2", "4")
    assert weights[0] == weights[1] != weights[2] == weights[3] != weights[4]


def test_a_forfeit_costs_what_was_said(grpo: Any, tmp_path: Path) -> None:
    given, episodes = played(grpo, tmp_path, repeated(seeds=4), referee=Referee("forfeit"), illegal=-1.5)
    forfeited = [bool(episode.forfeits) for episode in episodes]
    assert any(forfeited)
    assert given["illegal"] == forfeited
    assert [reward == -1.5 for reward in given["reward"]] == forfeited
    assert {
        returns[seat] for returns, seat, f in zip(given["returns"], given["seat"], forfeited, strict=True) if f
    } == {-1}


def test_a_reward_of_ones_own_is_asked(grpo: Any, tmp_path: Path) -> None:
    given, _ = played(grpo, tmp_path, reward=lambda trajectory: 10 + len(trajectory.turns))
    assert given["reward"] == [10 + turns for turns in given["turns"]]


def test_sequences_of_whole_answers_end_with_eos_and_cut_ones_do_not(grpo: Any, tmp_path: Path) -> None:
    """The trainer tells by the last token whether a sequence was cut."""
    (tmp_path / "a").mkdir()
    stopping = Sampling(max_tokens=3, stop=("1", "2", "3", "4"))
    given, episodes = played(grpo, tmp_path / "a", repeated(seeds=6), sampling=stopping)
    seen = Counter[tuple[bool, bool]]()
    for at, episode in enumerate(episodes):
        turn = [turn for turn in episode.turns if turn.seat == given["seat"][at]][-1]
        call = turn.attempts[-1].calls[-1]
        ids, mask = given["completion_ids"][at], given["env_mask"][at]
        added = call.finish_reason == "stop" and call.completion_ids[-1] != 2
        assert (ids[-1] == 2) == (call.finish_reason == "stop")
        assert mask[-1] == (0 if added else 1)
        seen[added, call.finish_reason == "stop"] += 1
    assert set(seen) == {(True, True), (False, True), (False, False)}


def test_a_conversation_that_breaks_is_refused_or_one_part_is_taken(grpo: Any, tmp_path: Path) -> None:
    snapshot = short(tmp_path, style="snapshot")
    with pytest.raises(Lacking, match="sequences, not one"):
        played(grpo, tmp_path, prompting=snapshot)
    (tmp_path / "one").mkdir()
    given, _ = played(grpo, tmp_path / "one", repeated(seeds=6), prompting=snapshot, breaks="one")
    assert max(given["segments"]) > 2
    assert len(set(given["segment"])) > 2
    assert all(all(mask[:1]) for mask in given["env_mask"])
    with pytest.raises(ValueError, match="allowed are refuse, one"):
        rollout_func(GAME, breaks="all")


def test_several_games_at_once(grpo: Any, tmp_path: Path) -> None:
    games = [GAME, "KuhnPoker-v0"]
    asked = repeated(seeds=2) + repeated("KuhnPoker", 2)
    given, _ = played(grpo, tmp_path, asked, game=games)
    assert [*given["env"]] == [GAME] * (4 * G) + ["KuhnPoker-v0"] * (4 * G)
    with pytest.raises(ValueError, match="a prompt names KuhnPoker-v0, this rollout plays TicTacToe-v0"):
        played(grpo, tmp_path, asked)


def test_seats_of_many(grpo: Any, tmp_path: Path) -> None:
    """Four dice players: at the learner's place is the learner, and nowhere else."""
    asked = repeated("LiarsDice", 1, options={"players": 4})
    _, episodes = played(grpo, tmp_path, asked, game="LiarsDice-v0", opponents=["random", "first"], referee=Referee())
    for at, episode in enumerate(episodes):
        names = [seat.agent for seat in episode.seats]
        assert names.index("learner") == at // G
        assert Counter(names)["learner"] == 1


def test_the_trainers_arguments_say_how_answers_are_drawn(grpo: Any, tmp_path: Path) -> None:
    rollouts = Rollouts(GAME, prompting=short(tmp_path))
    agent = rollouts.learner(grpo)
    assert agent.sampling == Sampling(max_tokens=2, temperature=1.0)
    made = trainer(tmp_path, rollouts, GAME, temperature=0.5, top_k=5, top_p=0.9, max_completion_length=7)
    assert Rollouts(GAME).learner(made).sampling == Sampling(max_tokens=7, temperature=0.5, top_k=5, top_p=0.9)
    assert Rollouts(GAME, max_tokens=3).learner(made).sampling.max_tokens == 3
    made.args.repetition_penalty = 1.1
    with pytest.raises(ValueError, match=r"repetition_penalty=1\.1"):
        Rollouts(GAME).learner(made)


def test_the_same_seed_plays_the_same(grpo: Any, tmp_path: Path) -> None:
    def drawn(seed: int) -> Any:
        rollouts = Rollouts(GAME, "self", referee=LENIENT, prompting=short(tmp_path), seed=seed)
        given = rollouts(repeated(), grpo)
        return given["completion_ids"], given["reward"]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_it_works_where_a_loop_runs_already(grpo: Any, tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> dict[str, list[Any]]:
        rollouts = rollout_func(GAME, referee=LENIENT, prompting=short(tmp_path))
        first = rollouts(repeated(), grpo)
        assert len(rollouts(repeated(), grpo)["reward"]) == len(first["reward"])
        rollouts.close()
        return first

    assert len(asyncio.run(cell())["reward"]) == 4 * G


# What cannot be


class Failing(RandomAgent):
    name = "failing"

    def act(self, view: View) -> Reply:
        raise AgentError("its server is down")


def test_a_match_that_stays_void_is_told_with_its_reason(grpo: Any, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"TicTacToe-v0, seed \d: void 3 times: .*its server is down"):
        played(grpo, tmp_path, repeated(seats=[0]), opponents=Failing())
    with pytest.raises(AgentError, match=r"no game came to a turn of seat 1: .*its server is down"):
        played(grpo, tmp_path, repeated(seats=[1]), opponents=Failing())


@pytest.mark.parametrize("prompt", ["Play!", "{}", json.dumps({"game": GAME, "seed": "x", "seat": 0}), [], "\ud800"])
def test_prompts_of_another_kind_are_refused(grpo: Any, prompt: Any) -> None:
    with pytest.raises(ValueError, match=r"as arena\.adapters\.trl\.dataset writes it"):
        Rollouts(GAME)([prompt], grpo)


def test_a_seat_that_there_is_not_is_refused(grpo: Any) -> None:
    with pytest.raises(ValueError, match="has no seat 2 for a learner"):
        Rollouts(GAME)([Task(GAME, 0, 2).prompt()], grpo)


def test_a_game_that_does_not_fit_into_the_context_is_told_before_it_is_played(tmp_path: Path) -> None:
    small = trainer(tmp_path, None, GAME, tiny.model(1, characters=DIGITS, context=64))
    with pytest.raises(ValueError, match="the first prompt of TicTacToe has"):
        Rollouts(GAME)(repeated(), small)
