"""Ratings: one engine of weighted likelihoods on counts, usable alone on any table of results."""

from arena.tournaments.ratings.pairs import (
    CENTER,
    OUTCOMES,
    Mean,
    Ratings,
    Results,
    mean_returns,
    rate,
    t_quantile,
)
from arena.tournaments.ratings.standing import Standing, standing

__all__ = [
    "CENTER",
    "OUTCOMES",
    "Mean",
    "Ratings",
    "Results",
    "Standing",
    "mean_returns",
    "rate",
    "standing",
    "t_quantile",
]
