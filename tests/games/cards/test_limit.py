import pytest

from arena.games.cards.limit import betting_tree, read, steps


def count(raises: int, owes: bool, spoken: int) -> tuple[int, int]:
    """Lines by which a two-seat round ends with a call or checks, and with a fold."""
    ends, folds = (1, 0) if spoken or owes else (0, 0)
    if owes:
        folds += 1
    elif not spoken:
        more, out = count(raises, False, 1)
        ends, folds = ends + more, folds + out
    if raises:
        more, out = count(raises - 1, True, 1)
        ends, folds = ends + more, folds + out
    return ends, folds


@pytest.mark.parametrize("cap", [1, 2, 3, 5])
def test_number_of_lines(cap: int) -> None:
    through, folds = count(cap, False, 0)
    tree = betting_tree(2, (2, 4), cap, "raise")
    ends = [node for node in tree.values() if not node.legal]
    assert len(ends) == folds + through * (folds + through)


@pytest.mark.parametrize("players", [2, 3, 4, 6])
def test_every_line_follows_the_rules(players: int) -> None:
    tree = betting_tree(players, (2, 4), 1, "bet")
    for line, node in tree.items():
        assert set(node.after) == set(node.legal)
        assert node.pot == sum(node.paid)
        assert len(node.live) == players - line.count("f")
        assert node.round == line.count("/")
        if node.legal:
            (seat,) = node.to_act
            owes = max(node.paid) > node.paid[seat]
            assert seat in node.live
            assert ("fold" in node.legal) == ("call" in node.legal) == owes
            assert ("check" in node.legal) != owes
            assert ("bet" in node.legal) == ("b" not in line.split("/")[-1])
        else:
            assert len({node.paid[p] for p in node.live}) == 1
            assert max(node.paid) == node.paid[node.live[0]]
            assert len(node.live) == 1 or node.round == 1
        for action, after in node.after.items():
            assert after.rstrip("/")[:-1] == line
            if action == "fold":
                assert tree[after].paid == node.paid


def test_lines_are_told() -> None:
    tree = betting_tree(2, (2, 4), 2, "raise")
    assert tree[""].said == "Betting: none yet."
    assert tree["krc/k"].said == (
        "Betting, round 1: Player 0 checks, Player 1 raises, Player 0 calls.\nBetting, round 2: Player 0 checks."
    )
    assert tree["kr"].ask == "Your turn: fold, call or raise."
    assert tree["kr"].wait == "Player 0 is to act."
    assert tree["krc/rrc"].paid == (10, 10)


@pytest.mark.parametrize(
    ("text", "legal", "meant"),
    [
        ("Bet.", ("check", "bet"), "bet"),
        ("[Raise]", ("check", "bet"), "bet"),
        ("I bet", ("check", "raise"), "raise"),
        ("  **CHECK** ", ("check", "bet"), "check"),
        ("pass", ("check", "bet"), "check"),
        ("pass", ("fold", "call"), "fold"),
        ("calls", ("fold", "call"), "call"),
        ("check", ("fold", "call"), "check"),
        ("fold or call", ("fold", "call"), "fold or call"),
        ("bet" + " " * 100, ("check", "bet"), "bet" + " " * 100),
    ],
)
def test_read(text: str, legal: tuple[str, ...], meant: str) -> None:
    assert read(text, legal) == meant


def test_steps() -> None:
    assert steps("kb", 1, 3) == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert steps("rf", 2, 2) == [0.0, 1.0, 0.0, 0.0, 0.0, 1.0] + [0.0] * 6
    assert steps("kk/c", 2, 2) == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
