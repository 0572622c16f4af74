"""The pipeline: what it reads, leaves out, splits and counts; and that it leaves all or nothing."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import arena.adapters.datasets as datasets
from arena.adapters.datasets import Credit, Files, Filters, Lacking, Split, Summary, export
from arena.adapters.datasets.exporting import Progress
from arena.episode import Episode, write
from arena.game import replace
from arena.match import play_sync
from tests.adapters.datasets.toys import Deals, Groups, Moves, Seats, Tables, games
from tests.players import Broken


def rows(folder: Path, split: str = "train") -> list[dict[str, Any]]:
    """The rows of a split, shard after shard."""
    files = sorted((folder / "data").glob(f"{split}-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def made(
    out: Path, episodes: Iterable[Episode], spec: Any = None, **asked: Any
) -> tuple[Summary, list[dict[str, Any]]]:
    """An export as JSON lines, and its rows for training."""
    summary = export(episodes, spec or Seats(), out, kind="jsonl", **asked)
    return summary, rows(out)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def empty(folder: Path) -> bool:
    """Nothing is left, hidden or not."""
    return not any(folder.iterdir())


def test_every_seat_is_a_row_with_role_reward_and_group(out: Path) -> None:
    episodes = games(5)
    summary, found = made(out, episodes)
    expected = [Seats.row(datasets.Trajectory(episode, seat)) for episode in episodes for seat in (0, 1)]
    assert found == expected
    assert (summary.episodes, summary.trajectories, summary.exported, summary.rows) == (5, 10, 10, {"train": 10})
    assert summary.turns == sum(len(episode.turns) for episode in episodes)
    assert summary.seed_groups == {"train": 5}
    assert summary.games == {"KuhnPoker-v0": 10}
    assert summary.agents == {"first": 5, "random": 5}
    assert summary.files == {"train": ["data/train-00000-of-00001.jsonl"]}
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data", "export.json"]


def test_void_episodes_are_left_out_and_counted(out: Path) -> None:
    void = play_sync("KuhnPoker", [Broken(), "first"])
    assert void.outcome == "void"
    summary, found = made(out, [void, *games(1), void])
    assert (summary.episodes, summary.void, summary.trajectories, len(found)) == (3, 2, 2, 2)


def test_filters_and_their_counts(out: Path) -> None:
    episodes = games(8)
    summary, found = made(out, episodes, filters=Filters(agents=("first",), outcomes=("win",)))
    assert {row["agent"] for row in found} == {"first"}
    assert {row["reward"] > 0 for row in found} == {True}
    assert summary.left_out == {"agent": 8, "outcome": 8 - len(found)}
    assert summary.exported == len(found) == sum((episode.returns or ())[1] > 0 for episode in episodes)


def test_the_unit_is_an_episode_or_a_group(tmp_path: Path) -> None:
    episodes = [*games(3), *reversed(games(3, sample=1))]
    _, found = made(tmp_path / "a", episodes, Tables())
    assert [[row["agent"] for row in table["seats"]] for table in found] == [["random", "first"]] * 6
    _, found = made(tmp_path / "b", episodes, Groups())
    groups = [[(row["task_id"], row["group_id"], row["agent"]) for row in table["seats"]] for table in found]
    assert [len(group) for group in groups] == [2] * 6
    assert all(len(set(group)) == 1 for group in groups)
    firsts = [table["seats"][0]["task_id"] for table in found]
    assert firsts == [datasets.Trajectory(episode, 0).task_id for episode in games(3) for _ in (0, 1)]
    _, found = made(tmp_path / "c", episodes, Groups(), filters=Filters(agents=("first",)))
    assert [[row["agent"] for row in table["seats"]] for table in found] == [["first"] * 2] * 3


def test_no_seed_group_is_on_both_sides(out: Path) -> None:
    """All games, samples, agents and seats of one seed fall on one side, whatever the unit."""
    episodes = [
        episode
        for game in ("KuhnPoker-v0", "TicTacToe-v0")
        for agents in (("random", "first"), ("first", "random"), ("random", "random"))
        for sample in (0, 1)
        for episode in games(12, *agents, game=game, sample=sample)
    ]
    for at, spec in enumerate((Seats(), Groups(), Tables())):
        folder = out / str(at)
        summary, train = made(folder, episodes, spec, split=Split(0.3, 5))
        validation = rows(folder, "validation")
        sides = [
            {row["task_id"] for table in side for row in table.get("seats", [table])} for side in (train, validation)
        ]
        assert not sides[0] & sides[1]
        assert min(map(len, sides)) > 0
        assert len(sides[0] | sides[1]) == 24
        assert summary.seed_groups == {"train": len(sides[0]), "validation": len(sides[1])}
        assert summary.rows == {"train": len(train), "validation": len(validation)}


def test_rows_that_differ_in_ids_only_are_the_same(out: Path) -> None:
    episodes = games(6, "first", "first", game="TicTacToe-v0")
    summary, found = made(out / "a", episodes, Moves(), dedup=True)
    plies = len(episodes[0].turns)
    assert len(found) == plies
    assert (summary.duplicates, summary.exported) == (5 * plies, 2)
    summary, found = made(out / "b", episodes, Moves())
    assert (len(found), summary.duplicates) == (6 * plies, 0)


def test_texts_are_the_same_whoever_said_them_and_whatever_came_of_it(out: Path) -> None:
    episodes = games(40, game="TicTacToe-v0")
    whole, _ = made(out / "a", episodes, "sft", split=Split(0.3), credit=Credit("rae"))
    told, train = made(out / "b", episodes, "sft", split=Split(0.3), credit=Credit("rae"), dedup=True)
    sides = [
        [json.dumps((row["prompt"], row["completion"])) for row in found]
        for found in (train, rows(out / "b", "validation"))
    ]
    assert sum(whole.rows.values()) == sum(told.rows.values()) + told.duplicates
    assert len({*sides[0], *sides[1]}) == sum(told.rows.values()) < sum(whole.rows.values())
    assert not set(sides[0]) & set(sides[1])


def test_seconds_make_no_other_row_and_tasks_do(out: Path) -> None:
    turns, _ = made(out / "a", games(4, "first", "first", game="TicTacToe-v0"), "turns", dedup=True)
    assert turns.duplicates == 3 * turns.rows["train"]
    episodes = [play_sync("Wordle-v0", ["random"], seed) for seed in (0, 0, 1, 2)]
    prompts, _ = made(out / "b", episodes, "verl_prompts", dedup=True)
    assert prompts.rows["train"] == 3


def test_the_same_row_is_never_on_both_sides_when_it_is_kept_once(out: Path) -> None:
    made(out, games(30, "first", "first", game="TicTacToe-v0"), Moves(), dedup=True, split=Split(0.5))
    sides = [{json.dumps({**row, "id": 0}) for row in rows(out, side)} for side in ("train", "validation")]
    assert not sides[0] & sides[1]


def test_at_most_so_many_rows(out: Path) -> None:
    summary, found = made(out, games(9), filters=Filters(max_rows=5), split=Split(0.4))
    assert len(found) + len(rows(out, "validation")) == 5
    assert summary.episodes == 3
    assert "it ends after 5 rows, as asked (max_rows)" in summary.notes
    _, found = made(out.with_name("more"), games(2), filters=Filters(max_rows=99))
    assert len(found) == 4


def test_what_the_record_lacks_refuses_the_export(out: Path) -> None:
    with pytest.raises(Lacking) as told:
        made(out, games(7), Seats(lacks="random"))
    message = str(told.value)
    assert message.startswith(
        "7 of 7 episodes lack what seats needs: the random was not recorded (7 seats). First: episode"
    )
    assert message.count(", seat 0, ply 0: the random was not recorded") == 3
    assert "--skip-lacking (skip_lacking=True)" in message
    assert empty(out.parent)


def test_what_lacks_is_left_out_by_choice_and_counted(out: Path) -> None:
    summary, found = made(out, games(7), Seats(lacks="random"), skip_lacking=True)
    assert [row["agent"] for row in found] == ["first"] * 7
    assert summary.lacking == {"the random was not recorded": 7}
    assert json.loads((out / "export.json").read_text())["lacking"] == summary.lacking


def test_of_a_unit_only_those_that_lack_are_left_out(out: Path) -> None:
    summary, found = made(out, games(4), Tables(lacks="random"), skip_lacking=True)
    assert [[row["agent"] for row in table["seats"]] for table in found] == [["first"]] * 4
    assert (summary.lacking, summary.exported) == ({"the random was not recorded": 4}, 4)


class Together(Seats):
    """Lacks only what two have together."""

    unit = "episode"

    def rows(self, unit: Any) -> Iterator[dict[str, Any]]:
        if len(unit) > 1:
            raise Lacking("a table cannot be recorded")
        yield from super().rows(unit)


def test_a_unit_that_lacks_as_a_whole_is_left_out(out: Path) -> None:
    with pytest.raises(ValueError, match="nothing is left: all lack what seats needs: a table cannot be recorded"):
        made(out, games(2), Together(), skip_lacking=True)
    assert empty(out.parent)


def test_seats_without_rows_are_counted(out: Path) -> None:
    summary, found = made(out, games(3), Seats(barren="random"))
    assert (summary.barren, summary.exported, len(found)) == (3, 3, 3)
    with pytest.raises(ValueError, match="format seats makes no row of the 3 seats that passed"):
        made(
            out.with_name("none"),
            games(3, "random", "first"),
            Seats(barren="first"),
            filters=Filters(agents=("first",)),
        )


def test_nothing_passed(out: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing passed the filters seat \(of 4\)"):
        made(out, games(2), filters=Filters(seats=(9,)))
    with pytest.raises(ValueError, match="no finished episode was read"):
        made(out, [])
    assert empty(out.parent)


def timed(episodes: list[Episode]) -> list[Episode]:
    """Ended in the reverse of their order."""
    return [replace(episode, ended=float(-at)) for at, episode in enumerate(episodes)]


def test_rae_goes_by_the_time_of_the_end_per_role(out: Path) -> None:
    episodes = timed(games(12))
    _, found = made(out, episodes, credit=Credit("rae", 0.5))
    assert [row["id"] for row in found] == [f"{e.id}-{seat}" for e in episodes for seat in (0, 1)], (
        "in the source's order"
    )
    baselines: dict[str, float] = defaultdict(float)
    for row in sorted(enumerate(found), key=lambda pair: (-(pair[0] // 2), pair[0])):
        seat = row[1]
        assert seat["advantage"] == seat["reward"] - baselines[seat["role"]]
        baselines[seat["role"]] = 0.5 * baselines[seat["role"]] + 0.5 * seat["reward"]


def test_equal_times_keep_the_order_of_the_source(out: Path) -> None:
    episodes = [replace(episode, ended=0.0) for episode in games(6, "first", "first")]
    _, found = made(out, episodes, credit=Credit("rae", 0.0), filters=Filters(seats=(0,)))
    rewards = [row["reward"] for row in found]
    assert [row["advantage"] for row in found] == [
        now - before for before, now in zip([0.0, *rewards], rewards, strict=False)
    ]


def test_groups_are_compared_within_task_and_role(out: Path) -> None:
    episodes = [episode for sample in range(4) for episode in games(5, sample=sample)]
    summary, found = made(out, episodes, credit=Credit("group"))
    rewards: dict[str, list[float]] = defaultdict(list)
    for row in found:
        rewards[row["group_id"]].append(row["reward"])
    assert Counter(map(len, rewards.values())) == {4: 10}
    assert any(len(set(group)) > 1 for group in rewards.values())
    for row in found:
        group = rewards[row["group_id"]]
        assert row["advantage"] == pytest.approx(row["reward"] - sum(group) / 4)
    assert summary.notes == []


def test_winners_alone_keep_the_advantage_they_had_among_all(tmp_path: Path) -> None:
    episodes = [episode for sample in range(4) for episode in games(5, sample=sample)]
    for kind in ("group", "rae"):
        _, every = made(tmp_path / kind / "all", episodes, credit=Credit(kind))
        asked = Filters(outcomes=("win",), legal=True)
        _, winners = made(tmp_path / kind / "win", episodes, credit=Credit(kind), filters=asked)
        assert winners == [row for row in every if row["reward"] > 0]


def test_other_agents_do_not_count_for_an_advantage(tmp_path: Path) -> None:
    mixed = timed([*games(6, "random", "first"), *games(6, "first", "first")])
    _, alone = made(
        tmp_path / "a",
        [e for e in mixed if e.seats[0].agent == "random"],
        credit=Credit("rae"),
        filters=Filters(agents=("random",)),
    )
    _, among = made(tmp_path / "b", mixed, credit=Credit("rae"), filters=Filters(agents=("random",)))
    assert alone == among
    _, every = made(tmp_path / "c", mixed, credit=Credit("rae"))
    assert [row for row in every if row["agent"] == "random"] == alone


def test_groups_of_one_are_told(out: Path) -> None:
    summary, found = made(out, games(3), credit=Credit("group"))
    assert {row["advantage"] for row in found} == {0}
    assert summary.notes == ["6 of 6 groups have one member, whose advantage is 0"]


def test_a_split_that_is_empty_is_told(out: Path) -> None:
    summary, _ = made(out, games(1), split=Split(0.001))
    assert summary.notes == ["no seed group fell to validation: there are few"]
    assert summary.rows == {"train": 2, "validation": 0}


def test_what_is_said_on_the_way(out: Path) -> None:
    seen: list[Progress] = []
    made(out, games(3), credit=Credit("group"), progress=seen.append)
    stages = {state.stage: state for state in seen}
    assert list(stages) == ["reading", "writing"]
    assert (stages["reading"].done, stages["reading"].total) == (3, 3)
    assert (stages["writing"].done, stages["writing"].total, stages["writing"].rows) == (6, 6, 6)


def test_a_folder_with_something_in_it_is_left_alone(out: Path) -> None:
    out.mkdir()
    made(out, games(1))
    before = sorted(out.rglob("*"))
    with pytest.raises(ValueError, match="out is not empty; name a new folder"):
        made(out, games(1))
    assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError])
def test_whatever_stops_it_leaves_nothing(error: type[BaseException], out: Path) -> None:
    def stopped() -> Iterator[Episode]:
        yield from games(3)
        raise error

    for spec in (Seats(), Groups()):
        with pytest.raises(error):
            made(out, stopped(), spec)
        assert empty(out.parent)


def test_files_of_the_formats_own(out: Path) -> None:
    summary = export(games(4), Deals(), out, split=Split(0.5))
    assert (out / "data/train/done").exists()
    assert len(list((out / "data").rglob("*.txt"))) == 8
    assert summary.files == {"train": ["data/train"], "validation": ["data/validation"]}
    assert "load_dataset" not in (out / "README.md").read_text()
    with pytest.raises(ValueError, match="folder files are not cut into shards"):
        export(games(1), Deals(), out.with_name("x"), shard_rows=3)


def test_from_files_as_from_the_episodes_themselves(tmp_path: Path) -> None:
    episodes = games(4)
    write(tmp_path / "in" / "episodes.jsonl.zst", episodes)
    _, found = made(tmp_path / "a", Files(tmp_path / "in"))
    assert found == made(tmp_path / "b", episodes)[1] == made(tmp_path / "c", iter(episodes))[1]


def test_what_was_asked_is_kept(out: Path) -> None:
    asked = Filters(outcomes=("win",), min_reward=0.5)
    summary, _ = made(out, games(6), filters=asked, split=Split(0.5, 3), credit=Credit("rae", 0.9), shard_rows=2)
    kept = json.loads((out / "export.json").read_text())
    assert kept["asked"] == {
        "filters": {"outcomes": ["win"], "min_reward": 0.5},
        "split": {"validation": 0.5, "seed": 3},
        "advantage": {"kind": "rae", "decay": 0.9, "scale": False},
        "shard_rows": 2,
        "dedup": False,
        "skip_lacking": False,
    }
    assert kept["versions"]["arena"] == [kept["arena"]]
    assert (kept["format"], kept["consumer"], kept["kind"], kept["unit"]) == ("seats", "the tests", "jsonl", "seat")
    assert kept["left_out"] == summary.left_out
    for split, files in kept["files"].items():
        assert [out / file for file in files] == sorted((out / "data").glob(f"{split}-*"))


def test_names_are_imported_when_they_are_asked_for() -> None:
    assert all(getattr(datasets, name) is not None for name in datasets.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'exprot'"):
        _ = datasets.exprot
