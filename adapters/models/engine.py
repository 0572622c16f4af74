"""SGLang in this process: its offline engine, without a server between. Needs SGLang installed, and what it runs on.

Source: `sglang.Engine` of SGLang 0.5.23.
"""

import asyncio
import importlib
import importlib.util
import json
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from arena.adapters.models.extra import Extra
from arena.adapters.models.failures import one_line
from arena.adapters.models.native import FEATURES, Native, rids_of, template_message
from arena.adapters.models.sglang_info import PROBE_TALK, PROBE_TEXT, hash_of, shown
from arena.adapters.models.sglang_wire import Answer, Generate, answer_of, refused
from arena.model import Message, ModelError, ModelInfo
from arena.text import clean

__all__ = ["Engine"]

Result = TypeVar("Result")


def _check_installed() -> None:
    """Raises ValueError. SGLang itself is imported when it is needed, as that takes many seconds."""
    if importlib.util.find_spec("sglang") is None:
        raise ValueError(
            "SGLang is not installed here: install it for your device (docs.sglang.ai), "
            "or serve the model elsewhere and name it as sglang:http://..."
        )


class Engine(Native):
    """A model in this process.

    It is loaded when it is first asked (a script that does so needs `if __name__ == "__main__":`, as SGLang spawns
    processes), in a thread of its own with an event loop of its own, so that it may be asked from any. SGLang's own
    shutdown ends every child of this process, whosever it is: `close` it last. Importing SGLang makes uvloop the event
    loop of whatever `asyncio.run` comes later.
    """

    def __init__(
        self,
        path: str,
        *,
        logprobs: bool = True,
        lora_path: str = "",
        extra: Mapping[str, Any] | None = None,
        server_args: Mapping[str, Any] | None = None,
    ) -> None:
        """`path`: folder of the model. `server_args`: what `sglang.Engine` takes beside it, such as `dtype`.

        `extra`: further fields, see `arena.adapters.models.extra`. Raises ValueError, also where there is no SGLang.
        """
        super().__init__()
        _check_installed()
        self.path = self.name = path
        self.features = FEATURES if logprobs else FEATURES - {"logprobs"}
        self.logprobs, self.lora_path, self.extra = logprobs, lora_path, Extra.of(extra)
        self._given = dict(server_args or {})
        self.server_args = {"log_level": "error", **self._given}
        self._host: _Host | None = None
        self._lock = threading.Lock()

    def policy(self) -> dict[str, Any]:
        """See `Model.policy`."""
        return super().policy() | ({"server_args": self._given} if self._given else {})

    async def _ask(self, body: Generate, affinity: str, tokens: int) -> list[Answer]:
        host = await self._loaded()
        asked = msgspec.json.decode(msgspec.json.encode(body))  # lists, where tuples would not be taken
        try:
            return answer_of(await host.run(host.engine.async_generate(**asked)), self.name)
        except asyncio.CancelledError:
            for rid in rids_of(body):
                host.call(host.engine.tokenizer_manager.abort_request, rid)
            raise
        except ValueError as error:
            raise refused(str(error), self.name) from None
        except importlib.import_module("fastapi").HTTPException as error:  # how an abort with a status is raised
            raise refused(str(error.detail), self.name) from None

    async def _loaded(self) -> "_Host":
        host = self._host
        return host if host is not None else await asyncio.to_thread(self._load)

    def _load(self) -> "_Host":
        with self._lock:
            host = self._host or _Host(self.path, self.server_args)
            self._host = host
            return host

    async def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, reply: bool = True
    ) -> tuple[int, ...]:
        """The tokens of a conversation by the model's chat template. Raises ModelError with its objections."""
        tokenizer = (await self._loaded()).engine.tokenizer_manager.tokenizer
        try:
            text = tokenizer.apply_chat_template(
                [_for_template(message) for message in messages],
                tools=list(tools) or None,
                add_generation_prompt=reply,
                tokenize=False,
                **self.extra.variables,
            )
        except (ValueError, TypeError, importlib.import_module("jinja2").TemplateError) as error:
            raise refused(str(error), self.name) from None
        return tuple(tokenizer.encode(text, add_special_tokens=False))

    async def encode(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The tokens of plain texts, no special token added."""
        tokenizer = (await self._loaded()).engine.tokenizer_manager.tokenizer
        return tuple([tuple(tokenizer.encode(clean(text), add_special_tokens=False)) for text in texts])

    async def info(self) -> ModelInfo:
        """What the engine runs. Raises ModelError where it cannot be loaded."""
        host = await self._loaded()
        manager, told = host.engine.tokenizer_manager, host.engine.get_model_info()
        return ModelInfo(
            model=self.path,
            server=f"SGLang {importlib.import_module('sglang').__version__} in process",
            context=int(manager.model_config.context_len),
            weight_version=str(told.get("weight_version") or ""),
            tokenizer_hash=hash_of((await self.encode([PROBE_TEXT]))[0]),
            template_hash=hash_of(await self.render(PROBE_TALK)),
            features=tuple(sorted(self.features)),
            details=shown({**manager.server_args.resolved_dict(), **told}),
        )

    async def close(self) -> None:
        """End the engine and its processes."""
        host, self._host = self._host, None
        if host is not None:
            await asyncio.to_thread(host.close)


class _Host:
    """The engine, and the thread and event loop it was made in and lives in."""

    def __init__(self, path: str, server_args: Mapping[str, Any]) -> None:
        self.engine: Any = None
        self._failed: BaseException | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, args=(path, server_args), name="sglang engine", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            why = one_line(str(self._failed)) or type(self._failed).__name__
            raise ModelError(f"{path} cannot be loaded: {why}") from self._failed

    def _live(self, path: str, server_args: Mapping[str, Any]) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        try:
            self.engine = importlib.import_module("sglang").Engine(model_path=path, **server_args)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits for the engine
            self._failed = error
            return
        finally:
            self._ready.set()
        self.loop.run_forever()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of something that must run in the engine's loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def call(self, function: Callable[..., object], *args: object) -> None:
        """Have the engine's loop call a function."""
        self.loop.call_soon_threadsafe(function, *args)

    def close(self) -> None:
        """End it."""
        self.engine.shutdown()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


def _for_template(message: Message) -> dict[str, Any]:
    """Templates expect a call's arguments as an object, where OpenAI writes them as text."""
    made = template_message(message)
    made["tool_calls"] = [_call(call) for call in made.get("tool_calls", ())]
    return made if made["tool_calls"] else {key: value for key, value in made.items() if key != "tool_calls"}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    if isinstance(function.get("arguments"), str):
        try:
            function["arguments"] = json.loads(function["arguments"])
        except ValueError as error:
            raise ModelError(f"the arguments of a tool call are not JSON: {error}") from None
    return {**call, "function": function}
