"""LocalModel: a transformers model in this process, asked by any number of matches at once: their requests are batched.

`LocalModel(model, tokenizer)` is for a model that is here already (one that is being trained); `Checkpoint(path)` loads
a folder when it is first asked, which agents do that are named `local:PATH`. Needs the extra `train`.
"""

import asyncio
import copy
import importlib
import importlib.util
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from arena.adapters.models.batches import Batcher
from arena.adapters.models.failures import one_line
from arena.adapters.models.native import template_message
from arena.adapters.models.sglang_info import PROBE_TALK, PROBE_TEXT, hash_of
from arena.model import (
    Completion,
    ContextOverflow,
    Feature,
    Message,
    Model,
    ModelError,
    ModelInfo,
    Request,
    Sampling,
    Scores,
    logprob_kind,
)
from arena.text import clean

if TYPE_CHECKING:
    from arena.adapters.models.generating import Drawn, Generator, Question

__all__ = ["Checkpoint", "LocalModel"]

FEATURES: frozenset[Feature] = frozenset({"tokens", "logprobs", "score", "n"})
_RENDERED = 4096  # conversations whose tokens are kept: games begin alike
_WEIGHTS = ("*.safetensors", "*.bin")


class LocalModel(Model):
    """A model in this process.

    Requests that wait at the same time are one batch, in the event loop that asks: it waits while tokens are computed.
    """

    features = FEATURES

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "",
        version: str = "",
        seed: int = 0,
        batch: int = 256,
        prefix_gb: float = 1.0,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        thread: bool = False,
    ) -> None:
        """`model`: a causal language model of transformers, wherever it is; `tokenizer`: its own, with a chat template.

        `version`: of the weights, recorded with every answer; set the attribute when they change. `seed`: of the
        generator that tokens are drawn with. `batch`: the most sequences computed at once. `prefix_gb`: memory for what
        conversations have said so far, so that it is not computed again at each turn. `thread`: compute in a thread, so
        that the event loop goes on; the same games then no longer make the same batches.
        """
        self._set(batch, prefix_gb, chat_template_kwargs)
        self.version, self.seed, self.thread = version, seed, thread
        self.name = name or str(getattr(model.config, "name_or_path", "") or type(model).__name__)
        self._host: _Host | None = _Host(model, tokenizer, seed, batch, thread, self.prefix_bytes)

    def _set(self, batch: int, prefix_gb: float, chat_template_kwargs: Mapping[str, Any] | None) -> None:
        if batch < 1 or not prefix_gb >= 0:
            raise ValueError(f"batch={batch}, prefix_gb={prefix_gb:g}: at least 1 and 0")
        self.prefix_bytes = int(prefix_gb * 2**30)
        self.batch, self.variables = batch, dict(chat_template_kwargs or {})
        self._rendered: dict[tuple[tuple[Message, ...], bool], tuple[int, ...]] = {}

    async def _open(self) -> "_Host":
        raise ModelError(f"{self.name}: there is no model")

    def copy(self) -> "LocalModel":
        """A model with these weights, which stay as they are now. Raises ModelError before they are loaded."""
        if self._host is None:
            raise ModelError(f"{self.name}: not loaded yet")
        model = copy.deepcopy(self._host.model).requires_grad_(False)
        options: dict[str, Any] = {"seed": self.seed, "batch": self.batch, "thread": self.thread}
        options["prefix_gb"] = self.prefix_bytes / 2**30
        options |= {"name": self.name, "version": self.version, "chat_template_kwargs": self.variables}
        return LocalModel(model, self._host.tokenizer, **options)

    def forget(self) -> None:
        """Let go of what conversations have said so far. It happens by itself once an optimizer has changed weights;
        after other changes (`parameter.data`, an adapter that is switched) say it here."""
        if self._host is not None:
            self._host.generator.prefixes.forget()

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        """The answers. Raises ModelError; ContextOverflow where they do not fit; ValueError for half a request."""
        if bool(request.messages) is bool(request.prompt_ids):
            raise ValueError("a request has either messages or prompt_ids")
        if request.constraint is not None:
            raise ModelError(
                f"{self.name} cannot hold answers to a {request.constraint.kind}: use decode=score or free"
            )
        host = self._host or await self._open()
        prompt = request.prompt_ids or await self.render(request.messages, request.tools)
        host.check(prompt, request.sampling.max_tokens, self.name)
        began = time.perf_counter()
        asked = host.asked(prompt, request.sampling, request.affinity)
        answers = await asyncio.gather(*[host.draws.answer(asked) for _ in range(request.n)])
        seconds = time.perf_counter() - began
        return tuple([self._completion(host, request, prompt, drawn, seconds) for drawn in answers])

    def _completion(
        self, host: "_Host", request: Request, prompt: tuple[int, ...], drawn: "Drawn", seconds: float
    ) -> Completion:
        return Completion(
            text=host.text(drawn.ids, special=bool(request.tools)),
            finish="stop" if drawn.finished else "length",
            ids=drawn.ids,
            logprobs=drawn.logprobs,
            logprob_kind=logprob_kind(request.sampling, None),
            usage={
                "prompt_tokens": len(prompt),
                "cached_tokens": drawn.cached,
                "completion_tokens": len(drawn.ids),
                "seconds": seconds,
            },
            weight_versions=((0, self.version),) if self.version else (),
        )

    async def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, reply: bool = True
    ) -> tuple[int, ...]:
        """The tokens of a conversation by the tokenizer's chat template. Raises ModelError with its objections."""
        host = self._host or await self._open()
        plain = not tools and not any(message.tool_calls for message in messages)
        key = (tuple(messages), reply)
        if plain and key in self._rendered:
            return self._rendered[key]
        ids = host.render(messages, tools, reply, self.variables, self.name)
        if plain:
            if len(self._rendered) >= _RENDERED:
                self._rendered.clear()
            self._rendered[key] = ids
        return ids

    async def encode(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The tokens of plain texts, no special token added."""
        host = self._host or await self._open()
        return tuple([host.encode(clean(text)) for text in texts])

    async def score(
        self,
        prompt_ids: Sequence[int],
        answers: Sequence[Sequence[int]],
        affinity: str = "",
        priority: int | None = None,
    ) -> Scores:
        """The raw log-probability of every token of each answer."""
        if not prompt_ids:
            raise ValueError("answers are scored after a prompt of at least one token")
        host = self._host or await self._open()
        prompt, wanted = tuple(prompt_ids), [tuple(answer) for answer in answers]
        left = list(dict.fromkeys(answer for answer in wanted if answer))
        for answer in left:
            host.check(prompt + answer, 0, self.name)
        began = time.perf_counter()
        rows = await asyncio.gather(*[host.scores.answer((prompt, answer, affinity)) for answer in left])
        known = dict(zip(left, rows, strict=True)) | {(): ()}
        count = sum(map(len, left))
        usage = {"prompt_tokens": len(prompt) * len(left) + count, "cached_tokens": 0, "scored_tokens": count}
        return Scores(tuple([known[answer] for answer in wanted]), {**usage, "seconds": time.perf_counter() - began})

    def policy(self) -> dict[str, Any]:
        """See `Model.policy`."""
        return {"chat_template_kwargs": self.variables} if self.variables else {}

    async def info(self) -> ModelInfo:
        """What it is. Raises ModelError where it cannot be loaded."""
        host = self._host or await self._open()
        return ModelInfo(
            model=self.name,
            server=f"transformers {host.library} in process",
            context=host.context,
            weight_version=self.version,
            tokenizer_hash=hash_of((await self.encode([PROBE_TEXT]))[0]),
            template_hash=hash_of(await self.render(PROBE_TALK)),
            features=tuple(sorted(self.features)),
            details=host.details,
        )


class Checkpoint(LocalModel):
    """A model in a folder, as `save_pretrained` writes it, loaded when it is first asked.

    Those that name the same folder in one process share the weights, and their requests are batched together.
    """

    def __init__(
        self,
        path: str,
        *,
        device: str = "",
        dtype: str = "auto",
        version: str = "",
        seed: int = 0,
        batch: int = 256,
        prefix_gb: float = 1.0,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        thread: bool = False,
    ) -> None:
        """`device`: as torch names it; "": the first accelerator, else the CPU. `dtype`: auto (as it was saved),
        float32, bfloat16 or float16. `version`: of the weights; "": a hash of them. The others: see LocalModel.

        Raises ValueError for a path that is no such folder, and where torch or transformers are missing.
        """
        self._set(batch, prefix_gb, chat_template_kwargs)
        if dtype not in ("auto", "float32", "bfloat16", "float16"):
            raise ValueError(f"dtype={dtype!r}: allowed are auto, float32, bfloat16, float16")
        self.path = _folder(path)
        _check_installed()
        self.name, self.version, self.seed, self.thread = path, version, seed, thread
        self.device, self.dtype = device, dtype
        self._host, self._lock = None, threading.Lock()

    async def _open(self) -> "_Host":
        return await asyncio.to_thread(self._load)

    def _load(self) -> "_Host":
        with self._lock:
            if self._host is None:
                self.version = self.version or _fingerprint(self.path)
                self._host = _Host.shared(self)
            return self._host


class _Host:
    """A model and its tokenizer, and the batches of those who ask them."""

    def __init__(self, model: Any, tokenizer: Any, seed: int, batch: int, thread: bool, prefix_bytes: int) -> None:
        generating = importlib.import_module("arena.adapters.models.generating")
        self.model, self.tokenizer = model, tokenizer
        self.library = importlib.import_module("transformers").__version__
        config = model.config.get_text_config()
        self.context = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.vocabulary = int(model.get_input_embeddings().num_embeddings)
        self.ends = _ends(model, tokenizer)
        self.asked: Callable[[tuple[int, ...], Sampling, str], Question] = generating.Question
        self.generator: Generator = generating.Generator(
            model, tokenizer, self.ends, seed=seed, batch=batch, cache=prefix_bytes
        )
        self.draws: Batcher[Question, Drawn] = Batcher(self.generator.draw, thread=thread)
        self.scores: Batcher[tuple[tuple[int, ...], tuple[int, ...], str], tuple[float, ...]] = Batcher(
            self.generator.score, thread=thread
        )

    @classmethod
    def shared(cls, of: Checkpoint) -> "_Host":
        """The host of a checkpoint, which others may hold already. Raises ModelError where it cannot be loaded."""
        key = (str(of.path.resolve()), of.version, of.device, of.dtype, of.seed, of.batch, of.thread, of.prefix_bytes)
        with _LOADING:
            host = _LOADED.get(key)
            if host is None:
                host = _LOADED[key] = _loaded(of)
            return host

    @property
    def details(self) -> dict[str, str]:
        """What is worth showing."""
        first = next(self.model.parameters())
        count = sum(parameter.numel() for parameter in self.model.parameters())
        return {
            "class": type(self.model).__name__,
            "parameters": f"{count:,}",
            "dtype": str(first.dtype).removeprefix("torch."),
            "device": str(first.device),
        }

    def check(self, prompt: Sequence[int], room: int, name: str) -> None:
        """Raises ContextOverflow where it does not fit, ModelError for tokens that are not this model's."""
        if self.context and len(prompt) + room > self.context:
            raise ContextOverflow(
                f"{name}: a prompt of {len(prompt)} tokens and an answer of {room} need more than {self.context}"
            )
        if min(prompt) < 0 or max(prompt) >= self.vocabulary:
            raise ModelError(f"{name}: the prompt has tokens of another model: ids are 0 to {self.vocabulary - 1}")

    def text(self, ids: tuple[int, ...], *, special: bool) -> str:
        """What an answer says; its end token is no part of it."""
        said = ids[:-1] if ids and ids[-1] in self.ends else ids
        return clean(self.tokenizer.decode(said, skip_special_tokens=not special, clean_up_tokenization_spaces=False))

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a text."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        reply: bool,
        variables: Mapping[str, Any],
        name: str,
    ) -> tuple[int, ...]:
        """The tokens of a conversation. Raises ModelError with the template's objections."""
        try:
            text = self.tokenizer.apply_chat_template(
                [template_message(message) for message in messages],
                tools=list(tools) or None,
                add_generation_prompt=reply,
                tokenize=False,
                **variables,
            )
        except (ValueError, TypeError, importlib.import_module("jinja2").TemplateError) as error:
            raise ModelError(f"{name}: the chat template refuses: {one_line(str(error))}") from None
        return self.encode(text)


_LOADED: WeakValueDictionary[tuple[Any, ...], _Host] = WeakValueDictionary()
_LOADING = threading.Lock()


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end an answer, as the model and its tokenizer name them."""
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    several = named if isinstance(named, list | tuple) else [named]
    return frozenset(end for end in (*several, tokenizer.eos_token_id) if end is not None)


def _folder(path: str) -> Path:
    """The folder of a model. Raises ValueError with what is expected there."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ValueError(f"there is no folder {path!r}: name one that save_pretrained wrote (config.json, weights)")
    if not (folder / "config.json").is_file():
        raise ValueError(f"{path!r} is no model: a config.json is expected, the weights and the tokenizer's files")
    if not any(next(folder.glob(pattern), None) for pattern in _WEIGHTS):
        raise ValueError(f"{path!r} has no weights: {' or '.join(_WEIGHTS)} are expected beside its config.json")
    return folder


def _fingerprint(folder: Path) -> str:
    """16 hexadecimal digits that stand for the weights: a folder may be written again with others."""
    found = blake2b(digest_size=8)
    for path in sorted({path for pattern in _WEIGHTS for path in folder.glob(pattern)}):
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    return found.hexdigest()


def _check_installed() -> None:
    """Raises ValueError. They are imported when the model is loaded, as that takes seconds."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"local: needs {' and '.join(missing)}: pip install 'gymnasium-arena[train]'")


def _loaded(of: Checkpoint) -> _Host:
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    device = of.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(of.path, local_files_only=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(of.path, dtype=of.dtype, local_files_only=True)
        return _Host(model.to(device), tokenizer, of.seed, of.batch, of.thread, of.prefix_bytes)
    except Exception as error:  # a folder may be broken in any way: it is told as whose it is
        raise ModelError(f"{of.name} cannot be loaded: {one_line(str(error)) or type(error).__name__}") from error
