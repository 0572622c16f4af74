"""Export: the pipeline that all formats share, from episodes to a folder that trainers load.

Episodes are read once, one at a time. Those that must come together again (a group) or wait for the others (an
advantage) are spooled to disk, so that memory does not grow with what is exported.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from hashlib import blake2b
from operator import length_hint
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from arena.adapters.datasets.card import Summary, write_card, write_record
from arena.adapters.datasets.credit import Credit
from arena.adapters.datasets.filters import Filters, Ratings, Sieve
from arena.adapters.datasets.format import Format, Row, Rows
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.placing import placed
from arena.adapters.datasets.splits import SIDES, Side, Split
from arena.adapters.datasets.spool import Spool
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.datasets.writers import kind_of, rows_of
from arena.episode import Episode
from arena.version import __version__

__all__ = ["Progress", "Summary", "content", "export"]

_NAMED = 3  # lacking trajectories that a refusal names
_REASONS = 50  # what may be lacking, told apart


class Progress(NamedTuple):
    """How far an export is."""

    stage: str
    """"reading", or "writing" where all is read before anything is written."""
    done: int
    """Episodes read, or trajectories written."""
    total: int | None
    rows: int


def export(
    source: Iterable[Episode],
    spec: str | Format,
    out: str | Path,
    *,
    kind: str = "",
    filters: Filters | None = None,
    ratings: Ratings | None = None,
    split: Split | None = None,
    credit: Credit | None = None,
    shard_rows: int | None = None,
    dedup: bool = False,
    skip_lacking: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Write episodes as a dataset into the new folder `out`, which is there when all of it is; `export.json` says what.

    `source`: any episodes, such as `Files("runs/demo/episodes.jsonl.zst")`. `spec`: a format's name with options
    (`dpo?rollouts=4`). `kind`: of its kinds of files, the first by default. `ratings`: for filters by rating.
    `shard_rows`: rows a file. `dedup`: of rows that are the same by the format's `ids` and `learned` the first is kept
    (told apart by digests of 64 bits: of a million rows two different ones are taken for one with a chance of 3e-8).
    `skip_lacking`: leave out what the format cannot be made of, and count it; by default such an export is refused.

    Raises ValueError for what cannot be asked, where nothing passed the filters and for an `out` that is not empty;
    Lacking, with the number of episodes, where a record has not what the format needs. Nothing is left then.
    """
    form = make_format(spec)
    filters, split, credit = filters or Filters(), split or Split(), credit or Credit()
    asked = {
        "filters": msgspec.to_builtins(filters),
        "split": msgspec.to_builtins(split),
        "advantage": msgspec.to_builtins(credit),
        "shard_rows": shard_rows,
        "dedup": dedup,
        "skip_lacking": skip_lacking,
    }
    summary = Summary(
        format=form.name if isinstance(spec, Format) else spec,
        consumer=form.consumer,
        checked=form.checked,
        unit=form.unit,
        kind=kind_of(form, kind),
        asked=asked,
        arena=__version__,
    )
    sieve = Sieve(filters, ratings)
    with placed(Path(out)) as folder:
        folder.mkdir()
        with Spool(folder.with_name("spool.db")) as spool:
            files = _Files(form, summary.kind, folder, shard_rows)
            job = _Job(form, sieve, split, credit, spool, files, summary)
            job.dedup, job.skip_lacking, job.progress = dedup, skip_lacking, progress or (lambda _: None)
            job.run(source)
        write_record(folder, summary)
        write_card(folder, summary, job.columns)
    return summary


def content(row: Row, ids: frozenset[str], learned: frozenset[str] = frozenset()) -> int:
    """A digest of a row without its ids, or of what is learned from it: 64 bits, signed.

    >>> content({"id": 1, "text": "a", "info": {"seed": 4}}, frozenset(("id", "seed"))) == content(
    ...     {"info": {"seed": 5}, "text": "a", "id": 2}, frozenset(("id", "seed")))
    True
    """
    held = {key: item for key, item in row.items() if key in learned} if learned else _without(row, ids)
    plain = msgspec.json.encode(held, order="sorted")
    return int.from_bytes(blake2b(plain, digest_size=8).digest(), "big", signed=True)


def _without(value: dict[str, Any], ids: frozenset[str]) -> dict[str, Any]:
    return {
        key: _without(item, ids) if isinstance(item, dict) else item for key, item in value.items() if key not in ids
    }


class _Files:
    """The writers of the splits; one is made with its first row."""

    def __init__(self, form: Format, kind: str, folder: Path, shard_rows: int | None) -> None:
        self.form, self.kind, self.folder, self.shard_rows = form, kind, folder, shard_rows
        self.open: dict[Side, Rows] = {}

    def __getitem__(self, side: Side) -> Rows:
        if side not in self.open:
            self.open[side] = rows_of(self.form, self.kind, self.folder, side, self.shard_rows)
        return self.open[side]

    def close(self) -> dict[str, list[str]]:
        """End all files; their names by split."""
        with ExitStack() as stack:
            for rows in self.open.values():
                stack.callback(rows.close)
        data = self.folder / "data"
        found = {side: sorted(path for path in data.glob(f"{side}*") if path.exists()) for side in SIDES}
        return {side: [str(path.relative_to(self.folder)) for path in paths] for side, paths in found.items() if paths}


class _Job:
    """One export while it runs."""

    dedup, skip_lacking = False, False
    progress: Callable[[Progress], None]

    def __init__(
        self, form: Format, sieve: Sieve, split: Split, credit: Credit, spool: Spool, files: _Files, summary: Summary
    ) -> None:
        self.form, self.sieve, self.split, self.credit = form, sieve, split, credit
        self.spool, self.files, self.summary = spool, files, summary
        self.rows: Counter[str] = Counter()
        self.lacking: Counter[str] = Counter()
        self.named: list[str] = []
        self.games: Counter[str] = Counter()
        self.agents: Counter[str] = Counter()
        self.versions: dict[str, set[str]] = {}
        self.columns: dict[str, None] = {}

    @property
    def count(self) -> int:
        """Rows so far."""
        return self.rows.total()

    @property
    def full(self) -> bool:
        """Whether no more rows are asked for."""
        return self.sieve.filters.max_rows is not None and self.count >= self.sieve.filters.max_rows

    def run(self, source: Iterable[Episode]) -> None:
        """Read, write, and count."""
        for unit in self._units(source):
            self._unit(unit)
            if self.full:
                self.summary.notes.append(f"it ends after {self.count} rows, as asked (max_rows)")
                break
        self._refuse()
        self.summary.files = self.files.close()
        self._summarize()

    def _units(self, source: Iterable[Episode]) -> Iterator[list[Trajectory]]:
        """What the format is given, one after the other."""
        if self.form.unit != "group" and self.credit.kind == "none":
            for _, episode, seats in self._read(source):
                chosen = [seat for seat, passed in seats if passed]
                self._look(episode, bool(chosen))
                yield from ([seat] for seat in chosen) if self.form.unit == "seat" else [chosen] * bool(chosen)
            return
        for number, episode, seats in self._read(source):
            self._look(episode, any(passed for _, passed in seats))
            self.spool.add(number, episode, seats)
        self.spool.credit(self.credit)
        done, total = 0, len(self.spool)
        for unit in self.spool.units(self.form.unit):
            self.progress(Progress("writing", done, total, self.count))
            yield unit
            done += len(unit)
        self.progress(Progress("writing", done, total, self.count))

    def _read(self, source: Iterable[Episode]) -> Iterator[tuple[int, Episode, list[tuple[Trajectory, bool]]]]:
        """Finished episodes, numbered, with the seats that belong to the export, and whether they pass all filters."""
        total, number = length_hint(source, 0) or None, 0
        for episode in source:
            self.progress(Progress("reading", number, total, self.count))
            number += 1
            self.summary.episodes = number
            if episode.returns is None:
                self.summary.void += 1
                continue
            seats = [Trajectory(episode, player) for player in range(len(episode.seats))]
            self.summary.trajectories += len(seats)
            belonging = [seat for seat in seats if self.sieve.belongs(seat)]
            yield number, episode, [(seat, self.sieve.chosen(seat)) for seat in belonging]
        self.progress(Progress("reading", number, total, self.count))

    def _look(self, episode: Episode, chosen: bool) -> None:
        if chosen:
            for package, version in episode.versions.items():
                self.versions.setdefault(package, set()).add(version)

    def _unit(self, unit: list[Trajectory]) -> None:
        """Write the rows of a unit."""
        made, rows = self._made(unit)
        if not rows:
            self.summary.barren += len(made)
            return
        side = self.split.side(unit[0].task_id)
        written = False
        for row in rows:
            if self.full or (self.lacking and not self.skip_lacking):
                break
            if self.dedup and not self.spool.fresh("row", content(row, self.form.ids, self.form.learned)):
                self.summary.duplicates += 1
                continue
            self.files[side].write(row)
            self.columns.update(dict.fromkeys(row))
            self.rows[side] += 1
            written = True
        if written:
            self._count(made, side)

    def _count(self, made: list[Trajectory], side: Side) -> None:
        self.spool.fresh(side, int.from_bytes(bytes.fromhex(made[0].task_id), "big", signed=True))
        self.summary.exported += len(made)
        for trajectory in made:
            self.summary.turns += len(trajectory.turns)
            self.games[trajectory.episode.env] += 1
            self.agents[trajectory.agent] += 1

    def _made(self, unit: list[Trajectory]) -> tuple[list[Trajectory], list[Row]]:
        """The rows of a unit, and the trajectories they are made of: without those that lack something."""
        try:
            return unit, list(self.form.rows(unit))
        except Lacking as error:
            whole = error
        rest = [one for one in unit if len(unit) > 1 and not self._lacks_alone(one)]
        if 0 < len(rest) < len(unit):
            try:
                return rest, list(self.form.rows(rest))
            except Lacking as error:
                whole, unit = error, rest
        if rest or len(unit) == 1:
            self._lack(unit, whole)
        return [], []

    def _lacks_alone(self, one: Trajectory) -> bool:
        """Whether a trajectory lacks something by itself, which is counted."""
        try:
            for _ in self.form.rows([one]):
                pass
        except Lacking as error:
            self._lack([one], error)
            return True
        return False

    def _lack(self, unit: list[Trajectory], error: Lacking) -> None:
        said = str(error)
        reason = said.partition(": ")[2] if said.startswith("episode ") else said
        self.lacking[reason if reason in self.lacking or len(self.lacking) < _REASONS else "other"] += len(unit)
        for trajectory in unit:
            digest = blake2b(trajectory.episode.id.encode(), digest_size=8).digest()
            self.spool.fresh("lacking", int.from_bytes(digest, "big", signed=True))
        if len(self.named) < _NAMED:
            self.named.append(said)

    def _refuse(self) -> None:
        """Raise where something lacks, or there is nothing."""
        if self.lacking and not self.skip_lacking:
            kinds = "; ".join([f"{reason} ({count} seats)" for reason, count in self.lacking.most_common(_NAMED)])
            raise Lacking(
                f"{self.spool.count('lacking')} of {self.summary.episodes} episodes lack what {self.form.name} needs: "
                f"{kinds}. First: {'; '.join(self.named)}. Filter them (agent, trainable), or leave them out with "
                "--skip-lacking (skip_lacking=True)"
            )
        if not self.count:
            raise self._nothing()

    def _nothing(self) -> ValueError:
        if self.lacking:
            return ValueError(f"nothing is left: all lack what {self.form.name} needs: {'; '.join(self.lacking)}")
        if self.summary.barren:
            return ValueError(f"format {self.form.name} makes no row of the {self.summary.barren} seats that passed")
        return self.sieve.nothing()

    def _summarize(self) -> None:
        """What was counted on the way."""
        summary, asked = self.summary, [side for side in SIDES if side == "train" or self.split.validation]
        summary.left_out, summary.lacking = dict(self.sieve.left_out), dict(self.lacking)
        summary.rows = {side: self.rows[side] for side in asked}
        summary.seed_groups = {side: self.spool.count(side) for side in asked}
        summary.games, summary.agents = _sorted(self.games), _sorted(self.agents)
        summary.versions = {package: sorted(found) for package, found in sorted(self.versions.items())}
        few = "" if self.full else ": there are few"
        summary.notes += [f"no seed group fell to {side}{few}" for side in asked if not self.rows[side]]
        if self.credit.kind == "group":
            groups, single = self.spool.single()
            summary.notes += [f"{single} of {groups} groups have one member, whose advantage is 0"] * bool(single)


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts)}
