"""Served language models as agents that spec strings name: `sglang:http://127.0.0.1:30000?model=qwen&temperature=0.7`.

Every field of Prompting, Sampling and Settings, and every keyword of the model's class, is an option.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, TypeVar, get_origin

import msgspec

from arena.adapters.models.engine import Engine
from arena.adapters.models.local import Checkpoint
from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.prices import Price
from arena.adapters.models.settings import Settings, host_and_port
from arena.adapters.models.sglang import SGLang
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.agents.standin import StandIn
from arena.model import Model, Sampling

__all__ = ["EngineAgent", "LocalAgent", "OpenAIAgent", "SGLangAgent"]

_MEANINGS = """
model: the name of the model at the server; "": the one it serves
style: chat (the conversation grows), snapshot (all is told anew each turn) or window (the last exchanges stay)
window: exchanges that style=window keeps beside the present one, 0 to 64
thinking: thoughts stay in history and reply (keep), in neither (strip), or in the history only (separate)
show_legal: whether the prompt lists the legal actions, where the referee shows them
legal_limit: the longest list that is written out, in actions; 0: no limit
answer: how the model is told to mark its action: answer, boxed, final, bracket or plain
template: a folder with a system.j2, turn.j2 or form.j2 of your own
overflow: the context is full: window (drop the oldest exchanges), forfeit, or truncate (end the episode)
decode: free, constrained (to legal actions), score (the likeliest legal action) or vote (of several replies)
votes: replies that decode=vote asks for, 1 to 64
tools: for tool tasks, the format of calls the model was trained for: hermes, llama, pythonic, mistral, openai; "":
    the task's own
max_tokens: the longest answer, in tokens
temperature: 0 or more; 0: always the likeliest
top_p: above 0, up to 1
top_k: 1 or more; -1: all tokens
min_p: 0 to 1
stop: a text, or a list of texts, that ends the answer
priority: of its requests, for servers that schedule by it (SGLang: --enable-priority-scheduling)
concurrency: requests in flight at one endpoint
adaptive: fewer than that while the server says that it is too busy
requests_per_minute: at most so many
tokens_per_minute: at most so many
retries: further attempts where the server was too busy or the connection broke
connect_seconds: the longest wait for a connection
first_token_seconds: the longest wait for the first token; answers are streamed if it is set
call_seconds: the longest wait for the whole answer to one attempt
api_key_env: the environment variable that holds the key
cache: a folder where answers at temperature 0 are kept
prices: a TOML file of prices
input_price: dollars per million tokens of the prompt
cached_price: dollars per million tokens of the prompt that the server had in its cache
output_price: dollars per million tokens of the answer
logprobs: whether log-probabilities are asked for
prompt_ids: whether the server tells the tokens of the prompt it read
lora_path: the name of a loaded LoRA adapter
session_id: a session you opened at the server, for an agent that plays one conversation
extras: the kind of server, whose own fields are used: auto (it is asked), sglang, vllm, openai (standard fields
    only) or none (those that every server knows)
max_tokens_field: max_tokens, or max_completion_tokens, which newer models of OpenAI demand
extra: further fields of every request, as a JSON object; for sglang and engine chat_template_kwargs,
    reasoning_effort, frequency_penalty, presence_penalty, repetition_penalty, cache_salt
server_args: what sglang.Engine takes beside the path, as a JSON object
device: cpu, cuda, cuda:1, ...; "": the first accelerator there is, else the CPU
dtype: auto (as the weights were saved), float32, bfloat16 or float16
version: of the weights, for the record; "": a hash of them
seed: of the generator that tokens are drawn with
batch: the most sequences that are computed at once
prefix_gb: memory for what conversations have said so far, in GiB; it is computed again where it is not kept
chat_template_kwargs: variables of the chat template, as a JSON object, such as {"enable_thinking": false}
thread: true or false; true: matches go on while tokens are computed, but the same matches make other batches then
"""
"""What each option means, whichever of the agents has it."""
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_PRIORITY = inspect.Parameter("priority", _KEYWORD, default=None, annotation=int | None)
Served = TypeVar("Served", bound=LLMAgent)
_RECORDED = frozenset({"logprobs", "prompt_ids"})  # options that change the record, not the play
_OWN = _RECORDED | {"priority"}


def _fields(struct: type[msgspec.Struct]) -> Iterator[inspect.Parameter]:
    """The fields of a Struct as options; a tuple may be given as a list, as JSON has it, or be a single text."""
    for field in msgspec.structs.fields(struct):
        kind = str | list | tuple if field.name == "stop" else _plain(field.type, field.default)
        yield inspect.Parameter(field.name, _KEYWORD, default=field.default, annotation=kind)


def _plain(annotation: Any, default: Any) -> Any:
    """The type of an option; its class checks which values are allowed, in words that name them."""
    return type(default) if get_origin(annotation) is Literal else annotation


def _signature(model: type[Model], *structs: type[msgspec.Struct]) -> inspect.Signature:
    """The target, the options of the model's own, and the fields of the Structs."""
    target = inspect.Parameter("target", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    own = [
        p.replace(kind=_KEYWORD, annotation=_plain(p.annotation, p.default))
        for name, p in list(inspect.signature(model).parameters.items())[1:]
        if name != "settings"
    ]
    options = [option for struct in structs for option in _fields(struct)]
    return inspect.Signature([target, *own, *options, _PRIORITY])


def _meanings() -> dict[str, str]:
    lines = _MEANINGS.strip().replace("\n    ", " ").splitlines()
    return dict([line.split(": ", 1) for line in lines])


def _described(cls: type[Served]) -> type[Served]:
    """The class with its options in its docstring, as `arena agents` shows them."""
    meanings = _meanings()
    options = [name for name in inspect.signature(cls).parameters if name in meanings]
    cls.__doc__ = "\n".join(
        [inspect.cleandoc(cls.__doc__ or ""), *[f"    {name}: {meanings[name]}" for name in options]]
    )
    return cls


def _taken(struct: type[msgspec.Struct], options: dict[str, Any]) -> dict[str, Any]:
    """The options that are fields of the Struct; they are taken out."""
    return {name: options.pop(name) for name in struct.__struct_fields__ if name in options}


class ServedAgent(LLMAgent):
    """A language model that is named by a spec string."""

    incidental = frozenset(Settings.__struct_fields__) | _OWN | {"session_id"}

    def __init__(self, model: Model, options: dict[str, Any]) -> None:
        """`options`: fields of Prompting and Sampling."""
        prompting, sampling = Prompting(**_taken(Prompting, options)), _taken(Sampling, options)
        stop = sampling.get("stop", ())
        sampling["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
        super().__init__(model, prompting, Sampling(**sampling), options.pop("priority", None))
        if isinstance(model, SGLang | OpenAICompatible):
            self.endpoints = tuple([host_and_port(url) for url in model.transport.urls])

    def standin(self) -> StandIn:
        """See `Agent.standin`."""
        price: Price | None = getattr(self.model, "price", None)
        tokens = "tokens" in self.model.features
        return StandIn(self.prompting, self.sampling, tokens=tokens, price=price.cost if price else None)


def _asked(model: Callable[..., Model], target: str, options: dict[str, Any]) -> Model:
    """The model at the target, made of those options that are its own; they are taken out."""
    own = {name: options.pop(name) for name in inspect.signature(model).parameters if name in options}
    return model(target, **own)


@_described
class SGLangAgent(ServedAgent):
    """A language model served by SGLang: `sglang:http://127.0.0.1:30000?model=qwen`.

    Options:
        target: the server's address; several servers of one model with commas between
    """

    name = "sglang"
    __signature__: ClassVar[inspect.Signature] = _signature(SGLang, Prompting, Sampling, Settings)

    def __init__(self, target: str, **options: Any) -> None:
        self.__signature__.bind(target, **options)
        options["settings"] = Settings(**_taken(Settings, options))
        super().__init__(_asked(SGLang, target, options), options)


@_described
class OpenAIAgent(ServedAgent):
    """A language model behind an OpenAI-compatible API: `openai:https://host/v1?model=NAME&api_key_env=NAME`.

    Options:
        target: the server's address, with or without /v1; several servers of one model with commas between
    """

    name = "openai"
    __signature__: ClassVar[inspect.Signature] = _signature(OpenAICompatible, Prompting, Sampling, Settings)

    def __init__(self, target: str, **options: Any) -> None:
        self.__signature__.bind(target, **options)
        options["settings"] = Settings(**_taken(Settings, options))
        super().__init__(_asked(OpenAICompatible, target, options), options)


@_described
class EngineAgent(ServedAgent):
    """A language model that SGLang runs in this process: `engine:/path/to/model`.

    Options:
        target: the folder of the model
    """

    name = "engine"
    incidental = _OWN
    __signature__: ClassVar[inspect.Signature] = _signature(Engine, Prompting, Sampling)

    def __init__(self, target: str, **options: Any) -> None:
        self.__signature__.bind(target, **options)
        super().__init__(_asked(Engine, target, options), options)


@_described
class LocalAgent(ServedAgent):
    """A language model that transformers runs in this process: `local:/path/to/model`. All matches share its batches.

    Options:
        target: the folder of the model, as save_pretrained writes it
    """

    name = "local"
    incidental = _OWN | {"batch", "device", "prefix_gb", "seed", "thread"}
    __signature__: ClassVar[inspect.Signature] = _signature(Checkpoint, Prompting, Sampling)

    def __init__(self, target: str, **options: Any) -> None:
        self.__signature__.bind(target, **options)
        super().__init__(_asked(Checkpoint, target, options), options)
