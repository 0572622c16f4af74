"""Stand-ins: random play that counts what a model would read and write."""

from collections.abc import Mapping
from itertools import pairwise

import pytest

import arena
from arena.agents.prompting import Decode, Prompting, Style
from arena.agents.standin import StandIn
from arena.episode import Episode, validate
from arena.model import Sampling
from arena.registry import GAMES, make_game
from arena.replaying import replay

SHORT = Sampling(max_tokens=64)


def played(prompting: Prompting, *, tokens: bool, game: str = "TicTacToe-v0") -> Episode:
    agent = StandIn(prompting, SHORT, tokens=tokens, price=lambda usage: usage.get("completion_tokens", 0) / 100)
    episode = arena.play(game, [agent, *["random"] * (make_game(game).players - 1)], seed=1)
    validate(episode)
    return episode


def spent(episode: Episode) -> list[Mapping[str, float]]:
    return [call.usage for turn in episode.turns if turn.seat == 0 for at in turn.attempts for call in at.calls]


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("game", sorted(GAMES))
def test_it_plays_every_game(game: str, tokens: bool) -> None:
    episode = played(Prompting(), tokens=tokens, game=game)
    assert episode.outcome == "terminated", episode.reason
    assert episode.forfeits == ()
    replay(episode)
    turns = [turn for turn in episode.turns if turn.seat == 0 and turn.attempts]
    assert [usage["completion_tokens"] >= 64 for usage in spent(episode)] == [True] * len(turns)


def test_a_growing_conversation_is_mostly_cached_and_costs_what_it_may_write() -> None:
    usages = spent(played(Prompting(), tokens=True))
    prompts = [usage["prompt_tokens"] for usage in usages]
    assert prompts == sorted(set(prompts))
    for before, after in pairwise(usages):
        assert before["prompt_tokens"] <= after["cached_tokens"] < after["prompt_tokens"]
    assert [usage["cost"] for usage in usages] == [0.64] * len(usages)


@pytest.mark.parametrize(
    ("style", "decode", "each"), [("chat", "constrained", 2), ("snapshot", "constrained", 2), ("chat", "vote", 64)]
)
def test_what_it_writes_is_what_the_decoding_allows(style: Style, decode: Decode, each: int) -> None:
    usages = spent(played(Prompting(style=style, decode=decode, votes=3), tokens=True))
    assert {usage["completion_tokens"] for usage in usages} == {each}
    if decode == "vote":  # the prompt of several answers is read once
        assert sum(usage["prompt_tokens"] > 0 for usage in usages) == len(usages) // 3


def test_scores_read_the_prompt_with_every_legal_action_and_write_nothing() -> None:
    episode = played(Prompting(decode="score"), tokens=True)
    turns = [turn for turn in episode.turns if turn.seat == 0]
    for turn, usage in zip(turns, spent(episode), strict=True):
        call, legal = turn.attempts[0].calls[0], turn.legal or 0
        assert call.received == turn.action
        assert usage["scored_tokens"] == 2 * legal  # a digit, and the end of the turn
        prompt = call.extends + len(call.prompt_ids)
        assert usage["prompt_tokens"] == prompt * legal + usage["scored_tokens"]
        assert (legal - 1) * prompt <= usage["cached_tokens"] < usage["prompt_tokens"]
        assert usage["cost"] == 0


def test_a_longer_rule_is_a_longer_prompt() -> None:
    one, other = [
        spent(played(Prompting(show_legal=shown), tokens=False))[0]["prompt_tokens"] for shown in (True, False)
    ]
    assert one > other > 50
