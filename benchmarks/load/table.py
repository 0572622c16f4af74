"""The load benchmark's seats: two served models at one fake server, by one of the two routes."""

from arena.tournaments.config import Tournament, parse
from benchmarks.load.game import known

__all__ = ["ROUTES", "seats", "tournament"]

ROUTES = ("native", "chat")


def seats(route: str, url: str, **options: object) -> list[str]:
    """The spec strings of two agents; `options` are of both."""
    if route not in ROUTES:
        raise ValueError(f"route={route}: allowed are {', '.join(ROUTES)}")
    name, base = ("sglang", url) if route == "native" else ("openai", f"{url}/v1")
    given = ({} if route == "native" else {"extras": "openai"}) | options
    query = "".join([f"&{key}={value}" for key, value in given.items()])
    return [f"{name}:{base}?model={model}{query}" for model in ("left", "right")]


def tournament(route: str, url: str, matches: int, voids: int = 0, **options: object) -> Tournament:
    """So many matches of those two, all at once; a void one is played again `voids` times."""
    return parse(
        {
            "games": [known()],
            "agents": seats(route, url, **options),
            "blocks": max(matches // 2, 1),
            "concurrency": matches,
            "void_limit": 1.0,
            "void_retries": voids,
        }
    )
