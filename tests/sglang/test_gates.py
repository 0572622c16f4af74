"""What must hold of play through the real SGLang: tokens, log-probabilities, legality, cache, failures, weights."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log
from pathlib import Path

import pytest

import arena
from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings
from arena.agent import Call
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.episode import Episode, prompts, validate
from arena.match import play
from arena.model import Completion, Message, Request, Sampling
from arena.replaying import replay
from tests.sglang.blank import blank
from tests.sglang.recipe import Recipe
from tests.sglang.server import Endpoint, Router, Server

pytestmark = pytest.mark.sglang

TEN_ROUNDS = {"rounds": 10}
FIVE_GAMES = {"TicTacToe-v0": None, "ConnectFour-v0": 20, "LeducPoker-v0": None, "LiarsDice-v0": 12, "Chess-v0": 6}
"""And after how many plies they are cut: long prompts are slow to read on a CPU."""


class Watched(SGLang):
    """Keeps what the server says of every prompt it read."""

    def __init__(self, url: str, **options: object) -> None:
        super().__init__(url, prompt_ids=True, **options)  # type: ignore[arg-type]  # options of SGLang, by name
        self.asked: list[tuple[Request, Completion]] = []

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        answers = await super().complete(request)
        self.asked += [(request, answer) for answer in answers]
        return answers


def calls_of(episode: Episode, seat: int) -> list[Call]:
    return [call for turn in episode.turns if turn.seat == seat for attempt in turn.attempts for call in attempt.calls]


def ten_turns(url: str, prompting: Prompting, sampling: Sampling) -> tuple[Episode, Watched]:
    """A game of ten turns against a simple opponent."""

    async def playing() -> tuple[Episode, Watched]:
        agent = LLMAgent(model := Watched(url), prompting, sampling)
        try:
            return await play("IteratedPrisonersDilemma-v0", [agent, "random"], 1, TEN_ROUNDS), model
        finally:
            await agent.close()

    return asyncio.run(playing())


@pytest.fixture(scope="module")
def talk(sglang: Endpoint) -> tuple[Episode, Watched]:
    """Ten turns of free text, whatever it means: a random action is played where it means none."""

    async def playing() -> tuple[Episode, Watched]:
        agent = LLMAgent(model := Watched(sglang.url), Prompting(), Sampling(max_tokens=24, temperature=1.0))
        referee = arena.Referee(illegal="random")
        try:
            return await play("IteratedPrisonersDilemma-v0", [agent, "random"], 1, TEN_ROUNDS, referee), model
        finally:
            await agent.close()

    return asyncio.run(playing())


def test_every_prompt_extends_the_one_before_token_by_token(talk: tuple[Episode, Watched]) -> None:
    episode, model = talk
    assert episode.outcome == "terminated", episode.reason
    validate(episode)
    replay(episode)
    calls = calls_of(episode, 0)
    whole = prompts(calls)
    assert len(calls) == 10
    assert [answer.prompt_ids for _, answer in model.asked] == whole  # as the server itself read them
    for (before, call), after in pairwise(zip(whole, calls, strict=True)):
        said = before + call.completion_ids
        assert after[0][: len(said)] == said
        assert after[1].extends == len(said)
    assert episode.gaps == ()


def test_the_cache_knows_all_that_was_said(talk: tuple[Episode, Watched]) -> None:
    calls = calls_of(talk[0], 0)
    for (before, call), after in pairwise(zip(prompts(calls), calls, strict=True)):
        assert after[1].usage["cached_tokens"] >= len(before) + len(call.completion_ids) - 1


def test_logprobs_of_decoding_are_those_of_reading(sglang: Endpoint, talk: tuple[Episode, Watched]) -> None:
    calls = calls_of(talk[0], 0)
    assert {call.logprob_kind for call in calls} == {"raw"}

    async def again() -> list[tuple[float, ...]]:
        model = SGLang(sglang.url)
        try:
            pairs = zip(prompts(calls), calls, strict=True)
            return [await model.rescore(prompt, call.completion_ids) for prompt, call in pairs]
        finally:
            await model.close()

    apart = [
        abs(one - other)
        for call, row in zip(calls, asyncio.run(again()), strict=True)
        for one, other in zip(call.logprobs, row, strict=True)
    ]
    print(f"decode - prefill: largest {max(apart):.1e} of {len(apart)} tokens")
    assert max(apart) < 1e-3


def test_what_a_temperature_and_a_constraint_change_is_said_and_can_be_undone(sglang: Endpoint) -> None:
    episode, _ = ten_turns(sglang.url, Prompting(decode="constrained"), Sampling(max_tokens=16, temperature=0.5))
    calls = calls_of(episode, 0)
    assert {call.logprob_kind for call in calls} == {"temperature=0.5,regex"}

    async def raw() -> tuple[float, ...]:
        model = SGLang(sglang.url)
        try:
            return await model.rescore(prompts(calls)[0], calls[0].completion_ids)
        finally:
            await model.close()

    assert sum(asyncio.run(raw())) < sum(calls[0].logprobs) - 0.5  # a 135M model would rarely say just that


def test_constrained_actions_are_legal_in_five_games(sglang: Endpoint, scale: int) -> None:
    wanted = 200 if scale == 1 else 400

    async def playing() -> list[Episode]:
        prompting = Prompting(decode="constrained", style="snapshot")
        agent = LLMAgent(SGLang(sglang.url), prompting, Sampling(max_tokens=16))
        try:
            episodes: list[Episode] = []
            seed = 0
            while sum(len(episode.turns) for episode in episodes) < wanted:
                async with asyncio.TaskGroup() as group:
                    games = [
                        group.create_task(play(game, [agent, agent], seed + n, max_turns=limit))
                        for game, limit in FIVE_GAMES.items()
                        for n in range(2)
                    ]
                episodes += [game.result() for game in games]
                seed += 2
            return episodes
        finally:
            await agent.close()

    episodes = asyncio.run(playing())
    turns = [turn for episode in episodes for turn in episode.turns]
    assert {episode.outcome for episode in episodes} <= {"terminated", "truncated"}, [e.reason for e in episodes]
    assert {episode.env for episode in episodes} == set(FIVE_GAMES)
    print(f"{len(turns)} constrained moves in {len(episodes)} games")
    assert len(turns) >= wanted
    assert [turn for turn in turns if turn.attempts[0].verdict != "legal"] == []


def test_scored_actions_come_with_raw_logprobs(sglang: Endpoint) -> None:
    async def playing() -> Episode:
        agent = LLMAgent(SGLang(sglang.url), Prompting(decode="score"), Sampling(max_tokens=8, temperature=0.0))
        try:
            return await play("TicTacToe-v0", [agent, "first"], 0)
        finally:
            await agent.close()

    episode = asyncio.run(playing())
    assert episode.outcome == "terminated", episode.reason
    calls = calls_of(episode, 0)
    assert {(call.kind, call.logprob_kind) for call in calls} == {("score", "raw")}
    assert all(turn.attempts[0].verdict == "legal" for turn in episode.turns)
    assert asyncio.run(playing()).turns[0].action == episode.turns[0].action  # temperature 0


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of our own with a short queue, whose weights may change."""
    flags = ("--max-queued-requests", "2", "--max-running-requests", "2")
    with Server(*flags, log=tmp_path_factory.mktemp("busy") / "server.log") as server:
        yield server


def long(number: int, tokens: int) -> Request:
    return Request((Message("user", f"{number}: tell a long story."),), sampling=Sampling(max_tokens=tokens))


def test_a_full_queue_is_asked_again(busy: Server) -> None:
    async def asking() -> Sequence[tuple[Completion, ...]]:
        model = SGLang(busy.url, settings=Settings(retries=60))
        try:
            return await asyncio.gather(*[model.complete(long(number, 8)) for number in range(12)])
        finally:
            await model.close()

    answers = asyncio.run(asking())
    assert [len(answer) for answer in answers] == [1] * 12
    assert "503" in Path(busy.log or "").read_text(encoding="utf-8")


def test_an_abort_truncates_the_episode_and_keeps_what_was_said(busy: Server) -> None:
    async def playing() -> Episode:
        agent = LLMAgent(SGLang(busy.url), Prompting(), Sampling(max_tokens=2000, temperature=1.0))
        game = asyncio.ensure_future(play("TicTacToe-v0", [agent, "first"], 0, {}, arena.Referee(retries=9)))
        try:
            for _ in range(400):  # until it is in the middle of an answer
                await asyncio.sleep(0.5)
                await asyncio.to_thread(busy.post, "/abort_request", {"abort_all": True})
                if game.done():
                    break
            return await game
        finally:
            await agent.close()

    episode = asyncio.run(playing())
    validate(episode)
    replay(episode)
    assert (episode.outcome, episode.forfeits) == ("truncated", ())
    assert "abort" in episode.reason.lower()
    last = calls_of(episode, 0)[-1]
    assert last.finish_reason == "abort"
    assert len(last.logprobs) == len(last.completion_ids)


def test_weights_that_change_in_flight_show_in_the_spans(busy: Server) -> None:
    async def asking() -> Completion:
        model = SGLang(busy.url)
        try:
            answer = asyncio.ensure_future(model.complete(long(0, 120)))
            await asyncio.sleep(1.5)
            assert not answer.done()
            await model.update_weights(str(Recipe.from_environment().model), "step-2")
            assert await model.weight_version() == "step-2"
            return (await answer)[0]
        finally:
            await model.close()

    answer = asyncio.run(asking())
    (start, before), (change, after) = answer.weight_versions
    assert (start, after) == (0, "step-2")
    assert before != after
    assert 0 < change < len(answer.ids)


def test_a_trainers_next_weights_answer_in_the_middle_of_a_match(busy: Server, tmp_path: Path) -> None:
    """The second checkpoint finds all tokens equally likely: log-probabilities show which weights answered."""
    model_folder = Recipe.from_environment().model
    vocabulary = json.loads((model_folder / "config.json").read_text(encoding="utf-8"))["vocab_size"]

    async def playing() -> Episode:
        agent = LLMAgent(model := Watched(busy.url), Prompting(), Sampling(max_tokens=24, temperature=1.0))
        try:
            referee = arena.Referee(illegal="random")
            game = asyncio.ensure_future(play("IteratedPrisonersDilemma-v0", [agent, "random"], 1, TEN_ROUNDS, referee))
            while len(model.asked) < 3 and not game.done():
                await asyncio.sleep(0.01)
            assert not game.done()
            await model.update_weights(str(blank(model_folder, tmp_path / "step-3")), "step-3", token_step=3)
            episode = await game
            assert (await model.info()).weight_version == "step-3"
            await model.update_weights(str(model_folder), "step-4", in_flight=False)  # as other tests want it
            return episode
        finally:
            await agent.close()

    episode = asyncio.run(playing())
    validate(episode)
    replay(episode)
    assert episode.seats[0].policy.weight_version == "step-3"
    new: list[float] = []
    old: list[float] = []
    for call in calls_of(episode, 0):
        ends = [start for start, _ in call.weight_versions[1:]] + [len(call.completion_ids)]
        for (start, version), end in zip(call.weight_versions, ends, strict=True):
            (new if version == "step-3" else old).extend(call.logprobs[start:end])
    assert old
    assert len(new) > 1
    assert max(abs(logprob + log(vocabulary)) for logprob in new[1:]) < 0.01  # the first was drawn before it is counted
    assert max(old) > -1.0


def test_what_a_router_loses_is_told(sglang: Endpoint, router: Router) -> None:
    async def playing() -> tuple[Episode, Watched]:
        agent = LLMAgent(model := Watched(router.url), Prompting(decode="constrained"), Sampling(max_tokens=16))
        try:
            return await play("TicTacToe-v0", [agent, "first"], 0), model
        finally:
            await agent.close()

    episode, _ = asyncio.run(playing())
    assert episode.outcome == "terminated", episode.reason
    calls = calls_of(episode, 0)
    assert all(call.completion_ids and len(call.logprobs) == len(call.completion_ids) for call in calls)
    # Of all that is asked for only return_prompt_token_ids does not arrive.
    assert episode.gaps == ("prompt_ids: the server did not tell the prompt it read",)
    direct, _ = ten_turns(sglang.url, Prompting(decode="constrained"), Sampling(max_tokens=16))
    assert direct.gaps == ()
