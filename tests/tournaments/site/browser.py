"""A real Chromium, driven over its DevTools protocol: what it shows, asks for and complains about."""

import asyncio
import base64
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

__all__ = ["Tab", "browser", "found"]

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
    "--no-first-run", "--disable-dev-shm-usage", "--remote-debugging-port=0", "about:blank",
)  # fmt: skip
_KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35}


def found() -> str:
    """Where Chromium is."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path is not None, "install chromium: .ci/apt chromium"
    return path


class Tab:
    """One page. `complaints` are console errors, exceptions and violations; `requests` all addresses asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket, self.number = socket, 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.loaded = asyncio.Event()
        self.listener = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self.socket:
            data = message.json()
            if "id" in data:
                self.waiting.pop(data["id"]).set_result(data)
            else:
                self._heard(data["method"], data["params"])

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded.set()

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol."""
        self.number += 1
        answer = self.waiting[self.number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": self.number, "method": method, "params": params})
        reply = await asyncio.wait_for(answer, 60)
        assert "error" not in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    async def start(self) -> None:
        """Listen to everything."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")

    async def sized(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """A screen of this width; narrow ones are phones with touch."""
        phone = width < 700
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        await self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def open(self, address: str) -> None:
        """Load a page, and forget what was heard before."""
        self.complaints.clear()
        self.requests.clear()
        self.loaded.clear()
        await self.call("Page.navigate", url="about:blank")
        await asyncio.wait_for(self.loaded.wait(), 60)
        self.loaded.clear()
        await self.call("Page.navigate", url=address)
        await asyncio.wait_for(self.loaded.wait(), 60)

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def text(self, selector: str = "main") -> str:
        """What an element shows."""
        return str(await self.run(f"document.querySelector({selector!r}).innerText"))

    async def press(self, key: str) -> None:
        """A key, down and up."""
        for kind in ("rawKeyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key])

    async def swipe(self, selector: str, across: int) -> None:
        """A finger over an element, from its middle."""
        box = await self.run(
            f"(e => {{ e.scrollIntoView(); const b = e.getBoundingClientRect();"
            f" return [b.x + b.width / 2, b.y + 40]; }})(document.querySelector({selector!r}))"
        )
        path = {"touchStart": [[0]], "touchMove": [[across // 2], [across]], "touchEnd": [list[int]()]}
        for kind, points in [(kind, points) for kind, steps in path.items() for points in steps]:
            touches = [{"x": box[0] + moved, "y": box[1]} for moved in points]
            await self.call("Input.dispatchTouchEvent", type=kind, touchPoints=touches)

    async def shot(self, path: Path, *, whole: bool = False) -> Path:
        """A PNG of the screen, or of the whole page."""
        data = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(data["data"]))
        return path


@asynccontextmanager
async def browser() -> AsyncIterator[Tab]:
    """A fresh Chromium with one tab; it is ended afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            found(), f"--user-data-dir={profile}", *_FLAGS, stdout=quiet, stderr=quiet
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort", process)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [page for page in await answer.json() if page["type"] == "page"]
                async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=1 << 28) as socket:
                    tab = Tab(socket)
                    await tab.start()
                    yield tab
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _port(file: Path, process: asyncio.subprocess.Process) -> str:
    """The port Chromium chose."""
    while True:
        assert process.returncode is None, "chromium ended before it could be driven"
        with suppress(FileNotFoundError):
            if "\n" in (text := file.read_text()):
                return text.partition("\n")[0]
        await asyncio.sleep(0.05)
