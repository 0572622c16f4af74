"""Minari: datasets of steps for offline learning, one for each game (with its options), seat and opponents.

The opponents are a part of the environment: a dataset is what `gymnasium.make("arena/...", seat=..., opponents=...)`
shows at that seat, and has that environment's spec, so that `minari.load_dataset(...).recover_environment()` makes it
again and `reset(seed=...)` with an episode's seed begins that episode (agents that are given as a spec and draw
nothing else, and `Episode.sample` 0, play the same again). A record may be anybody's, and its names hostile: of them
only opponents of this package's own that read no files and ask nobody are made (random, first, mcts, minimax). With any
other there is no spec, and the dataset's description says so.

Written as `minari`, a split is a folder for MINARI_DATASETS_PATH. Fields as Minari 0.5.4 has them (EpisodeBuffer): n
actions, rewards, terminations and truncations; n + 1 observations and infos. A step is a reply, those that cost a retry
included (reward 0). Infos: `legal_actions` (JSON; "null": open text or not shown) or, numeric, `action_mask`;
`verdict` on the reply before.

Text spaces are stored as Minari can, with a list of characters; the environment's own space takes any.
"""

import errno
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import gymnasium
import msgspec
import numpy as np

from arena.adapters.datasets.columns import check_choice
from arena.adapters.datasets.format import Format, Row, Rows
from arena.adapters.datasets.steps import Steps, numeric_steps, text_steps
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory, digest
from arena.numeric import Codec
from arena.registry import AgentSpec, load, make_agent, make_game
from arena.spaces import Text
from arena.table import NOTE_ROOM

__all__ = ["Datasets", "Minari"]

Face = Literal["text", "numeric"]
Data = Literal["hdf5", "arrow"]
_CHUNK = 4 << 20  # characters of episodes that are kept before they are written
_EPISODES = 500  # and episodes
_ROOM = 64 << 20  # bytes that must be free on the disk for a chunk
_SHARE = 16  # and for each character of it
_MADE = frozenset(("first", "mcts", "minimax", "random"))  # a name in a record may make these: they only compute


class Minari(Format):
    """Minari datasets, one for each game with its options, seat and opponents.

    Options:
        face: "text", or "numeric": features and Discrete actions, with action masks, of games that have them.
        data: how Minari stores them: "hdf5", one file a dataset; "arrow", a folder for each episode.
    """

    name = "minari"
    consumer = "Minari 0.5.4"
    checked = "loaded with minari 0.5.4; the environment is recovered and plays the steps again"
    files = ("minari", "jsonl", "jsonl.zst")
    ids = Format.ids | {"about"}

    def __init__(self, face: Face = "text", data: Data = "hdf5") -> None:
        check_choice("face", face, "text", "numeric")
        check_choice("data", data, "hdf5", "arrow")
        self.face, self.data = face, data

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for trajectory in unit:
            steps = numeric_steps(trajectory) if self.face == "numeric" else text_steps(trajectory)
            if steps is None:
                continue  # it has made no step
            row = {"dataset": _dataset(trajectory, self.face), "seed": trajectory.episode.seed, **_columns(steps)}
            row["about"] = _about(trajectory)
            if self.data == "hdf5" and _zero(row):
                where = f"episode {trajectory.episode.id}, seat {trajectory.player}"
                raise Lacking(f"{where}: a text has a zero byte, which hdf5 does not hold (data=arrow does)")
            yield row

    def writer(self, kind: str, folder: Path) -> Rows:
        """See `Format.writer`."""
        return Datasets(folder, self.data)


class Datasets:
    """A folder for MINARI_DATASETS_PATH. Episodes are written in chunks; memory does not grow with what is exported.

    HDF5 fails at random where the disk is full, up to a crash of the process: a chunk is only begun where there is room
    for it. Raises OSError where there is none.
    """

    def __init__(self, folder: Path, data: Data = "hdf5") -> None:
        """Raises ValueError where minari is not installed."""
        try:
            import minari
        except ImportError as error:
            raise ValueError("minari is not installed: pip install 'gymnasium-arena[train]'") from error
        folder.mkdir(parents=True)
        self._minari, self.data = minari, data
        self.folder = folder.resolve()  # Minari takes relative paths twice
        self._waiting: dict[str, list[Row]] = {}
        self._made: dict[str, Any] = {}
        self._size = self._count = 0

    def write(self, row: Row) -> None:
        """Add an episode."""
        self._waiting.setdefault(row["dataset"]["id"], []).append(row)
        self._size += sum(len(each) if isinstance(each, str) else 64 for each in row["observations"])
        self._count += 1
        if self._size > _CHUNK or self._count >= _EPISODES:
            self._flush()

    def close(self) -> None:
        """Write what is still to be written."""
        self._flush()

    def _flush(self) -> None:
        if shutil.disk_usage(self.folder).free < _ROOM + _SHARE * self._size:
            raise OSError(errno.ENOSPC, "there is no room on the disk for more of the datasets", str(self.folder))
        with _datasets_path(self.folder), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Minari misses an author and a link to code
            for name, rows in self._waiting.items():
                self._add(name, rows)
        self._waiting, self._size, self._count = {}, 0, 0

    def _add(self, name: str, rows: list[Row]) -> None:
        """Add episodes to a dataset, which is made with the first."""
        buffers = [self._buffer(row) for row in rows]
        first = 0
        if name not in self._made:
            self._made[name] = self._create(name, rows[0]["dataset"], buffers)
        else:
            first = self._made[name].storage.total_episodes
            self._made[name].update_dataset_from_buffer(buffers)
        about = [row["about"] for row in rows]
        self._made[name].storage.update_episode_metadata(about, range(first, first + len(rows)))

    def _create(self, name: str, told: Row, buffers: list[Any]) -> Any:
        observations, actions = _spaces(told)
        return self._minari.create_dataset_from_buffers(
            dataset_id=name,
            buffer=buffers,
            env=_spec(told),
            observation_space=observations,
            action_space=actions,
            algorithm_name="several agents: see the metadata of episodes",
            description=_description(told),
            requirements=["gymnasium-arena"],
            data_format=self.data,
        )

    def _buffer(self, row: Row) -> Any:
        numeric = row["dataset"]["face"] == "numeric"
        infos: dict[str, Any] = dict(row["infos"])
        if numeric:
            infos["action_mask"] = [np.array(mask, np.int8) for mask in infos["action_mask"]]
        kind = _spaces(row["dataset"])[0].dtype if numeric else None
        return self._minari.data_collector.EpisodeBuffer(
            seed=row["seed"],
            observations=np.array(row["observations"], kind) if numeric else list(row["observations"]),
            actions=np.array(row["actions"], np.int64) if numeric else list(row["actions"]),
            rewards=list(row["rewards"]),
            terminations=list(row["terminations"]),
            truncations=list(row["truncations"]),
            infos=infos,
        )


_setting = Lock()


@contextmanager
def _datasets_path(folder: Path) -> Iterator[None]:
    """Minari knows where datasets are from the environment of the process alone."""
    name = "MINARI_DATASETS_PATH"
    with _setting:
        before = os.environ.get(name)
        os.environ[name] = str(folder)
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


def _columns(steps: Steps) -> Row:
    count = len(steps.actions)
    return {
        "observations": steps.observations,
        "actions": steps.actions,
        "rewards": steps.rewards,
        "terminations": [False] * (count - 1) + [not steps.truncated],
        "truncations": [False] * (count - 1) + [steps.truncated],
        "infos": steps.infos,
    }


def _zero(row: Row) -> bool:
    """Whether a text has a zero byte."""
    lists: list[list[Any]] = [row["observations"], row["actions"], *row["infos"].values()]
    return any(isinstance(text, str) and "\0" in text for values in lists for text in values)


def _about(trajectory: Trajectory) -> dict[str, Any]:
    """Metadata of an episode."""
    episode = trajectory.episode
    about = {
        "episode": episode.id,
        "agent": trajectory.agent,
        "role": trajectory.role,
        "model": trajectory.policy.model,
        "weight_version": trajectory.policy.weight_version,
        "return": trajectory.reward,
        "outcome": episode.outcome,
        "group_id": trajectory.group_id,
        "sample": episode.sample,
    }
    return {key: value.replace("\0", "") if isinstance(value, str) else value for key, value in about.items()}


def _dataset(trajectory: Trajectory, face: Face) -> dict[str, Any]:
    """Which dataset an episode belongs to: its id, and what makes its environment."""
    episode, referee = trajectory.episode, trajectory.episode.referee
    kwargs: dict[str, Any] = {
        "seat": trajectory.player,
        "opponents": _opponents(trajectory),
        "illegal": referee.illegal,
        "retries": referee.retries,
        "show_legal": referee.show_legal,
    }
    if face == "numeric":
        kwargs["numeric"] = True
    told = {"env": episode.env, "options": episode.options, "kwargs": kwargs, "face": face}
    names = _plain("-".join(kwargs["opponents"]))[:40].strip("-")
    versus = f"-vs-{names}" if names else ""
    name = f"{_plain(episode.env)}/seat{trajectory.player}{versus}-{digest(told)[:8]}-v0"
    return {"id": name, **told}


def _opponents(trajectory: Trajectory) -> list[str]:
    """The names of the others as the environment takes them: without those of the house, where it plays itself."""
    seats, house = trajectory.episode.seats, load(trajectory.episode.env).house
    others = [player for player in range(len(seats)) if player != trajectory.player]
    if all(seats[player].agent == "house" for player in others if player in house):
        others = [player for player in others if player not in house]
    return [seats[player].agent for player in others]


def _plain(text: str) -> str:
    """As Minari's ids take it."""
    return re.sub(r"[^-_0-9A-Za-z]+", "-", text)


def _spaces(told: Row) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    game = make_game(told["env"], 0, told["options"])
    if told["face"] == "numeric":
        codec = Codec(told["env"], game)
        return codec.observation_space(), codec.action_space()
    return Text(game.max_length() + NOTE_ROOM), Text(game.max_action(), vocabulary=game.action_table())


def _spec(told: Row) -> Any:
    """The environment's spec; None where it cannot be made again from what the record says."""
    try:
        for name in told["kwargs"]["opponents"]:
            if not _harmless(name):
                return None
            make_agent(name)
        return gymnasium.make(f"arena/{told['env']}", **told["kwargs"], **told["options"]).unwrapped.spec
    except (ValueError, gymnasium.error.Error):
        return None


def _harmless(name: str) -> bool:
    """Whether the agent of this name does nothing but compute. Raises ValueError for a text that is no name."""
    spec = AgentSpec.parse(name)
    return spec.name in _MADE and not spec.target


def _description(told: Row) -> str:
    seat, opponents = told["kwargs"]["seat"], told["kwargs"]["opponents"]
    text = f"{told['env']} with options {msgspec.json.encode(told['options']).decode()}, seat {seat}"
    text += f", against {', '.join(opponents)}" if opponents else ""
    if _spec(told) is None:
        text += (
            f". The environment cannot be made again: opponents are made of a name for {', '.join(sorted(_MADE))} only"
        )
    return text.replace("\0", "")
