"""What SGLang says of itself: its facts as one `ModelInfo`, and whether they are of the model that was meant."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from arena.adapters.models.failures import one_line
from arena.model import Constraint, Feature, Message, ModelError, ModelInfo

__all__ = [
    "CANARIES",
    "PROBE_TALK",
    "PROBE_TEXT",
    "Facts",
    "check_name",
    "facts_of",
    "hash_of",
    "info_of",
    "without_grammar",
]

PROBE_TEXT = "Zug 12: e4 e5 — d'accord? [[7]] {\"x\": [1, 2.50]}\n\tif n<=3: return '零'  # 🎲 naïve\n\nABC abc  "
PROBE_TALK = (Message("user", "Your move?"), Message("assistant", "[3]"), Message("user", "Illegal. Again."))
"""A tokenizer is known by the tokens of this text, and a chat template by those of this conversation."""

CANARIES: tuple[Constraint, ...] = (
    Constraint("regex", "qzx-7"),
    Constraint("json_schema", '{"const": "qzx-7"}'),
    Constraint("ebnf", 'root ::= "qzx-7"'),
)
"""Constraints no answer keeps by chance: all of them force qzx-7. A router may lose what it does not know."""

SHOWN = (
    "dtype",
    "quantization",
    "grammar_backend",
    "attention_backend",
    "max_total_num_tokens",
    "max_running_requests",
    "max_queued_requests",
    "tool_call_parser",
    "reasoning_parser",
    "enable_deterministic_inference",
    "enable_priority_scheduling",
)


class _Card(msgspec.Struct, frozen=True):
    id: str
    parent: str | None = None
    max_model_len: int | None = None


class _Cards(msgspec.Struct, frozen=True):
    data: list[_Card]


class _Probe(msgspec.Struct, frozen=True):
    tokens: list[int]


class Facts(msgspec.Struct, frozen=True):
    """What one server says."""

    url: str
    names: tuple[str, ...]
    """What it answers to, first the name it was started under: after `update_weights_from_disk` a server calls itself
    after the path of the weights."""
    adapters: tuple[str, ...]
    context: int
    version: str
    weight_version: str
    tokenizer_hash: str
    template_hash: str
    shown: dict[str, str]


def hash_of(ids: Sequence[int]) -> str:
    """A short name for a sequence of tokens."""
    return blake2b(",".join(map(str, ids)).encode(), digest_size=8).hexdigest()


def facts_of(url: str, model: bytes, server: bytes, cards: bytes, text: bytes, talk: bytes) -> Facts:
    """The facts in the bodies of /model_info, /server_info, /v1/models and /tokenize. Raises ModelError."""
    try:
        told = msgspec.json.decode(model, type=dict[str, Any])
        args = msgspec.json.decode(server, type=dict[str, Any])
        served = msgspec.json.decode(cards, type=_Cards).data
        hashes = [hash_of(msgspec.json.decode(body, type=_Probe).tokens) for body in (text, talk)]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{url}: not what SGLang says of itself ({error}): is it an SGLang server?") from None
    own = [card.id for card in served if card.parent is None]
    names = [args.get("served_model_name"), told.get("served_model_name"), *own]
    return Facts(
        url=url,
        names=tuple(dict.fromkeys(str(name) for name in names if name)),
        adapters=tuple(card.id for card in served if card.parent is not None),
        context=min((card.max_model_len for card in served if card.max_model_len), default=0),
        version=one_line(str(args.get("version") or "")),
        weight_version=one_line(str(told.get("weight_version") or "")),
        tokenizer_hash=hashes[0],
        template_hash=hashes[1],
        shown=shown(args | {key: value for key, value in told.items() if value is not None}),
    )


def shown(told: Mapping[str, Any]) -> dict[str, str]:
    """Of all a server says, what is worth showing."""
    return {key: one_line(str(told[key]))[:80] for key in SHOWN if told.get(key) not in (None, False, "")}


def without_grammar(found: Sequence[Facts]) -> set[Feature]:
    """The constraints that are no use, as a server was started without a grammar backend."""
    if any(facts.shown.get("grammar_backend") == "none" for facts in found):
        return {each.kind for each in CANARIES}
    return set()


def check_name(facts: Facts, model: str, lora_path: str) -> None:
    """The server takes any name for the model without a word. Raises ModelError unless it serves this one."""
    served = one_line(", ".join(facts.names)) or "nothing with a name"
    if lora_path and lora_path not in facts.adapters:
        raise ModelError(
            f"{facts.url}: no adapter {lora_path!r} is loaded: {one_line(', '.join(facts.adapters)) or 'none is'}"
        )
    if model in facts.adapters:
        raise ModelError(f"{facts.url}: {model!r} is an adapter of {served}: name it in lora_path=")
    if model and model not in facts.names:
        raise ModelError(f"{facts.url} does not serve {model!r}: it serves {served}")


def info_of(
    found: Sequence[Facts], model: str, lora_path: str, endpoints: str, features: Sequence[Feature], *, routed: bool
) -> ModelInfo:
    """The facts of all servers as one. Raises ModelError where they are not one model's."""
    first = found[0]
    for facts in found:
        check_name(facts, model, lora_path)
        if (facts.tokenizer_hash, facts.template_hash) != (first.tokenizer_hash, first.template_hash):
            raise ModelError(f"{facts.url} and {first.url} write tokens differently: name endpoints of one model only")
    details = first.shown | ({"servers": ", ".join(facts.url for facts in found)} if len(found) > 1 or routed else {})
    return ModelInfo(
        model=model or (one_line(first.names[0]) if first.names else ""),
        server=f"SGLang {first.version}" + (" behind a router" if routed else ""),
        url=endpoints,
        context=min(facts.context for facts in found),
        weight_version=", ".join(dict.fromkeys(facts.weight_version for facts in found)),
        tokenizer_hash=first.tokenizer_hash,
        template_hash=first.template_hash,
        features=tuple(features),
        details=details | ({"lora_path": lora_path} if lora_path else {}),
    )
