"""Datasets in Minari's storage, loaded by Minari, whose environments play the steps again."""

import base64
import errno
import json
import pickle
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import numpy as np
import pytest

from arena.adapters.datasets import minari as ours
from arena.adapters.datasets.exporting import export
from arena.adapters.datasets.filters import Filters
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.splits import Split
from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import make_agent, make_game
from tests.adapters.datasets.talks import llm, played
from tests.adapters.datasets.test_minari_steps import Row, plays_again
from tests.adapters.datasets.test_verifiers_graph import ANSWERS, seats
from tests.agents.toy_model import ToyModel
from tests.players import Says

pytestmark = pytest.mark.train
minari: Any = pytest.importorskip("minari")


def rows_of(episodes: list[Episode], spec: str) -> list[Row]:
    form = make_format(spec)
    return [row for episode in episodes for each in seats(episode) if each.turns for row in form.rows([each])]


def written(
    episodes: list[Episode], out: Path, monkeypatch: pytest.MonkeyPatch, spec: str = "minari", **more: Any
) -> dict[str, Any]:
    """The datasets of an export, by id."""
    export(episodes, spec, out, **more)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(out / "data" / "train"))
    return {name: minari.load_dataset(name) for name in minari.list_local_datasets()}


def texts(values: Any) -> list[str]:
    """hdf5 gives infos back as bytes."""
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def same_steps(dataset: Any, rows: list[Row]) -> None:
    """What Minari gives back is what was exported."""
    assert dataset.total_episodes == len(rows)
    assert dataset.total_steps == sum(len(row["actions"]) for row in rows)
    metadata = list(dataset.storage.get_episode_metadata(range(len(rows))))
    for episode, told, row in zip(dataset.iterate_episodes(), metadata, rows, strict=True):
        assert np.array_equal(
            np.array(episode.observations), np.array(row["observations"], np.array(episode.observations).dtype)
        )
        assert list(episode.actions) == row["actions"]
        assert list(episode.rewards) == pytest.approx(row["rewards"])
        assert list(episode.terminations) == row["terminations"]
        assert list(episode.truncations) == row["truncations"]
        assert texts(episode.infos["verdict"]) == row["infos"]["verdict"]
        if "action_mask" in row["infos"]:
            assert episode.infos["action_mask"].tolist() == row["infos"]["action_mask"]
        else:
            assert texts(episode.infos["legal_actions"]) == row["infos"]["legal_actions"]
        assert int(told["seed"]) == row["seed"]
        assert told["episode"] == row["about"]["episode"]
        assert told["return"] == pytest.approx(row["about"]["return"])


@pytest.mark.parametrize(
    "spec", ["minari", "minari?data=arrow", "minari?face=numeric", "minari?face=numeric&data=arrow"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_datasets_are_loaded_and_their_environments_play_again(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = ("TicTacToe-v0", "KuhnPoker-v0", "LiarsDice-v0")
    episodes = [play_sync(game, ["random"] * make_game(game).players, seed) for game in games for seed in (1, 2)]
    rows = rows_of(episodes, spec)
    found = written(episodes, tmp_path / "out", monkeypatch, spec)
    assert found.keys() == {row["dataset"]["id"] for row in rows}
    for name, dataset in found.items():
        of_it = [row for row in rows if row["dataset"]["id"] == name]
        same_steps(dataset, of_it)
        env = dataset.recover_environment()
        for row in of_it:
            plays_again(row, env)
        assert env.unwrapped.observation_space.contains(dataset[0].observations[0])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_chunks_are_one_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "_EPISODES", 3)
    episodes = [play_sync("TicTacToe-v0", ["random", "random"], seed) for seed in range(8)]
    found = written(episodes, tmp_path / "out", monkeypatch)
    rows = rows_of(episodes, "minari")
    assert len(found) == 2
    for name, dataset in found.items():
        same_steps(dataset, [row for row in rows if row["dataset"]["id"] == name])


def test_a_disk_without_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "_ROOM", 1 << 62)
    with pytest.raises(OSError, match="no room on the disk") as failed:
        export([play_sync("TicTacToe-v0", ["random", "random"], 1)], "minari", tmp_path / "out")
    assert failed.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(written([play_sync("TicTacToe-v0", ["random", "random"], 1)], Path("some/out"), monkeypatch)) == 2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_split_is_a_folder_of_datasets_and_the_process_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "mine"))
    episodes = [play_sync("TicTacToe-v0", ["random", "random"], seed) for seed in range(12)]
    export(episodes, "minari", tmp_path / "out", split=Split(validation=0.5))
    assert __import__("os").environ["MINARI_DATASETS_PATH"] == str(tmp_path / "mine")
    total = 0
    for side in ("train", "validation"):
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "out" / "data" / side))
        total += sum(minari.load_dataset(name).total_episodes for name in minari.list_local_datasets())
    assert total == 24


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_opponent_that_cannot_be_made_leaves_no_spec_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = played(["random", llm(ToyModel(*ANSWERS))])
    found = written([episode], tmp_path / "out", monkeypatch)
    first = next(dataset for name, dataset in found.items() if "seat0" in name)
    assert first.env_spec is None
    assert "cannot be made again" in first.storage.metadata["description"]
    other = next(dataset for name, dataset in found.items() if "seat1" in name)
    assert other.env_spec.kwargs["opponents"] == ["random"]


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return Path.mkdir, (self.folder,)


def trapped(folder: Path) -> str:
    """The name of an agent whose file, once it is loaded, runs what a stranger wrote into it."""
    kind = {":type:": "<class>", ":serialized:": base64.b64encode(pickle.dumps(Trap(folder / "sprung"))).decode()}
    with ZipFile(folder / "policy.zip", "w") as file:
        file.writestr("data", json.dumps({"policy_class": kind}))
        file.writestr("_stable_baselines3_version", "2.9.2")
        file.writestr("system_info.txt", "")
    return f"sb3:{folder / 'policy.zip'}"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_name_in_a_record_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = play_sync("TicTacToe-v0", ["random", "first"], 1)
    episode.seats = (episode.seats[0], msgspec.structs.replace(episode.seats[1], agent=trapped(tmp_path)))
    found = written([episode], tmp_path / "out", monkeypatch)
    first = next(dataset for name, dataset in found.items() if "seat0" in name)
    assert first.env_spec is None
    assert "cannot be made again" in first.storage.metadata["description"]
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(ValueError, match="policy"):  # so it is when the agent is made
        make_agent(trapped(tmp_path))
    assert (tmp_path / "sprung").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("mcts?simulations=5", True),
        ("minimax?depth=2", True),
        ("first", True),
        ("scripted:5|6", False),
        ("human", False),
        ("openai:http://127.0.0.1:9/v1?model=x", False),
        ("random:x", False),
        ("mcts?simulations=none", False),
        ("mcts?simulations", False),
        ("?", False),
    ],
)
def test_opponents_that_only_compute_are_made_again(
    name: str, made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = play_sync("TicTacToe-v0", ["random", "first"], 1)
    episode.seats = (episode.seats[0], msgspec.structs.replace(episode.seats[1], agent=name))
    found = written([episode], tmp_path / "out", monkeypatch, filters=Filters(seats=(0,)))
    (dataset,) = found.values()
    assert (dataset.env_spec is not None) is made
    if made:
        assert dataset.env_spec.kwargs["opponents"] == [name]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("spec", ["minari", "minari?data=arrow"])
def test_hostile_texts_and_greatest_seeds(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = '"}]}\n\u2028\x85 \ud83d 😀 ' + ("\0" if "arrow" in spec else "")
    who = Says(hostile, "", "5")
    episode = play_sync("TicTacToe-v0", [who, "random"], 2**64 - 1, {}, Referee(retries=5, illegal="random"))
    rows = rows_of([episode], spec)
    found = written([episode], tmp_path / "out", monkeypatch, spec)
    for row in rows:
        same_steps(found[row["dataset"]["id"]], [row])
    assert rows[0]["actions"][0] == episode.turns[0].attempts[0].raw


def test_without_minari_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "minari", None)
    with pytest.raises(ValueError, match="pip install 'gymnasium-arena\\[train\\]'"):
        ours.Datasets(tmp_path / "data")
