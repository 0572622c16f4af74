"""Conversations, token by token."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.agents.conversation import CHANGED, DROPPED, REWRITTEN, Bridges, Conversation, shared
from arena.model import Completion, Message, ModelError, Request
from tests.agents.toy_model import END, ODD, ToyModel, decode, encode

SYSTEM, USER = Message("system", "rules"), Message("user", "hello")


@given(st.lists(st.integers(0, 1), max_size=40), st.lists(st.integers(0, 1), max_size=40))
def test_the_common_prefix(a: list[int], b: list[int]) -> None:
    naive = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert shared(tuple(a), tuple(b)) == naive


def learned(model: ToyModel) -> Bridges:
    bridges = Bridges(model)
    asyncio.run(bridges.learn())
    return bridges


def test_a_bridge_is_what_the_template_writes_between_two_answers() -> None:
    bridges = learned(ToyModel(""))
    assert (bridges.end, bridges.system) == (END, True)
    between = asyncio.run(bridges.between((Message("user", "next?"),)))
    assert between is not None
    assert decode(between) == "<|im_end|><|im_start|>user\nnext?<|im_end|><|im_start|>assistant\n"


def test_bridges_are_asked_for_once() -> None:
    model = ToyModel("")
    bridges = learned(model)
    before = model.rendered
    for _ in range(3):
        asyncio.run(bridges.between((Message("user", "same"),)))
    assert model.rendered == before + 1


def test_the_oldest_bridges_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.agents.conversation._CACHED", 2)
    model = ToyModel("")
    bridges = learned(model)
    for text in ("a", "b", "a", "c", "a"):  # b is the oldest when c comes
        asyncio.run(bridges.between((Message("user", text),)))
    before = model.rendered
    asyncio.run(bridges.between((Message("user", "a"),)))
    assert model.rendered == before
    asyncio.run(bridges.between((Message("user", "b"),)))
    assert model.rendered == before + 1


def test_a_template_without_a_system_message_gets_it_in_the_first_of_the_user() -> None:
    bridges = learned(ToyModel("", system=False))
    assert not bridges.system
    assert bridges.merged((SYSTEM, USER, Message("assistant", "x")))[0] == Message("user", "rules\n\nhello")
    assert len(bridges.merged((SYSTEM, USER))) == 1


def test_a_template_that_ends_no_turn_has_no_end() -> None:
    class Bare(ToyModel):
        async def render(self, messages, tools=(), *, reply=True):  # type: ignore[no-untyped-def]  # as its base
            return encode(messages[2].content)

    bridges = learned(Bare(""))
    assert bridges.end is None
    assert asyncio.run(bridges.between((USER,))) is None


class Troubled(ToyModel):
    """The first renderings fail, each with the next of the statuses."""

    statuses: tuple[int, ...] = ()

    async def render(self, messages: Any, tools: Any = (), *, reply: bool = True) -> tuple[int, ...]:
        if self.statuses and self.statuses[0] != 200:
            error = ModelError("trouble")
            error.status, *rest = self.statuses
            self.statuses = tuple(rest)
            raise error
        self.statuses = self.statuses[1:]
        return await super().render(messages, tools, reply=reply)


@pytest.mark.parametrize("status", [503, 500, 429])
def test_a_busy_server_says_nothing_of_its_template(status: int) -> None:
    model = Troubled("")
    model.statuses = (status,)
    with pytest.raises(ModelError, match="trouble"):
        learned(model)
    assert learned(model).system


def test_a_lost_connection_says_nothing_of_its_template_either() -> None:
    model = Troubled("")
    model.statuses = (0,)
    bridges = learned(model)
    assert bridges.system
    assert bridges.merged((SYSTEM, USER)) == (SYSTEM, USER)
    model.system, model.statuses = False, (400, 200, 200, 503)
    with pytest.raises(ModelError, match="trouble"):
        learned(model)


def test_what_the_model_cannot_do_is_not_hidden() -> None:
    class Down(ToyModel):
        async def render(self, messages, tools=(), *, reply=True):  # type: ignore[no-untyped-def]  # as its base
            raise ModelError("down")

    with pytest.raises(ModelError, match="down"):
        learned(Down(""))


def started(model: ToyModel) -> Conversation:
    talk = Conversation(learned(model))
    talk.restart("rules")
    talk.begin([USER])
    return talk


def answer(talk: Conversation, model: ToyModel, said: str, *, exact: bool = True) -> tuple[int, ...]:
    """Ask with what there is; the prompt."""
    prompt = asyncio.run(talk.prompt(model, ()))
    given = asyncio.run(model.complete(Request(prompt_ids=prompt)))[0]
    talk.account(prompt, given, first=True)
    talk.answered(Message("assistant", said), exact=exact)
    return prompt


@pytest.mark.parametrize("ends", [True, False])
def test_ten_turns_extend_each_other_and_are_what_the_template_writes(ends: bool) -> None:
    model = ToyModel("fine", ends=ends)
    talk = started(model)
    before: tuple[int, ...] = ()
    for turn in range(10):
        prompt = answer(talk, model, "fine")
        assert prompt[: len(before)] == before
        assert prompt == asyncio.run(model.render(talk.messages[:-1]))
        assert talk.before == prompt + (*map(ord, "fine"), END)[: 4 + ends]
        before = talk.before
        talk.begin([Message("user", f"turn {turn}")])
    assert talk.gaps == []


def test_sampled_tokens_stay_even_if_no_text_has_them() -> None:
    model = ToyModel(Completion("fine", ids=(ODD, END)))
    talk = started(model)
    first = answer(talk, model, "fine")
    talk.begin([Message("user", "on")])
    assert asyncio.run(talk.prompt(model, ()))[len(first) :][:2] == (ODD, END)


def test_a_template_that_rewrites_is_a_break_and_it_is_said() -> None:
    model = ToyModel("fine")
    talk = started(model)
    answer(talk, model, "fine")
    assert talk.bridges is not None
    talk.bridges._head = (1, 2, 3)  # from now on the template writes the base in another way
    talk.begin([Message("user", "on")])
    prompt = asyncio.run(talk.prompt(model, ()))
    assert prompt == asyncio.run(model.render(talk.messages))
    assert talk.gaps == [REWRITTEN]


def test_a_server_that_read_another_prompt_is_believed() -> None:
    model = ToyModel("fine", reports=lambda prompt: (9, *prompt[1:]))
    talk = started(model)
    prompt = answer(talk, model, "fine")
    assert talk.before[:3] == (9, *prompt[1:3])
    assert not talk.exact
    assert talk.gaps == [CHANGED]


def test_messages_only() -> None:
    talk = Conversation(None)
    talk.restart("rules")
    talk.begin([USER])
    assert asyncio.run(talk.prompt(ToyModel(""), ())) == ()
    talk.account((), Completion("a", ids=(5,), prompt_ids=(1, 2)), first=True)
    talk.answered(Message("assistant", "a"), exact=True)
    assert talk.before == (1, 2, 5)
    assert talk.account((), Completion("b", ids=(6,), prompt_ids=(1, 2, 5, 3)), first=True) == (3, (3,))
    talk.answered(Message("assistant", "b"), exact=True)
    assert talk.gaps == []
    assert talk.account((), Completion("c", ids=(7,), prompt_ids=(1, 2, 4)), first=True) == (2, (4,))
    assert talk.gaps == [REWRITTEN]


def grown(turns: int, size: int = 100) -> Conversation:
    talk = Conversation(None)
    talk.restart("rules")
    for turn in range(turns):
        talk.begin([Message("user", f"{turn}" + "x" * size)])
        talk.answered(Message("assistant", "y" * size), exact=False)
    return talk


def test_room_is_made_by_leaving_out_the_oldest() -> None:
    talk = grown(10)
    assert talk.make_room(0.5)
    kept = [message.content[0] for message in talk.messages if message.role == "user"]
    assert kept == ["7", "8", "9"]  # three quarters of a half
    assert talk.messages[0] == SYSTEM
    assert talk.gaps == [DROPPED]
    assert talk.make_room(0.99)  # at least one each time
    assert talk.make_room(-1.0)
    assert not talk.make_room(0.5)  # only this turn's is left
    assert [message.content[0] for message in talk.messages] == ["r", "9", "y"]


@pytest.mark.parametrize(("keep", "left"), [(None, 6), (3, 4), (0, 1), (9, 6)])
def test_a_window_keeps_the_last_exchanges(keep: int | None, left: int) -> None:
    talk = grown(5)
    talk.begin([Message("user", "5")], keep)
    assert sum(message.role == "user" for message in talk.messages) == left
    assert talk.messages[0] == SYSTEM
    assert talk.messages[talk.starts[-1]].content == "5"
    assert talk.gaps == []  # it was asked for


def test_results_whose_calls_are_gone_become_plain() -> None:
    talk = grown(1)
    talk.begin([Message("tool", "4", tool_call_id="call00000")])
    talk.begin([Message("user", "on")], 1)
    assert [message.role for message in talk.messages] == ["system", "user", "user"]
