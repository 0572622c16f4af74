"""What a served model can do and how fast, found by asking it a few short questions."""

import asyncio
import time

import msgspec

from arena.model import Completion, Constraint, Message, Model, ModelError, ModelInfo, Request, Sampling

__all__ = ["Finding", "Probe", "probe"]

_ASK = "Count from one to twenty in words."
_AT_ONCE, _TOKENS = 8, 32
_REGEX = Constraint("regex", "(red|green|blue)")
_SCHEMA = Constraint(
    "json_schema",
    '{"type":"object","properties":{"colour":{"enum":["red","green","blue"]}},"required":["colour"],'
    '"additionalProperties":false}',
)
_EBNF = Constraint("ebnf", 'root ::= "red" | "green" | "blue"')


class Finding(msgspec.Struct, frozen=True):
    """One thing that was tried."""

    what: str
    works: bool
    said: str = ""


class Probe(msgspec.Struct, frozen=True):
    """All of it."""

    info: ModelInfo
    findings: tuple[Finding, ...]
    first_seconds: float
    """A short answer to a new prompt, alone."""
    tokens_per_second: float
    """One answer alone; 0: the server does not say how many tokens it wrote."""
    tokens_per_second_at_once: float
    """All answers together, `at_once` of them."""
    at_once: int = _AT_ONCE


async def probe(model: Model) -> Probe:
    """Ask for the facts, then for short answers. Raises ModelError where the model does not answer at all."""
    info = await model.info()
    marker = time.time_ns()  # a prompt no cache has seen
    short = Request((Message("user", f"{_ASK} ({marker})"),), sampling=Sampling(max_tokens=_TOKENS, temperature=0.0))
    started = time.perf_counter()
    first = (await model.complete(short))[0]
    first_seconds = time.perf_counter() - started
    again = (await model.complete(msgspec.structs.replace(short, id="")))[0]
    many, seconds = await _at_once(model, marker)
    findings = [
        *_recorded(first, model),
        Finding("prefix cache", again.usage.get("cached_tokens", 0) > 0, _cached(again)),
        *[await _tried(model, kind) for kind in (_REGEX, _SCHEMA, _EBNF) if kind.kind in model.features],
    ]
    if "n" in model.features:
        findings.append(await _several(model))
    if "score" in model.features:
        findings.append(await _scored(model))
    wrote = sum(answer.usage.get("completion_tokens", 0) for answer in many)
    return Probe(info, tuple(findings), first_seconds, _rate(first, first_seconds), wrote / seconds)


async def _at_once(model: Model, marker: int) -> tuple[list[Completion], float]:
    asked = [
        Request((Message("user", f"{number} {_ASK} ({marker})"),), sampling=Sampling(max_tokens=_TOKENS))
        for number in range(_AT_ONCE)
    ]
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(model.complete(request)) for request in asked]
    return [task.result()[0] for task in tasks], max(time.perf_counter() - started, 1e-9)


def _rate(answer: Completion, seconds: float) -> float:
    return answer.usage.get("completion_tokens", 0) / max(seconds, 1e-9)


def _cached(answer: Completion) -> str:
    usage = answer.usage
    return f"{usage.get('cached_tokens', 0):.0f} of {usage.get('prompt_tokens', 0):.0f} prompt tokens the second time"


def _recorded(answer: Completion, model: Model) -> list[Finding]:
    """What a record will hold of its answers."""
    found = [
        Finding("token counts", "completion_tokens" in answer.usage, f"{_TOKENS} at most were asked for"),
        Finding("token ids of the answer", bool(answer.ids)),
        Finding("prompt from token ids", "tokens" in model.features),
        Finding("log-probabilities", bool(answer.logprobs), answer.logprob_kind),
        Finding("weight version", bool(answer.weight_versions), "".join(v for _, v in answer.weight_versions[:1])),
    ]
    return [*found, *[Finding("gap", False, gap) for gap in answer.gaps]]


async def _tried(model: Model, constraint: Constraint) -> Finding:
    """Whether an answer under a constraint keeps to it."""
    asked = "What is your favourite animal? Answer freely."
    sampling = Sampling(max_tokens=_TOKENS, temperature=1.0)
    what = f"answers held to a {constraint.kind.replace('_', ' ')}"
    try:
        answer = (await model.complete(Request((Message("user", asked),), sampling=sampling, constraint=constraint)))[0]
    except ModelError as error:
        return Finding(what, False, str(error))
    said = answer.text.strip()
    if constraint.kind == "json_schema":
        return Finding(what, _colour(said) in ("red", "green", "blue"), said[:60])
    return Finding(what, said in ("red", "green", "blue"), said[:60])


def _colour(text: str) -> object:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return value.get("colour") if isinstance(value, dict) else None


async def _several(model: Model) -> Finding:
    request = Request((Message("user", _ASK),), sampling=Sampling(max_tokens=4), n=2)
    try:
        answers = await model.complete(request)
    except ModelError as error:
        return Finding("several answers to one request", False, str(error))
    return Finding("several answers to one request", len(answers) == 2, f"{len(answers)} of 2")


async def _scored(model: Model) -> Finding:
    """A log-probability for every token; a model that knows anything gives Paris the higher sum."""
    prompt = await model.render((Message("user", "What is the capital of France? One word."),))
    answers = await model.encode(("Paris", "Pwqxz"))
    scored = (await model.score(prompt, answers)).rows
    whole = [len(row) for row in scored] == [len(answer) for answer in answers]
    right, odd = map(sum, scored)
    return Finding("answers scored", whole and max(right, odd) <= 0, f"Paris {right:.1f}, Pwqxz {odd:.1f}")
