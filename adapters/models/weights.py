"""The servers behind a model's endpoints, and the weights they hold: what a trainer steers between its steps.

Source: SGLang 0.5.23 (server code; in-flight updates were measured on a real server).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import msgspec

from arena.adapters.models.failures import one_line
from arena.adapters.models.once import Once
from arena.adapters.models.transport import Answered, Settings, Transport, base_url
from arena.model import ModelError

__all__ = ["Fleet", "Weights", "post_json"]

Told = TypeVar("Told")
Pause = Literal["in_place", "retract", "abort"]

post_json = msgspec.json.encode


class _Worker(msgspec.Struct, frozen=True):
    url: str


class _Workers(msgspec.Struct, frozen=True):
    workers: list[_Worker] = []


class _Said(msgspec.Struct, frozen=True):
    success: bool = True
    message: str = ""


class _Version(msgspec.Struct, frozen=True):
    weight_version: str | None = None


def _told(body: bytes, url: str, kind: type[Told]) -> Told:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{url}: not what SGLang answers ({error}): is it an SGLang server?") from None


class Fleet:
    """The servers themselves: the endpoints, or the workers where an endpoint is a router.

    sglang-router (0.3.2) has no /tokenize and no /abort_request, and its /health is 200 before any worker is ready; the
    workers it lists under /workers are asked directly. Everybody must be able to reach them.
    """

    def __init__(self, transport: Transport, settings: Settings) -> None:
        self.transport = transport
        self.settings = settings
        self._behind: dict[str, tuple[str, ...]] = {}
        self._direct: Transport | None = None
        self._finding = Once[Transport]()

    async def behind(self, endpoint: str, retries: int | None = None) -> tuple[str, ...]:
        """The servers behind one endpoint: itself, or a router's workers. Raises ModelError where it has none."""
        known = self._behind.get(endpoint)
        if known is None:
            known = self._behind[endpoint] = await self._ask_behind(endpoint, retries)
        return known

    async def _ask_behind(self, endpoint: str, retries: int | None) -> tuple[str, ...]:
        try:
            answered = await self.transport.get("/workers", url=endpoint, retries=retries)
        except ModelError as error:
            if error.status in (404, 405):  # a server has no such path, only a router has
                return (endpoint,)
            raise
        try:
            urls = [base_url(worker.url) for worker in msgspec.json.decode(answered.body, type=_Workers).workers]
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            what = f"{endpoint}: /workers is not a router's list of workers ({one_line(str(error))})"
            raise ModelError(f"{what}: is it an SGLang server, or its router?") from None
        if not urls:
            raise ModelError(f"{endpoint}: a router without workers: wait until they are up, or add one")
        return tuple(urls)

    async def routed(self) -> bool:
        """Whether a router is in front of any server."""
        return any([await self.behind(endpoint) != (endpoint,) for endpoint in self.transport.urls])

    async def direct(self, retries: int | None = None) -> Transport:
        """What asks the servers themselves. They do not get the key, unless they are at an origin that was named."""
        if self._direct is None:
            return await self._finding.result(lambda: self._find(retries))
        return self._direct

    async def _find(self, retries: int | None) -> Transport:
        named = self.transport.urls
        found = await asyncio.gather(*[self.behind(endpoint, retries) for endpoint in named])
        urls = tuple([url for behind in found for url in behind])
        self._direct = self.transport if urls == named else Transport.shared(urls, self.settings, named=named)
        return self._direct

    async def refresh(self) -> None:
        """See whether routers have other workers by now, so that none is left out."""
        found = await asyncio.gather(*[self._ask_behind(endpoint, None) for endpoint in self.transport.urls])
        if any(self._behind.get(url, now) != now for url, now in zip(self.transport.urls, found, strict=True)):
            await self.forget()

    async def forget(self) -> None:
        """Ask the routers anew for their workers, next time."""
        stale, self._direct = self._direct, None
        self._behind.clear()
        if stale is not None and stale is not self.transport:
            await stale.close()

    async def any(self, path: str, body: bytes) -> Answered:
        """POST to any of the servers; where a router's workers have changed, to one of the new ones."""
        direct = await self.direct()
        try:
            return await direct.post(path, body)
        except ModelError as error:
            if direct is self.transport or error.status:
                raise
            await self.forget()
            return await (await self.direct()).post(path, body)

    async def each(self, path: str, body: bytes | None = None, *, retries: int | None = None) -> dict[str, bytes]:
        """POST (or GET) at every server; the answers by server. Raises the first ModelError when all are done."""
        direct = await self.direct(retries)
        asked = [
            direct.get(path, url=u, retries=retries)
            if body is None
            else direct.post(path, body, url=u, retries=retries)
            for u in direct.urls
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return {
            url: answer.body for url, answer in zip(direct.urls, answers, strict=True) if isinstance(answer, Answered)
        }

    async def abort(self, rids: Sequence[str], endpoint: str) -> None:
        """Abort requests at that endpoint; behind a router, at all its workers, as any may have them."""
        direct, servers = await self.direct(), await self.behind(endpoint)
        said = [direct.notify("/abort_request", post_json({"rid": rid}), url) for url in servers for rid in rids]
        await asyncio.gather(*said)

    async def close(self) -> None:
        """Close the connections to workers; the endpoints' belong to the model."""
        await self._finding.stop()
        await self.forget()


class Weights:
    """Updating the weights of the servers behind a model, while it is playing or between games.

    Every method goes to all servers, and raises ModelError if one of them did not do it.
    """

    fleet: Fleet

    async def flush_cache(self) -> None:
        """Empty the prefix caches. Servers with requests running refuse."""
        await self.fleet.each("/flush_cache", b"{}")

    async def weight_version(self) -> str:
        """The version the servers say they hold. ModelError where they do not agree."""
        found = await self.fleet.each("/model_info")
        versions = {_told(body, url, _Version).weight_version or "" for url, body in found.items()}
        if len(versions) > 1:
            raise ModelError(f"the servers hold different weights: {one_line(', '.join(sorted(versions)))}: update all")
        return versions.pop()

    async def pause(self, mode: Pause = "in_place") -> None:
        """Stop generating.

        in_place: requests wait with the cache they have. retract: they wait, and their prompts are computed anew
        afterwards. abort: they end, with the tokens there are (finish "abort"). New requests wait in every mode; a
        server that is never resumed answers nobody.
        """
        await self.fleet.each("/pause_generation", post_json({"mode": mode}))

    async def resume(self) -> None:
        """Go on generating."""
        await self.fleet.each("/continue_generation", b"{}")

    async def update_weights(
        self,
        path: str,
        version: str,
        *,
        in_flight: bool = True,
        recompute: bool = False,
        abort: bool = False,
        load_format: str = "",
        token_step: int = 0,
    ) -> None:
        """Load weights from a folder that the servers can read; answers say from which token on they are the new ones.

        `in_flight`: answers being written are stopped, and go on with the new weights (their `weight_versions` then
        have two spans). Their cache, and the prefix caches others use later, are still of the old weights unless
        `recompute` (slower). Not `in_flight`: the servers finish what they have begun first, and then empty their
        caches. Nothing is aborted, unless `abort`: then answers end with the tokens there are, which truncates their
        matches. `load_format`: how the weights are stored, as servers name it ("": they look). `token_step`: the
        trainer's step, which the servers keep. From then on a server calls itself after `path`; records name it by
        what it was started as.

        Where one of several servers fails the others hold the new weights: `weight_version` says so, and so does the
        error. Source: SGLang 0.5.23; in place measured (0.13 s for 135 million parameters on a CPU).
        """
        if abort and recompute:
            raise ValueError("abort, recompute: allowed is one of them, as nothing is left to be computed anew")
        body = {
            "model_path": path,
            "weight_version": version,
            "flush_cache": recompute or abort or not in_flight,
            "abort_all_requests": abort,
            **({"load_format": load_format} if load_format else {}),
            **({"token_step": token_step} if token_step else {}),
        }
        await self.fleet.refresh()
        if abort or not in_flight:
            await self._load(body)
            return
        try:
            await self.pause("retract" if recompute else "in_place")
            await self._load(body)
        finally:
            await self.resume()

    async def _load(self, body: dict[str, Any]) -> None:
        for url, said in (await self.fleet.each("/update_weights_from_disk", post_json(body))).items():
            result = _told(said, url, _Said)
            if not result.success:
                raise ModelError(
                    f"{url}: the weights in {body['model_path']} were not loaded: {one_line(result.message)}"
                )
