"""Formats of tokens from real matches: language models at both seats, as toy and over HTTP, in every style."""

import asyncio
from typing import Any

import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tokens import Lacking, Segment, segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.episode import Episode, prompts, validate
from arena.match import play
from arena.model import Sampling
from arena.referee import Referee
from arena.registry import make_agent
from arena.replaying import replay
from arena.rollouts.branching import branch
from tests.adapters.datasets.test_token_formats import READ, SPECS, rows
from tests.adapters.models.matches import first_legal, over_http
from tests.agents.seated import RETRY, SHORT
from tests.agents.toy_model import END, ToyModel, decode
from tests.fakes import tokenizer
from tests.fakes.engine import Asked
from tests.fakes.server import FakeSGLang

ANSWERS = [f"<answer>{move}</answer>" for move in ("5", "hm", "1", "9", "7", "3")]
SECOND = ["<answer>2</answer>", "x", "<answer>4</answer>"]


def toy(*answers: str, sampling: Sampling = SHORT, odd: dict[str, Any] | None = None, **options: Any) -> LLMAgent:
    return LLMAgent(ToyModel(*(answers or ANSWERS), **(odd or {})), Prompting(**options), sampling)


def match(*agents: Any, game: str = "TicTacToe-v0", referee: Referee = RETRY, **more: Any) -> Episode:
    return sound(asyncio.run(play(game, agents, 1, {}, referee, **more)))


def sound(episode: Episode) -> Episode:
    validate(episode)
    if episode.outcome != "void":
        replay(episode)
    return episode


STYLES: dict[str, tuple[dict[str, Any], bool]] = {  # options, and whether it is one sequence
    "chat": ({}, True),
    "votes": ({"decode": "vote", "votes": 3}, True),
    "thoughts kept": ({"thinking": "keep"}, True),
    "window": ({"style": "window", "window": 0}, False),
    "snapshot": ({"style": "snapshot"}, False),
}


@pytest.mark.parametrize("style", STYLES)
def test_what_counts_reads_as_what_the_model_said(style: str) -> None:
    options, whole = STYLES[style]
    episode = match(toy(**options), toy(*SECOND, **options))
    for seat in (0, 1):
        trajectory = Trajectory(episode, seat)
        found = segments(trajectory, kinds="any")
        said = [call.received for call in trajectory.calls if call.kind == "generate"]
        assert len(said) > 2
        read = [decode(answer) for segment in found for answer in answers(segment)]
        assert read == [f"{each}<|im_end|>" for each in said]
        assert (len(found) == 1) is whole
        for segment in found:
            assert decode(segment.prompt_ids).endswith("<|im_start|>assistant\n")
            assert all(decode(given).endswith("<|im_start|>assistant\n") for given in between(segment))


def answers(segment: Segment) -> list[tuple[int, ...]]:
    return [segment.response_ids[span.start : span.end] for span in segment.spans]


def between(segment: Segment) -> list[tuple[int, ...]]:
    """What was put between the answers."""
    starts, ends = [span.start for span in segment.spans[1:]], [span.end for span in segment.spans[:-1]]
    return [segment.response_ids[end:start] for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("style", STYLES)
def test_formats_of_real_matches_hold_the_calls(spec: str, style: str) -> None:
    options, _ = STYLES[style]
    episode = match(toy(**options), toy(*SECOND, **options))
    for seat in (0, 1):
        trajectory = Trajectory(episode, seat)
        asked = f"{spec}{'&' if '?' in spec else '?'}kinds=any"
        found = [each for row in rows(asked, trajectory) for each in READ[spec](row)]
        sampled = [token for ids, mask, _ in found for token, on in zip(ids, mask, strict=True) if on]
        said = [call for call in trajectory.calls if call.kind == "generate"]
        assert sampled == [token for call in said for token in call.completion_ids]
        whole = {tuple(ids) for ids, _, _ in found}
        for call, prompt in zip(trajectory.calls, prompts(trajectory.calls), strict=True):
            if call.kind == "generate":
                asked_and_said = prompt + call.completion_ids
                assert any(ids[: len(asked_and_said)] == asked_and_said for ids in whole)


def test_who_samples_no_tokens_lacks_them() -> None:
    episode = match(toy(odd={"features": ("n",)}), "random")
    with pytest.raises(Lacking, match=r"the answer's token ids were not recorded \(chat\)"):
        segments(Trajectory(episode, 0))
    with pytest.raises(Lacking, match="no tokens were recorded of random's reply"):
        segments(Trajectory(episode, 1))
    with pytest.raises(Lacking, match="chosen by its score"):
        segments(Trajectory(match(toy(decode="score"), "random"), 0))


def test_constrained_answers_are_of_another_distribution() -> None:
    episode = match(toy("5", "1", "9", "3", "7", "2", "4", "6", "8", decode="constrained"), "random")
    with pytest.raises(Lacking, match="of kind 'regex'"):
        rows("grpo", Trajectory(episode, 0))
    assert rows("grpo?kinds=any", Trajectory(episode, 0))[0]["kinds"] == ["regex"]


def test_temperature_is_told() -> None:
    episode = match(toy(sampling=Sampling(max_tokens=50, temperature=0.7)), "random")
    assert rows("grpo", Trajectory(episode, 0))[0]["kinds"] == ["temperature=0.7"]


@pytest.mark.parametrize("forced", [False, True])
def test_branches_count_what_was_said_in_them(forced: bool) -> None:
    async def run() -> tuple[Episode, list[Episode]]:
        agents = [toy(), toy("<answer>2</answer>", "<answer>4</answer>", "<answer>6</answer>")]
        parent = await play("TicTacToe-v0", agents, 1, {}, RETRY)
        actions = {0: parent.turns[2].action or ""} if forced else None
        return parent, await branch(parent, 2, 2, [toy("<answer>8</answer>"), agents[1]], actions=actions)

    parent, branches = asyncio.run(run())
    first = Trajectory(parent, 0).calls[0]
    for episode in map(sound, branches):
        trajectory = Trajectory(episode, 0)
        assert trajectory.played[0].ply == 2 == episode.fork
        found = segments(trajectory)
        said = [decode(answer) for segment in found for answer in answers(segment)]
        assert set(said) == {"<answer>8</answer><|im_end|>"}
        fresh = [turn for turn in trajectory.played if not (forced and turn.ply == 2)]
        assert len(said) == sum(len(turn.attempts) for turn in fresh)
        assert decode(first.completion_ids) in decode(found[0].prompt_ids)
    assert len({Trajectory(episode, 0).group_id for episode in branches}) == 1
    assert Trajectory(parent, 0).group_id != Trajectory(branches[0], 0).group_id


def thinks(prompt: str, asked: Asked) -> str:
    """Its first try is no action."""
    if "I pass." not in prompt:
        return "<think>Hard.</think>I pass."
    return f"<think>Well.</think>{first_legal(prompt, asked)}"


@pytest.mark.parametrize("thinking", ["separate", "strip"])
def test_matches_over_http_with_new_weights_on_the_way(thinking: str) -> None:
    """Both seats ask the server; thoughts that are left out of the history break sequences."""

    async def work(fake: FakeSGLang) -> list[Episode]:
        agents = [make_agent(f"sglang:{fake.url}?max_tokens=64&temperature=0.8&thinking={thinking}") for _ in range(2)]
        first = await play("TicTacToe-v0", agents, 3, {}, Referee(retries=2))
        fake.engine.update("v2", flush=False)
        later = await play("TicTacToe-v0", agents, 3, {}, Referee(retries=2), sample=1)
        for agent in agents:
            await agent.close()  # type: ignore[misc]  # a served agent's is awaitable
        return [sound(first), sound(later)]

    first, later = over_http(work, FakeSGLang(thinks))
    for episode, version in ((first, "default"), (later, "v2")):
        for seat in (0, 1):
            trajectory = Trajectory(episode, seat)
            found = segments(trajectory, kinds="own")
            said = [tokenizer.decode(answer) for segment in found for answer in answers(segment)]
            assert [text.removesuffix("<|im_end|>") for text in said] == [call.received for call in trajectory.calls]
            assert {told for segment in found for _, _, told in segment.versions} == {version}
            assert {kind for segment in found for kind in segment.kinds} == {"temperature=0.8"}
            assert (len(found) > 1) is (thinking == "strip")
            assert all(rows(spec, trajectory) for spec in SPECS)
    both = [Trajectory(episode, 0) for episode in (first, later)]
    (group,) = make_format("skyrl?steps=sequences").rows(both)
    told = [each["version"] for versions in group["weight_versions"] for each in versions]
    assert set(told) == {"default", "v2"}
    assert len(set(group["group_ids"])) == 1


def test_the_toy_s_end_of_turn_is_part_of_its_answer() -> None:
    episode = match(toy(), "random")
    (segment,) = segments(Trajectory(episode, 0))
    assert all(answer[-1] == END for answer in answers(segment))
