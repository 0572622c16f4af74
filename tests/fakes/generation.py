"""From a body of `/generate` to runs, and from runs to answers."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes import tokenizer
from tests.fakes.engine import Engine, Refused, Run, new_rid
from tests.fakes.logits import allowed_tokens, logprob, top
from tests.fakes.trouble import OK, Trouble


@dataclass(frozen=True)
class Wanted:
    """What one answer must show beside the text."""

    logprobs: bool = False
    start: int = -1
    top: int = 0
    of_tokens: Sequence[int] | None = None
    texts: bool = False
    prompt_ids: bool = False

    @property
    def known(self) -> int:
        """The most prompt tokens the cache may spare: none whose log-probability is asked for."""
        return self.start if self.logprobs and self.start >= 0 else 1 << 62


@dataclass(frozen=True)
class Job:
    """One run and what is wanted of it."""

    run: Run
    wanted: Wanted


def jobs_of(engine: Engine, body: dict[str, Any]) -> tuple[list[Job], bool]:
    """The runs of a body that keeps the contract, and whether the answer is a list.

    Raises:
        Refused: as the server refuses it.
    """
    if body.get("lora_path"):
        raise Refused(
            f"LoRA adapter '{body['lora_path']}' was requested, but LoRA is not enabled. Please launch the server with "
            "--enable-lora flag and preload adapters using --lora-paths or /load_lora_adapter endpoint."
        )
    prompts, batch = _prompts(body)
    jobs, many = [], batch
    for number, ids in enumerate(prompts):
        params = _one(body.get("sampling_params"), number, batch) or {}
        n = params.get("n") or 1
        many = many or n > 1
        for copy in range(n):
            rid = _rid(body.get("rid"), number, batch) if n == 1 else new_rid()
            jobs.append(Job(engine.plan(rid, ids, params, body, copy), _wanted(body, number, batch)))
    return jobs, many


def _prompts(body: dict[str, Any]) -> tuple[list[list[int]], bool]:
    given = [key for key in ("text", "input_ids", "input_embeds") if body.get(key) is not None]
    if not given:
        raise Refused("Either text, input_ids or input_embeds should be provided.")
    if len(given) > 1:
        raise Refused("Either text, input_ids or input_embeds should be provided.")
    value = body[given[0]]
    if given == ["text"]:
        batch = isinstance(value, list)
        try:
            return [tokenizer.encode(text) for text in (value if batch else [value])], batch
        except UnicodeEncodeError as error:
            raise Refused(f"text is no valid Unicode: {error.reason}") from error
    batch = bool(value) and isinstance(value[0], list)
    return (value if batch else [value]), batch


def _one(value: Any, number: int, batch: bool) -> Any:
    return value[number] if batch and isinstance(value, list) else value


def _rid(rid: Any, number: int, batch: bool) -> str:
    if rid is None:
        return new_rid()
    if not batch:
        return str(rid)
    return str(rid[number]) if isinstance(rid, list) else f"{rid}_{number}"


def _wanted(body: dict[str, Any], number: int, batch: bool) -> Wanted:
    of_tokens = body.get("token_ids_logprob")
    start = _one(body.get("logprob_start_len"), number, batch)
    return Wanted(
        logprobs=bool(_one(body.get("return_logprob"), number, batch)),
        start=-1 if start is None else start,
        top=_one(body.get("top_logprobs_num"), number, batch) or 0,
        of_tokens=of_tokens[number] if batch and of_tokens and isinstance(of_tokens[0], list) else of_tokens,
        texts=bool(body.get("return_text_in_logprobs")),
        prompt_ids=bool(body.get("return_prompt_token_ids")),
    )


async def whole(engine: Engine, jobs: Sequence[Job], trouble: Trouble = OK) -> None:
    """Run all to their end.

    Raises:
        Refused: 503, the queue is full.
    """
    if len(jobs) == 1:
        async for _ in steps(engine, jobs[0], None, trouble):
            continue
        return
    ends = await asyncio.gather(*(whole(engine, [job], trouble) for job in jobs), return_exceptions=True)
    for end in ends:
        if end is not None:
            raise end


async def steps(engine: Engine, job: Job, step: int | None, trouble: Trouble = OK) -> AsyncGenerator[bool]:
    """Run one, `step` tokens at a time; yields whether it is over."""
    run = job.run
    with engine.registered(run, job.wanted.known):
        await engine.admit(run)
        try:
            if trouble.kind == "abort":
                await engine.advance(run, len(run.planned) // 2)
                engine.abort(run.rid)
            while True:
                await engine.advance(run, step)
                over = run.aborted or run.done == len(run.planned)
                yield over
                if over:
                    return
        finally:
            engine.leave()


def answer_of(engine: Engine, job: Job, over: bool = True) -> dict[str, Any]:
    """The answer to one run, as far as it is."""
    run, wanted = job.run, job.wanted
    shown = {"prompt_token_ids": run.prompt_ids} if wanted.prompt_ids else {}
    if run.unheard:
        return {"text": "", "output_ids": [], "meta_info": _unheard(engine, run), **shown}
    ids = run.planned[: run.done]
    meta: dict[str, Any] = {
        "id": run.rid,
        "finish_reason": finish_of(run) if over else None,
        "prompt_tokens": len(run.prompt_ids),
        "weight_version": engine.weight_version,
        "num_retractions": 0,
        **(_logprobs(engine, run, wanted) if wanted.logprobs else {}),
        "reasoning_tokens": 0,
        "completion_tokens": len(ids),
        "cached_tokens": run.cached,
        "cached_tokens_details": {"device": run.cached, "host": 0} if run.cached else None,
        "dp_rank": None,
    }
    if over:
        empty = [{"version": engine.weight_version, "start": 0, "end": 0}]
        meta["weight_versions"] = run.spans or empty
        meta["e2e_latency"] = time.perf_counter() - run.started
        meta["response_sent_to_client_ts"] = time.time()
    return {"text": text_of(run, over), "output_ids": ids, "meta_info": meta, **shown}


def _unheard(engine: Engine, run: Run) -> dict[str, Any]:
    """`meta_info` of a run aborted in the queue: the server tells no more than this."""
    return {
        "id": run.rid,
        "finish_reason": {"type": "abort", "message": "Abort in waiting queue"},
        "weight_version": engine.weight_version,
        "e2e_latency": time.perf_counter() - run.started,
        "completion_tokens": 0,
    }


def finish_of(run: Run) -> dict[str, Any]:
    """Why a run is over."""
    if run.aborted:
        return {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
    if run.matched is None:
        return {"type": "length", "length": run.done}
    return {"type": "stop", "matched": run.matched}


def text_of(run: Run, over: bool) -> str:
    """What it has said; what stopped it is cut off, and half a character is not shown before the end."""
    ids = run.planned[: run.done]
    trimmed = over and not run.aborted and not run.params.get("no_stop_trim")
    if trimmed and isinstance(run.matched, int) and run.done == len(run.planned):
        ids = ids[:-1]
    text = tokenizer.decode(ids, skip_special_tokens=run.params.get("skip_special_tokens") is not False)
    if not over:
        return text.rstrip("\ufffd")
    return text.removesuffix(run.matched) if trimmed and isinstance(run.matched, str) else text


def _logprobs(engine: Engine, run: Run, wanted: Wanted) -> dict[str, Any]:
    """The lists of `meta_info`; those of the prompt are raw, those of the answer of what was sampled from."""
    prompt, ids, versions = run.prompt_ids, run.planned[: run.done], run.versions()
    text = (lambda one: tokenizer.TOKENS[one].decode(errors="replace")) if wanted.texts else (lambda _: None)
    heat = run.params.get("temperature")
    heat = 1.0 if heat is None else heat
    allowed = _allowed(run)
    before = [prompt[-1], *ids]
    places = list(zip(before, ids, versions, allowed, strict=False))
    start = wanted.start if wanted.start >= 0 else len(prompt)
    raw = [
        [
            None if at == start else logprob(prompt[at - 1], prompt[at], engine.weight_version),
            prompt[at],
            text(prompt[at]),
        ]
        for at in range(start, len(prompt))
    ]
    lists: dict[str, Any] = {
        "input_token_logprobs": raw,
        "output_token_logprobs": [[logprob(b, one, v, heat, a), one, text(one)] for b, one, v, a in places],
        "output_token_logprobs_length": len(ids),
    }
    if wanted.top:
        lists["input_top_logprobs"] = [
            None
            if at == start
            else [[p, t, text(t)] for p, t in top(prompt[at - 1], engine.weight_version, 1.0, wanted.top, None)]
            for at in range(start, len(prompt))
        ]
        lists["output_top_logprobs"] = [
            [[p, t, text(t)] for p, t in top(b, v, heat, wanted.top, a)] for b, _, v, a in places
        ]
    if wanted.of_tokens is not None:
        lists["input_token_ids_logprobs"] = []
        lists["output_token_ids_logprobs"] = [
            [[logprob(b, t, v, heat), t, text(t)] for t in wanted.of_tokens] for b, _, v, _ in places
        ]
    return lists


def _allowed(run: Run) -> Sequence[list[int] | None]:
    """For each place the tokens the constraint let through; where they cannot be listed, the one that was said."""
    if run.constraint is None:
        return [None] * len(run.planned)
    if run.constraint.choices is None:
        return [[one] for one in run.planned]
    return allowed_tokens(run.constraint.choices, run.planned)
