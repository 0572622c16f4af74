"""arena-rank on a table of games: `python -m benchmarks.rating.arena_rank_side --table GAMES.npz [--exact]`.

Needs arena-rank and nothing of ours. Prints one line of JSON: ratings, and CPU seconds of the dataset, the fit and the
sandwich together, the first time (compilation included) and the second, and of one bootstrap replicate.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np


def main() -> None:
    """Time it, or with --exact only fit, as exactly as it can."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True)
    parser.add_argument("--exact", action="store_true")
    asked = parser.parse_args()
    with np.load(asked.table) as table:
        columns = {name: table[name] for name in ("first", "second", "outcome")}
    print(json.dumps(exactly(columns) if asked.exact else timed(columns)))


def frame(columns: dict[str, Any]) -> Any:
    """A data frame as arena-rank reads it; players are p0, p1, ..."""
    import pandas as pd

    said = np.array(["model_a", "tie", "model_b"])[columns["outcome"]]
    names = np.array([f"p{k}" for k in range(1 + max(columns["first"].max(), columns["second"].max()))])
    return pd.DataFrame({"model_a": names[columns["first"]], "model_b": names[columns["second"]], "winner": said})


def exactly(columns: dict[str, Any]) -> dict[str, Any]:
    """Ratings to the last digits."""
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    games = PairDataset.from_pandas(frame(columns))
    model = BradleyTerry(games.n_competitors, ftol=1e-15, gtol=1e-13, max_iter=10_000)
    told = model.compute_ratings_and_cis(games)
    return {"ratings": dict(zip(told["competitors"], np.asarray(told["ratings"]).tolist(), strict=True))}


def timed(columns: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds, all threads counted."""
    from arena_rank.models.bradley_terry import BradleyTerry, fit_single_bootstrap_sample
    from arena_rank.utils.data_utils import PairDataset

    battles = frame(columns)

    def rated() -> tuple[Any, Any]:
        games = PairDataset.from_pandas(battles)
        model = BradleyTerry(games.n_competitors)
        np.asarray(model.compute_ratings_and_cis(games)["rating_lower"])
        return games, model

    cold, _ = spent(rated)
    warm, (games, model) = spent(rated)
    counts = np.random.default_rng(0).multinomial(len(battles), np.asarray(games.counts) / len(battles))
    drawn = counts.astype(np.float64)
    fit_single_bootstrap_sample(drawn, model, games)
    replicate, _ = spent(lambda: np.asarray(fit_single_bootstrap_sample(drawn, model, games)["ratings"]))
    return {"cold": cold, "warm": warm, "replicate": replicate, "version": metadata.version("arena-rank")}


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
