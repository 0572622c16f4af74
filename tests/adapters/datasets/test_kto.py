"""Labels of answers."""

from typing import Any

import pytest

from arena.adapters.datasets.format import Row
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.kto import KTO
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.rollouts.branching import branch_sync
from tests.adapters.datasets.talks import chat, llm, played, seat
from tests.players import Says

GAME = "TicTacToe-v0"


def rows(episode: Episode, player: int = 0, advantage: float | None = None, **options: Any) -> list[Row]:
    return list(KTO(**options).rows([Trajectory(episode, player, advantage)]))


X_WINS = play_sync(GAME, ["first", "first"])
DRAW = play_sync(GAME, [Says("5", "2", "3", "4", "9"), Says("1", "8", "7", "6")])
UNEVEN = play_sync(
    "IteratedPrisonersDilemma-v0", [Says("cooperate"), Says("defect", "cooperate")], options={"rounds": 3}
)
EVEN = play_sync("IteratedPrisonersDilemma-v0", [Says("cooperate"), Says("cooperate")], options={"rounds": 3})


def labels(episode: Episode, advantage: float | None = None, **options: Any) -> tuple[bool, ...]:
    """Of each seat, the same for all its answers."""
    found = [{row["label"] for row in rows(episode, player, advantage, **options)} for player in (0, 1)]
    return tuple([only for (only,) in found])


@pytest.mark.parametrize(
    ("episode", "options", "good"),
    [
        (X_WINS, {}, (True, False)),
        (DRAW, {}, (False, False)),
        (DRAW, {"threshold": -0.5}, (True, True)),
        (UNEVEN, {"threshold": 0.0}, (True, True)),
        (UNEVEN, {"threshold": sum(UNEVEN.returns or ()) / 2}, (False, True)),
        (UNEVEN, {"by": "won"}, (False, True)),
        (UNEVEN, {"by": "mean"}, (False, True)),
        (EVEN, {"by": "won"}, (False, False)),
        (EVEN, {"by": "mean"}, (False, False)),
        (EVEN, {}, (True, True)),
    ],
)
def test_labels_by_return(episode: Episode, options: dict[str, Any], good: tuple[bool, bool]) -> None:
    assert labels(episode, **options) == good


def test_of_more_than_two_several_may_be_above_the_mean() -> None:
    episode = play_sync("SecretMafia-v0", ["random"] * 7, 2, referee=Referee(illegal="fallback"))
    assert episode.returns is not None
    mean = sum(episode.returns) / len(episode.returns)
    for player, earned in enumerate(episode.returns):
        found = rows(episode, player, by="mean")
        assert found
        assert {row["label"] for row in found} == {earned > mean}


def test_labels_by_advantage() -> None:
    assert labels(X_WINS, 0.25, by="advantage") == (True, True)
    assert labels(X_WINS, -0.25, by="advantage") == labels(X_WINS, 0.0, by="advantage") == (False, False)
    with pytest.raises(Lacking, match="no advantage was worked out"):
        labels(X_WINS, by="advantage")


def test_a_wrong_answer_is_never_good() -> None:
    model = chat("bad", "<answer>5</answer>", "<answer>1</answer>", "<answer>7</answer>", "<answer>3</answer>")
    episode = played([llm(model), Says("9", "8", "2", "6", "4")])
    assert episode.returns == (1.0, -1.0)
    found = rows(episode)
    assert [(row["verdict"], row["label"]) for row in found] == [
        (attempt.verdict, attempt.verdict == "legal") for _, attempt in seat(episode).attempts
    ]
    assert sum(not row["label"] for row in found) == 1
    assert found[0]["completion"] == [{"role": "assistant", "content": "bad"}]
    assert found[1]["prompt"][-2:][0] == found[0]["completion"][0]


def test_who_sits_alone_has_nobody_to_be_better_than() -> None:
    episode = play_sync("Arithmetic-v0", ["random"])
    for by in ("won", "mean"):
        with pytest.raises(Lacking, match="sat alone"):
            rows(episode, by=by)
    assert [row["label"] for row in rows(episode)] == [seat(episode).reward > 0]


def test_turns_of_the_episode_before_a_fork_have_no_label() -> None:
    start = play_sync(GAME, ["first", "first"])
    (on,) = branch_sync(start, 3, 1, ["random", "random"])
    assert [row["ply"] for row in rows(on)] == [t.ply for t in on.turns if t.seat == 0 and t.ply >= 3]


def test_void_and_unknown() -> None:
    episode = play_sync(GAME, ["first", "first"])
    episode.outcome, episode.returns, episode.reason, episode.final = "void", None, "down", ()
    with pytest.raises(Lacking, match="void"):
        rows(episode)
    with pytest.raises(ValueError, match="by='luck': allowed are won, mean, threshold, advantage"):
        make_format("kto?by=luck")


def test_its_columns_hold_its_rows() -> None:
    pytest.importorskip("pyarrow")
    from arena.adapters.datasets.tables import table

    found = rows(play_sync(GAME, ["first", "first"]))
    held = table(found, KTO().schema())
    assert set(held.column_names) == set(found[0])
    assert held["label"].to_pylist() == [True] * len(found)
