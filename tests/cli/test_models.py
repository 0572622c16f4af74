"""`arena models probe`, `arena demo --model` and the dry run of a tournament with a model."""

from pathlib import Path

import pytest

from arena.episode import read
from arena.tournaments.store import Store
from tests.cli.commands import arena, run
from tests.fakes.server import FakeSGLang


def test_probe_says_what_there_is() -> None:
    with FakeSGLang() as fake:
        result = arena("models", "probe", f"sglang:{fake.url}")
    assert result.exit_code == 0, result.output
    for line in ("SGLang", fake.url, "context", "tokens/s", "tokens/s alone"):
        assert line in result.output
    told = {line.split("  ")[0].strip(): line for line in result.output.splitlines()}
    for what in ("token ids of the answer", "log-probabilities", "answers held to a regex", "answers scored"):
        assert "yes" in told[what], told[what]


@pytest.mark.parametrize(
    ("spec", "code", "said"),
    [
        ("random", 2, "asks no model"),
        ("sglang", 2, "needs a target"),
        ("sglang:http://127.0.0.1:1?retries=0", 1, "127.0.0.1:1"),
        ("sglang:http://127.0.0.1:1?api_key=secret", 2, "environment"),
        ("nobody:http://x", 2, "unknown agent"),
    ],
)
def test_probe_of_what_cannot_be_asked_is_one_line(spec: str, code: int, said: str) -> None:
    result = arena("models", "probe", spec)
    assert (result.exit_code, len(result.output.strip().splitlines())) == (code, 1), result.output
    assert said in result.output
    assert "Traceback" not in result.output
    assert "secret" not in result.output


def test_a_dry_run_tells_what_models_would_read_and_write_and_asks_none(tmp_path: Path) -> None:
    spec = "sglang:http://127.0.0.1:1?max_tokens=10&input_price=1&output_price=1000"
    flags = ["--game", "KuhnPoker", "--agent", "random", "--agent", spec, "--blocks", "50", "--dry-run"]
    result = run(*flags, "--seconds-per-reply", "4", "--out", str(tmp_path / "never"))
    assert result.exit_code == 0, result.output
    told = next(line for line in result.output.splitlines() if line.startswith("KuhnPoker-v0") and "sglang" in line)
    replies, prompt, cached, wrote = [int(word.replace(",", "")) for word in told.split()[2:6]]
    assert 100 <= replies <= 200  # 100 games, one or two replies in each
    assert wrote == 10 * replies
    assert prompt > 100 * replies > 0
    assert 0 <= cached < prompt
    assert told.split()[6] == f"{(prompt + 1000 * wrote) / 1e6:.2f}"
    assert f"{replies} replies; about 0:0{round(replies * 4 / 32) // 60}:" in result.output
    assert not (tmp_path / "never").exists()


def test_a_dry_run_without_models_tells_of_games_only() -> None:
    result = run("--game", "KuhnPoker", "--agent", "random", "--agent", "first", "--dry-run")
    assert result.exit_code == 0
    assert "replies" not in result.output


def test_the_demo_seats_a_model_in_three_ways(tmp_path: Path) -> None:
    with FakeSGLang() as fake:
        result = arena("demo", "--model", f"sglang:{fake.url}?model=fake", "--blocks", "1", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    with Store.open(tmp_path) as store:
        assert sorted(store.agents().values()) == [
            "fake constrained", "fake free", "fake score", "mcts?simulations=20", "random",
        ]  # fmt: skip
        assert len(store.finished()) == 60
    assert len(list((tmp_path / "transcripts").glob("*.md"))) == 61
    seats = {
        seat.agent: (seat.policy.sampling, len(seat.policy.tokenizer_hash))
        for episode in read(tmp_path / "episodes.jsonl.zst")
        for seat in episode.seats
    }
    assert seats["fake score"][0]["decode"] == "score"
    assert seats["fake free"][1] > 0
    for episode in read(tmp_path / "episodes.jsonl.zst"):
        for turn in episode.turns:
            if episode.seats[turn.seat].agent in ("fake constrained", "fake score"):
                assert turn.attempts[-1].verdict == "legal"
