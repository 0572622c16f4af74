"""The agent: what it asks, what it makes of answers, what is on record."""

import asyncio
from typing import Any

import pytest

from arena.agent import Reply
from arena.episode import prompts
from arena.match import play
from arena.model import Completion, Message, ModelError
from arena.referee import Referee
from arena.registry import make_game
from tests.agents.seated import MODES, RETRY, agent, asked, calls, played, said
from tests.agents.toy_model import END, ToyModel, decode, view


@pytest.mark.parametrize("mode", MODES)
def test_a_conversation_is_what_was_said_and_nothing_else(mode: str) -> None:
    model = ToyModel("I take <answer>5</answer>", "hm <answer>7</answer>", "<answer>9</answer>")
    model.features = MODES[mode]
    episode = played(agent(model))
    assert episode.outcome == "terminated"
    turns = [turn for turn in episode.turns if turn.seat == 0]
    told = said(model, len(turns) - 1)
    parts = [part.partition("\n") for part in told.replace("<|im_end|>", "").split("<|im_start|>")[1:]]
    assert [role for role, _, _ in parts] == ["system"] + ["user", "assistant"] * len(turns)
    assert [turn.attempts[0].raw for turn in turns[:-1]] == [text for role, _, text in parts if role == "assistant"][
        :-1
    ]
    observations = [text.partition("\n\nLegal actions: ")[0] for role, _, text in parts if role == "user"]
    assert observations == [turn.observation for turn in turns]


def test_every_token_is_on_record_and_each_prompt_extends_the_last() -> None:
    model = ToyModel("bad", "I take <answer>5</answer>", "worse", "<answer>7</answer>", "<answer>9</answer>")
    episode = played(agent(model))
    recorded = calls(episode)
    assert prompts(recorded) == [request.prompt_ids for request in model.requests]
    before: tuple[int, ...] = ()
    for call, prompt in zip(recorded, prompts(recorded), strict=True):
        assert call.extends == len(before)
        assert call.kind == "generate"
        assert len(call.logprobs) == len(call.completion_ids)
        assert call.logprob_kind == "raw"
        assert call.usage == {"seconds": 0.1}
        assert decode(call.completion_ids) == call.received + "<|im_end|>"
        before = prompt + call.completion_ids
    assert episode.gaps == ()
    assert "".join(call.sent for call in recorded).count("Tic-tac-toe on") == 1


@pytest.mark.parametrize("style", ["chat", "snapshot", "window"])
@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_reply_and_the_referees_word_are_in_the_next_prompt(style: str, mode: str) -> None:
    model = ToyModel("I want 77", "<answer>5</answer>", "no", "nothing", "<answer>9</answer>")
    model.features = MODES[mode]
    played(agent(model, style=style, window=0))
    for at, wrong in ((1, "I want 77"), (3, "no"), (4, "nothing")):
        told = said(model, at)
        wanted = f"<|im_start|>assistant\n{wrong}<|im_end|><|im_start|>user\n[Not accepted: "
        assert wanted in told
        assert told.endswith("Try again.]<|im_end|><|im_start|>assistant\n")
    assert "<|im_start|>assistant\nno<|im_end|>" in said(model, 4)
    assert ("I want 77" in said(model, 2)) is (style == "chat")


def test_styles_differ_in_what_of_the_past_is_told() -> None:
    game, options = "IteratedPrisonersDilemma-v0", {"rounds": 6}
    told = {}
    for style in ("chat", "snapshot", "window"):
        model = ToyModel("<answer>defect</answer>")
        played(agent(model, style=style, window=2), game, options=options)
        told[style] = said(model)
    assert told["chat"].count("assistant\n<answer>") == told["chat"].count("<|im_start|>user") - 1 > 3
    assert told["snapshot"].count("<|im_start|>user") == 1
    assert told["window"].count("<|im_start|>user") == 3
    events = [line for line in told["snapshot"].splitlines() if line.startswith("Round")]
    assert len(events) >= 4
    assert all(line in told["chat"] for line in events)
    assert not all(line in told["window"] for line in events)


def test_a_window_grows_exactly_until_it_is_full() -> None:
    model = ToyModel("<answer>defect</answer>")
    recorded = calls(
        played(agent(model, style="window", window=2), "IteratedPrisonersDilemma-v0", options={"rounds": 6})
    )
    whole = [len(prompt) for prompt in prompts(recorded)]
    exact = [call.extends == whole[at] + len(recorded[at].completion_ids) for at, call in enumerate(recorded[1:])]
    assert exact[:2] == [True, True]
    assert not any(exact[2:])
    assert all(call.extends > 100 for call in recorded[1:])  # the rules are shared all the same


THOUGHT = "<think>\nbecause\n</think>\n\n"


def test_thoughts_are_kept_stripped_or_kept_apart() -> None:
    thought = "<think>5 is best</think>\n<answer>5</answer>"
    for thinking, text, history, exact in (
        ("keep", thought, thought, True),
        ("separate", "<answer>5</answer>", thought, True),
        ("strip", "<answer>5</answer>", "<answer>5</answer>", False),
    ):
        memory: dict[str, Any] = {}
        model = ToyModel(thought)
        reply = asked(agent(model, thinking=thinking), memory=memory)
        assert (reply.text, reply.reasoning) == (text, "5 is best")
        assert reply.calls[0].received == thought
        assert memory["llm"].messages[-1] == Message("assistant", history)
        assert memory["llm"].exact is exact


def test_stripped_thoughts_are_gone_from_the_next_prompt_which_says_how_much_it_shares() -> None:
    model = ToyModel("<think>deep</think><answer>5</answer>", "<answer>7</answer>", "<answer>9</answer>")
    episode = played(agent(model, thinking="strip"))
    first, second, *_ = calls(episode)
    assert "deep" not in said(model, 1)
    assert second.extends == len(first.prompt_ids) + len("<")
    assert prompts(calls(episode)) == [request.prompt_ids for request in model.requests]
    assert calls(episode)[2].extends > second.extends + len(second.prompt_ids)  # nothing to strip: it goes on


def test_a_servers_own_reasoning_is_recorded() -> None:
    model = ToyModel(Completion("<answer>5</answer>", reasoning="because", ids=(1, END)))
    assert asked(agent(model)).reasoning == "because"


@pytest.mark.parametrize(
    ("thinking", "text", "history", "exact"),
    [
        ("separate", "[5]", Message("assistant", "[5]", reasoning="because"), True),
        ("keep", f"{THOUGHT}[5]", Message("assistant", f"{THOUGHT}[5]"), True),
        ("strip", "[5]", Message("assistant", "[5]"), False),
    ],
)
def test_what_becomes_of_thoughts_that_the_server_set_apart(
    thinking: str, text: str, history: Message, exact: bool
) -> None:
    memory: dict[str, Any] = {}
    model = ToyModel(Completion("[5]", reasoning="because", ids=(1, END)))
    reply = asked(agent(model, thinking=thinking), memory=memory)
    assert (reply.text, reply.reasoning) == (text, "because")
    assert memory["llm"].messages[-1] == history
    assert memory["llm"].exact is exact


def test_a_thought_that_was_set_apart_cannot_end_before_its_end() -> None:
    model = ToyModel(Completion("[5]", reasoning="</think>[7]"))
    model.features = MODES["messages"]
    episode = played(agent(model, thinking="keep"), max_turns=1)
    assert episode.turns[0].action == "5"


def test_only_a_thought_is_left_to_the_referee() -> None:
    assert asked(agent(ToyModel("<think>for ever"))).text == "<think>for ever"


@pytest.mark.parametrize(
    ("finish", "truncated", "ends"), [("stop", False, ""), ("length", True, ""), ("abort", False, "weights changed")]
)
def test_how_an_answer_ended(finish: Any, truncated: bool, ends: str) -> None:
    why = "weights changed" if finish == "abort" else ""
    reply = asked(agent(ToyModel(Completion("5", finish, why, ids=(53,)))))
    assert (reply.truncated, reply.ends, reply.calls[0].finish_reason) == (truncated, ends, finish)
    assert reply.calls[0].completion_ids == (53,)


def test_a_cut_answer_is_ended_before_the_note() -> None:
    model = ToyModel(Completion("I th", "length", ids=(*map(ord, "I th"),)), "<answer>5</answer>")
    memory: dict[str, Any] = {}
    who = agent(model)
    asked(who, memory=memory)
    asked(who, memory=memory, note="[Not accepted: cut. Try again.]")
    assert said(model).endswith(
        "assistant\nI th<|im_end|><|im_start|>user\n[Not accepted: cut. Try again.]<|im_end|><|im_start|>assistant\n"
    )


def test_a_server_that_read_something_else_is_found_out() -> None:
    model = ToyModel("<answer>5</answer>", reports=lambda prompt: (*prompt[:-3], 1, 2))
    episode = played(agent(model))
    assert any("the server's tokens were not those that were sent" in gap for gap in episode.gaps)
    recorded = calls(episode)
    assert prompts(recorded)[0] == (*model.requests[0].prompt_ids[:-3], 1, 2)
    assert recorded[1].extends < len(model.requests[0].prompt_ids)  # rendered anew


def test_the_form_of_an_answer_is_told_again_when_it_changes() -> None:
    model = ToyModel("kill 1")
    episode = asyncio.run(play("SecretMafia-v0", [agent(model)] * 7, 5, {}, Referee(illegal="fallback"), max_turns=9))
    assert episode.outcome != "void", episode.reason
    whole = [said(model, at) for at in range(len(model.requests))]
    ends = [text.rpartition("<|im_start|>user\n")[2] for text in whole]
    speeches = [text for text in ends if "turn to speak" in text]
    assert speeches
    open_systems = ["Your whole reply" in text.partition("<|im_start|>user")[0] for text in whole]
    for text, opened in zip(ends, open_systems, strict=True):
        if "turn to speak" in text and not opened:
            assert "Your whole reply is read as your action" in text
        if "Legal actions: " in text and opened:
            assert "<answer>ACTION</answer>" in text


def test_the_server_is_asked_what_it_is_once() -> None:
    model = ToyModel("<answer>5</answer>")
    who = agent(model)

    async def many() -> None:
        await asyncio.gather(*[play("TicTacToe-v0", [who, who], seed, {}, RETRY) for seed in range(20)])

    asyncio.run(many())
    assert model.asked == 1
    asyncio.run(many())  # another event loop
    assert model.asked == 1


def test_one_that_gives_up_waiting_does_not_disturb_the_others() -> None:
    class Slow(ToyModel):
        async def info(self) -> Any:
            await asyncio.sleep(0.02)
            return await super().info()

    model = Slow("<answer>5</answer>")
    who = agent(model)

    async def race() -> Reply:
        seen = [view(make_game("TicTacToe-v0")) for _ in range(2)]
        first, second = asyncio.create_task(who.act(seen[0])), asyncio.create_task(who.act(seen[1]))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(race()).text == "<answer>5</answer>"


def test_a_server_that_comes_up_later_is_asked_again() -> None:
    class Late(ToyModel):
        async def info(self) -> Any:
            self.asked += 1
            if self.asked == 1:
                raise ModelError("cannot connect")
            return await super().info()

    who = agent(Late("<answer>5</answer>"))
    with pytest.raises(ModelError, match="cannot connect"):
        asked(who)
    assert asked(who).text == "<answer>5</answer>"


def test_a_model_that_cannot_answer_voids_the_match() -> None:
    class Down(ToyModel):
        async def complete(self, request: Any) -> tuple[Completion, ...]:
            raise ModelError("http://toy refused the key; set the environment variable KEY")

    episode = played(agent(Down("5")))
    assert episode.outcome == "void"
    assert "refused the key" in episode.reason


def test_what_the_record_says_of_the_policy() -> None:
    model = ToyModel(Completion("<answer>5</answer>", ids=(1,), weight_versions=((0, "w1"), (1, "w2"))))
    who = agent(model, decode="vote", votes=1)
    assert who.info().model == "toy"
    episode = played(who)
    policy = episode.seats[0].policy
    assert (policy.model, policy.weight_version, policy.tokenizer_hash, policy.trainable) == ("toy", "w2", "tok", True)
    assert policy.template_hash.endswith("/tem")
    assert policy.sampling["max_tokens"] == 50
    assert policy.sampling["decode"] == "vote"
    assert "template" not in policy.sampling
    assert calls(episode)[0].weight_versions == ((0, "w1"), (1, "w2"))


def test_a_model_without_tokens_is_not_trained_on() -> None:
    who = agent(ToyModel("<answer>5</answer>", features=("n",)))
    episode = played(who)
    assert not who.info().trainable
    assert {call.kind for call in calls(episode)} == {"chat"}
    assert not any(call.completion_ids or call.prompt_ids for call in calls(episode))


def test_what_the_adapter_missed_is_in_the_record_once() -> None:
    model = ToyModel(Completion("<answer>5</answer>", ids=(1,), gaps=("no logprobs",)))
    assert played(agent(model)).gaps == ("no logprobs",)


def test_seats_of_one_agent_do_not_share_conversations() -> None:
    model = ToyModel("<answer>1</answer>", "<answer>2</answer>", "<answer>3</answer>")
    asyncio.run(play("TicTacToe-v0", [agent(model)] * 2, 0, {}, RETRY))
    affinities = [request.affinity for request in model.requests]
    assert len(set(affinities)) == 2
    assert "You are X" in said(model, 0)
    assert "You are O" in said(model, 1)


def test_a_closed_agent_lets_go_of_its_model() -> None:
    model = ToyModel("")
    asyncio.run(agent(model).close())
    assert model.closed
