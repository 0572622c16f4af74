"""Agents that did not answer in time, in formats of text."""

from typing import Any

import pytest

from arena.adapters.datasets.chat import exchanges
from arena.adapters.datasets.formats import make_format
from arena.agent import Agent, Reply, View
from arena.agents.prompting import Prompting
from arena.referee import Referee
from tests.adapters.datasets.talks import played, seat


class Late(Agent):
    """Does not answer in time when it is first asked."""

    name = "late"

    def act(self, view: View) -> Reply:
        at = view.memory["at"] = view.memory.get("at", -1) + 1
        return Reply(view.legal_actions[0]) if at and view.legal_actions else Reply("", truncated=True)


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("style", ["chat", "snapshot"])
def test_who_did_not_answer_in_time_said_nothing(style: Any, retries: int) -> None:
    trajectory = seat(played([Late(), "random"], referee=Referee(retries=retries, illegal="random")))
    late, *others = [attempt for _, attempt in trajectory.attempts]
    assert (late.raw, late.verdict) == ("", "truncated")
    found = list(exchanges(trajectory, Prompting(style=style)))
    assert [each.attempt for each in found] == others
    assert all(message.content for each in found for message in (*each.prompt, each.answer))
    for spec in ("kto", "sft?legal_only=false"):
        rows = list(make_format(f"{spec}{'&' if '?' in spec else '?'}style={style}").rows([trajectory]))
        assert len(rows) == len(others)
        assert all(row["completion"][0]["content"] for row in rows)
