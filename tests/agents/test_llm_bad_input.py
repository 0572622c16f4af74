"""Served agents that cannot play: refused before anything is played, in one line that says what to do."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import pytest
from aiohttp import web

import arena
from arena.model import ModelError
from arena.tournaments.config import parse
from arena.tournaments.runner import Refused
from arena.tournaments.runner import run as play_out
from tests.adapters.models.small_server import closed_port
from tests.cli.commands import run
from tests.fakes.server import FakeSGLang
from tests.fakes.trouble import Trouble, Troubles

KEY = "key-0123456789abcdef"
WRONG = "wrong-key-9876543210"
INFO = ("/model_info", "/server_info", "/v1/models", "/tokenize")
EVERYWHERE = (*INFO, "/generate", "/v1/chat/completions")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WRONG_KEY", WRONG)
    monkeypatch.delenv("NO_KEY", raising=False)


class Page(FakeSGLang):
    """A site that answers whatever is asked with a page for people."""

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="<!doctype html><title>It works!</title>", content_type="text/html")


class Nobody(AbstractContextManager["Nobody"]):
    """No server at all."""

    def __init__(self) -> None:
        self.url = f"http://127.0.0.1:{closed_port()}"

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""


Server = FakeSGLang | Nobody


def troubled(kind: Any, routes: tuple[str, ...], **more: Any) -> Callable[[], Server]:
    """A server that answers so, always, at these routes."""

    def made() -> Server:
        trouble = Troubles(routes=routes)
        trouble.rate(Trouble(kind, **more), 1.0)
        return FakeSGLang(trouble=trouble)

    return made


class Case(NamedTuple):
    server: Callable[[], Server]
    options: str
    """Behind the address."""
    said: dict[str, str]
    """By the kind of agent: a part of the line, and the remedy in it."""
    game: str = "TicTacToe"


def both(text: str) -> dict[str, str]:
    return {"sglang": text, "openai": text}


GARBAGE = {
    "sglang": "not an answer of /generate|is it an SGLang server?",
    "openai": "an answer that cannot be read|is it an OpenAI-compatible server?",
}
HANG = both("no whole answer within 0.3 s|(call_seconds)")
CASES = {
    "unreachable": Case(Nobody, "?retries=0", both("Connection refused|is the server up, and the address right?")),
    "wrong path": Case(FakeSGLang, "/v2", both("/v2 has no /|is it the right kind of server, and its base URL?")),
    "a page": Case(
        lambda: Page(),
        "",
        {"sglang": "/workers is not|is it an SGLang server", "openai": "no list|is this a base URL?"},
    ),
    "wrong key": Case(
        lambda: FakeSGLang(api_key=KEY),
        "?api_key_env=WRONG_KEY",
        both("refused the key (401|set the environment variable named in api_key_env=WRONG_KEY"),
    ),
    "no key": Case(
        lambda: FakeSGLang(api_key=KEY),
        "",
        both("asks for a key (401|set the environment variable named in api_key_env="),
    ),
    "missing variable": Case(
        FakeSGLang, "?api_key_env=NO_KEY", both("api_key_env=NO_KEY|set that environment variable to the key")
    ),
    "unknown model": Case(
        lambda: FakeSGLang(model="qwen3-8b"),
        "?model=qwen-8b",
        {"sglang": "does not serve 'qwen-8b'|it serves qwen3-8b", "openai": "no model qwen-8b|did you mean qwen3-8b?"},
    ),
    "context": Case(
        lambda: FakeSGLang(context_length=200),
        "?max_tokens=100",
        both("the first prompt of TicTacToe has |lower max_tokens or use a longer context"),
    ),
    "context, by a little": Case(
        lambda: FakeSGLang(context_length=300),
        "?max_tokens=100",
        {
            "sglang": "the first prompt of TicTacToe has |lower max_tokens or use a longer context",
            "openai": "the context is full: |Please reduce the number of tokens",  # what was estimated would just do
        },
    ),
    "constrained": Case(
        FakeSGLang, "?decode=constrained", both("no list of legal actions|use decode=free"), "Arithmetic"
    ),
    "score": Case(FakeSGLang, "?decode=score", both("no list of legal actions|use decode=free"), "Arithmetic"),
    "constrained talk": Case(
        FakeSGLang, "?decode=constrained", both("no list of legal actions|use decode=free"), "Negotiation"
    ),
    "score talk": Case(FakeSGLang, "?decode=score", both("no list of legal actions|use decode=free"), "Negotiation"),
    "garbage": Case(troubled("garbage", EVERYWHERE[4:], body="text"), "?retries=0", GARBAGE),
    "nothing": Case(troubled("garbage", EVERYWHERE[4:], body="empty"), "?retries=0", GARBAGE),
    "other types": Case(troubled("garbage", EVERYWHERE[4:], body="wrong types"), "?retries=0", GARBAGE),
    "garbage everywhere": Case(
        troubled("garbage", EVERYWHERE, body="wrong types"),
        "?retries=0",
        {"sglang": "not what SGLang says of itself|is it an SGLang server?", "openai": "name the model in model="},
    ),
    "hang": Case(troubled("hang", EVERYWHERE[4:]), "?retries=0&call_seconds=0.3", HANG),
    "hang everywhere": Case(troubled("hang", EVERYWHERE), "?retries=0&call_seconds=0.3", HANG),
}


def checked(line: str, said: str) -> None:
    """One line, with all its parts, and no key or traceback."""
    assert line.count("\n") == 0, line
    assert all(part in line for part in said.split("|")), line
    assert KEY not in line
    assert WRONG not in line
    assert "Traceback" not in line


@pytest.mark.parametrize("kind", ["sglang", "openai"])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_tournament_refuses_before_it_begins(case: Case, kind: str) -> None:
    with case.server() as server:
        spec = f"{kind}:{server.url}{case.options}"
        done = run("--game", case.game, "--agent", spec, "--agent", "random", "--blocks", "1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert isinstance(done.exception, SystemExit)
    line = done.stderr.removesuffix("\n")
    assert line.startswith(f"arena: agent {spec!r} cannot play {case.game}-v0: ")
    checked(line, case.said[kind])
    assert list(Path().rglob("*")) == []


@pytest.mark.parametrize("kind", ["sglang", "openai"])
def test_a_config_and_the_runner_say_the_same(kind: str) -> None:
    nobody = Nobody()
    agent = {"spec": f"{kind}:{nobody.url}", "name": "absent", "options": {"retries": 0}}
    opened = list[str]()

    def store() -> Any:
        opened.append("store")
        raise AssertionError("a store was opened")

    asked = parse({"games": ["TicTacToe"], "agents": [agent, "random"], "blocks": 1})
    with pytest.raises(Refused, match=r"^agent 'absent' cannot play TicTacToe-v0: cannot connect to http://.*right\?"):
        play_out(asked, store)
    assert opened == []


WRITTEN = {
    "127.0.0.1:30000": "a server's address is such as http://127.0.0.1:30000",
    "": "needs a target",
    "ftp://127.0.0.1": "a server's address is such as",
    f"http://me:{KEY}@127.0.0.1:1": "carries a password in its address; put it in the environment",
    f"http://127.0.0.1:1?api_key={KEY}": "it belongs in the environment; write api_key_env=NAME",
    "http://127.0.0.1:1?tempature=1": "Did you mean 'temperature'?",
    "http://127.0.0.1:1?decode=constraned": "allowed are free, constrained, score, vote",
    "http://127.0.0.1:1?temperature=-1": "temperature=-1",
    "http://127.0.0.1:1?max_tokens=many": "max_tokens",
    "http://127.0.0.1:1?call_seconds=0": "call_seconds=0: must be more than 0",
    "http://127.0.0.1:1?tools=hermis": "allowed are none (the task's own) or",
}


@pytest.mark.parametrize("kind", ["sglang", "openai"])
@pytest.mark.parametrize(("target", "said"), WRITTEN.items())
def test_what_is_written_wrong_is_said_wherever_it_is_written(target: str, said: str, kind: str) -> None:
    spec = f"{kind}:{target}"
    done = run("--game", "TicTacToe", "--agent", spec, "--agent", "random", "--blocks", "1")
    assert (done.exit_code, done.stdout) == (2, "")
    checked(done.stderr.removesuffix("\n"), said)
    assert list(Path().rglob("*")) == []
    for make in (
        lambda: gymnasium.make("arena/TicTacToe-v0", opponents=spec),
        lambda: arena.play("TicTacToe-v0", [spec, "random"]),
    ):
        with pytest.raises(ValueError, match=r"arget|allowed|ddress|expected|must|environment|Did") as caught:
            make()
        checked(str(caught.value), said)


SERVED = ("unreachable", "wrong path", "a page", "wrong key", "missing variable", "unknown model", "garbage", "hang")


@pytest.mark.parametrize("kind", ["sglang", "openai"])
@pytest.mark.parametrize("name", SERVED)
def test_a_match_is_void_and_says_why_and_an_environment_raises_it(name: str, kind: str) -> None:
    case = CASES[name]
    with case.server() as server:
        spec = f"{kind}:{server.url}{case.options}"
        episode = arena.play("TicTacToe-v0", [spec, "random"], seed=1)
        assert (episode.outcome, episode.returns, episode.turns) == ("void", None, [])
        checked(episode.reason, case.said[kind])
        env = gymnasium.make("arena/TicTacToe-v0", opponents=spec)
        env.reset(seed=1)
        with pytest.raises(ModelError) as caught:
            env.step("5")
        checked(str(caught.value), case.said[kind])
        env.close()


def test_an_environment_goes_on_once_the_server_is_there() -> None:
    with FakeSGLang(lambda prompt, asked: "<answer>1</answer>") as server:
        server.engine.answer, real = (lambda *_: "<answer>9</answer>"), server.engine.answer
        server.trouble.script(Trouble("garbage"))
        env = gymnasium.make("arena/TicTacToe-v0", opponents=f"sglang:{server.url}?retries=0")
        env.reset(seed=1)
        with pytest.raises(ModelError, match="not an answer of /generate"):
            env.step("5")
        server.engine.answer = real
        env.reset(seed=1)
        shown, reward, over, *_ = env.step("5")
        assert (reward, over) == (0.0, False)
        assert "O" in shown
        env.close()


def test_no_task_is_left_waiting_for_a_server_that_hangs() -> None:
    async def main() -> set[str]:
        with CASES["hang everywhere"].server() as server:
            spec = f"sglang:{server.url}?retries=0&call_seconds=0.2"
            episode = await arena.match.play("TicTacToe-v0", [spec, "random"])
            assert episode.outcome == "void"
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if others:  # those that end may need a turn of the loop or more; one that waits for the server stays
                await asyncio.wait(others, timeout=2)
            return {task.get_name() for task in others if not task.done()}

    assert asyncio.run(main()) == set()
