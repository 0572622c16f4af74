import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from arena.tournaments.ratings.components import components


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("strong", [False, True])
def test_as_scipy_has_it(seed: int, strong: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    edges = (rng.random((n, n)) < rng.choice([0.02, 0.08, 0.3])).astype(np.float64)
    _, expected = connected_components(csr_matrix(edges), connection="strong" if strong else "weak")
    found = components(edges, strong=strong)
    np.testing.assert_array_equal(found[:, None] == found, expected[:, None] == expected)
    firsts = [int(np.flatnonzero(found == number)[0]) for number in range(found.max() + 1)]
    assert firsts == sorted(firsts)


def test_long_chains() -> None:
    n = 300
    chain = np.eye(n, k=1)
    assert components(chain).tolist() == [0] * n
    assert components(chain, strong=True).tolist() == list(range(n))
    assert components(chain + np.eye(n, k=1 - n), strong=True).tolist() == [0] * n


def test_nobody() -> None:
    assert components(np.zeros((0, 0))).tolist() == []
    assert components(np.zeros((3, 3))).tolist() == [0, 1, 2]
