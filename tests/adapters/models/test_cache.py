"""Answers kept in a folder: crashes, several processes, and what must not be kept."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from arena.adapters.models.cache import Cache, question_key
from arena.model import Completion, Constraint, Message, ModelError, Request, Sampling

COLD = Sampling(temperature=0)
ASKED = Request((Message("user", "Your move?"),), sampling=COLD, id="a", affinity="game-1", priority=3)
ANSWER = Completion("[4]", ids=(5, 2), usage={"prompt_tokens": 9, "seconds": 1.5, "cost": 0.01})


def key_of(request: Request, identity: str = "m") -> str:
    key = question_key(identity, request)
    assert key is not None
    return key


def test_only_temperature_0_has_a_key() -> None:
    assert question_key("m", msgspec.structs.replace(ASKED, sampling=Sampling(temperature=0.1))) is None


@pytest.mark.parametrize("change", [{"id": "b"}, {"affinity": ""}, {"priority": None}])
def test_how_a_question_is_sent_does_not_count(change: dict[str, str | None]) -> None:
    assert key_of(msgspec.structs.replace(ASKED, **change)) == key_of(ASKED)


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("user", "Your move!"),)},
        {"messages": (Message("system", "Your move?"),)},
        {"messages": (Message("user", "Your"), Message("user", " move?"))},
        {"sampling": Sampling(temperature=0, max_tokens=5)},
        {"constraint": Constraint("regex", "a")},
        {"tools": ({"type": "function"},)},
        {"n": 2},
    ],
)
def test_what_is_asked_counts(change: dict[str, object]) -> None:
    assert key_of(msgspec.structs.replace(ASKED, **change)) != key_of(ASKED)


def test_the_model_counts() -> None:
    assert key_of(ASKED, "m") != key_of(ASKED, "n")


def test_the_order_of_a_tools_keys_does_not_count() -> None:
    one, two = ({"a": 1, "b": 2},), ({"b": 2, "a": 1},)
    assert key_of(msgspec.structs.replace(ASKED, tools=one)) == key_of(msgspec.structs.replace(ASKED, tools=two))


def test_an_answer_comes_back_free_of_charge(tmp_path: Path) -> None:
    Cache(tmp_path).put("k", [ANSWER])
    found = Cache(tmp_path).get("k")
    assert found is not None
    assert found[0].usage == {"prompt_tokens": 9, "seconds": 0, "cost": 0, "cached_answer": 1}
    assert msgspec.structs.replace(found[0], usage=ANSWER.usage) == ANSWER


def test_aborted_answers_are_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("k", [ANSWER, Completion("", finish="abort")])
    cache.put("none", [])
    assert len(cache) == 0
    assert cache.path.read_bytes() == b""


def test_a_line_cut_by_a_crash_spoils_only_itself(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("first", [ANSWER])
    cache.put("second", [ANSWER])
    whole = cache.path.read_bytes()
    end = whole.index(b"}\n") + 1
    for cut in range(len(whole)):
        cache.path.write_bytes(whole[:cut])
        after = Cache(tmp_path)
        assert (after.get("first") is not None) == (cut >= end)
        after.put("third", [ANSWER])
        assert Cache(tmp_path).get("third") is not None


@pytest.mark.parametrize(
    "line", [b"\xff\xfe", b"[]", b'{"key": "k"}', b'{"key": "k", "answers": 5}', b'{"key":"k","answers":[{"text":1}]}']
)
def test_lines_of_something_else_are_passed_over(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "answers.jsonl").write_bytes(line + b"\n")
    cache = Cache(tmp_path)
    assert cache.get("k") is None
    cache.put("k", [ANSWER])
    assert Cache(tmp_path).get("k") is not None


def write_many(folder: Path, who: int) -> None:
    cache = Cache(folder)
    for number in range(200):
        cache.put(f"{who}-{number}", [Completion("x" * (number * 37 % 9000))])


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=write_many, args=(tmp_path, who)) for who in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    cache = Cache(tmp_path)
    assert len(cache) == 600
    for key in (f"{who}-{number}" for who in range(3) for number in range(200)):
        found = cache.get(key)
        assert found is not None
        assert len(found[0].text) == int(key.partition("-")[2]) * 37 % 9000


def test_a_killed_process_leaves_what_it_had_kept(tmp_path: Path) -> None:
    code = (
        "import sys; from arena.adapters.models.cache import Cache; from arena.model import Completion\n"
        f"cache = Cache({str(tmp_path)!r})\n"
        "for i in range(10**9):\n"
        "    cache.put(str(i), [Completion('y' * 5000)])\n"
        "    if i == 20: print('go', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    cache = Cache(tmp_path)
    assert len(cache) > 20
    cache.put("after", [ANSWER])
    assert Cache(tmp_path).get("after") is not None


def test_users_of_a_folder_share_its_cache(tmp_path: Path) -> None:
    one = Cache.at(tmp_path)
    one.put("k", [ANSWER])
    assert Cache.at(str(tmp_path / ".." / tmp_path.name)) is one


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"cache=.*file.*: name a folder that can be written"):
        Cache(tmp_path / "file")


def test_a_full_disk_is_an_error_of_one_line(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, cache._file)
    os.close(full)
    with pytest.raises(ModelError, match=r"answers\.jsonl: No space left on device: answers cannot be kept"):
        cache.put("k", [ANSWER])


def test_the_file_is_private(tmp_path: Path) -> None:
    assert Cache(tmp_path / "made").path.stat().st_mode & 0o077 == 0
