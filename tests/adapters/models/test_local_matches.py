"""A transformers model at the table: matches share its batches, records hold its tokens, checkpoints have specs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from arena.adapters.models.local import Checkpoint, LocalModel
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.episode import prompts, validate
from arena.match import play, play_sync
from arena.model import Request, Sampling
from arena.registry import make_agent
from arena.replaying import replay
from tests.adapters.models import tiny
from tests.adapters.models.local_asking import GREEDY, HI, logprobs_of, one

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def net() -> Any:
    return tiny.model()


@pytest.fixture
def local(net: Any) -> LocalModel:
    return LocalModel(net, tiny.tokenizer(), name="tiny", version="7")


def test_matches_are_batched_and_their_records_hold_what_was_drawn(net: Any) -> None:
    model = LocalModel(net, tiny.tokenizer(), version="3")
    sizes = list[int]()
    host: Any = model._host
    draw = host.generator.draw

    def seen(asked: Any) -> Any:
        sizes.append(len(asked))
        return draw(asked)

    host.draws._work = seen
    agent = LLMAgent(model, Prompting(answer="plain"), Sampling(max_tokens=4))

    async def games() -> Any:
        return await asyncio.gather(*[play("TicTacToe-v0", [agent, "random"], seed=s) for s in range(24)])

    episodes = asyncio.run(games())
    assert sizes[0] == 24
    for episode in episodes:
        assert episode.outcome == "terminated", episode.reason
        validate(episode)
        replay(episode)
        calls = [call for turn in episode.turns if turn.seat == 0 for a in turn.attempts for call in a.calls]
        assert calls
        for call, before in zip(calls, prompts(calls), strict=True):
            assert call.weight_versions == ((0, "3"),)
            assert call.logprobs == pytest.approx(logprobs_of(net, before, call.completion_ids), abs=1e-5)


def test_the_same_games_come_out_the_same_again(net: Any) -> None:
    def played() -> list[Any]:
        agent = LLMAgent(LocalModel(net, tiny.tokenizer(), seed=4), sampling=Sampling(max_tokens=4))

        async def games() -> Any:
            return await asyncio.gather(*[play("TicTacToe-v0", [agent, agent], seed=s) for s in range(8)])

        return [[turn.attempts[0].raw for turn in episode.turns] for episode in asyncio.run(games())]

    assert played() == played()


def test_scored_actions_are_legal(net: Any) -> None:
    agent = LLMAgent(LocalModel(net, tiny.tokenizer()), Prompting(decode="score"), Sampling(temperature=0.0))
    episode = play_sync("TicTacToe-v0", [agent, "random"], seed=1)
    assert episode.outcome == "terminated"
    assert episode.forfeits == ()


def test_a_checkpoint_sits_at_the_table(tmp_path: Path) -> None:
    tiny.checkpoint(tmp_path / "model")
    spec = f"local:{tmp_path / 'model'}?temperature=0&max_tokens=4"
    agent = make_agent(spec)
    assert isinstance(agent, LLMAgent)
    episode = play_sync("TicTacToe-v0", [agent, "random"], seed=2)
    assert episode.outcome == "terminated", episode.reason
    seat = episode.seats[0]
    assert seat.agent == spec
    assert seat.policy.model == str(tmp_path / "model")
    assert len(seat.policy.weight_version) == 16
    assert seat.policy.trainable


def test_checkpoints_of_one_folder_share_the_weights_and_others_do_not(tmp_path: Path) -> None:
    tiny.checkpoint(tmp_path / "a")
    tiny.checkpoint(tmp_path / "b", seed=1)

    async def opened(*models: Checkpoint) -> list[Any]:
        return [await model._open() for model in models]

    path = str(tmp_path / "a")
    one, two, other = asyncio.run(opened(Checkpoint(path), Checkpoint(path), Checkpoint(str(tmp_path / "b"))))
    assert one is two
    assert one is not other
    held = Checkpoint(path)
    asyncio.run(opened(held))
    tiny.checkpoint(tmp_path / "a", seed=2)  # trained on meanwhile
    again = Checkpoint(path)
    asyncio.run(opened(again))
    assert again.version != held.version
    assert again._host is not held._host


def test_a_saved_model_answers_as_the_one_that_was_saved(net: Any, local: LocalModel, tmp_path: Path) -> None:
    tiny.checkpoint(tmp_path)
    request = Request(HI, sampling=GREEDY)
    assert one(Checkpoint(str(tmp_path)), request).ids == one(local, request).ids


def test_a_wrong_path_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no folder '.*': name one that save_pretrained wrote"):
        make_agent(f"local:{tmp_path / 'nowhere'}")
    with pytest.raises(ValueError, match=r"a config\.json is expected"):
        make_agent(f"local:{tmp_path}")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(ValueError, match="has no weights"):
        make_agent(f"local:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    broken = make_agent(f"local:{tmp_path}")
    episode = play_sync("TicTacToe-v0", [broken, "random"])
    assert episode.outcome == "void"
    assert "cannot be loaded" in episode.reason


@pytest.mark.parametrize(
    ("query", "said"),
    [("dtype=int4", "dtype='int4': allowed are auto"), ("batch=0", "at least 1"), ("temperature=-1", "temperature")],
)
def test_wrong_options_say_what_is_allowed(tmp_path: Path, query: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_agent(f"local:{tiny.checkpoint(tmp_path)}?{query}")
