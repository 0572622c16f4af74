"""Settings: how a model is reached."""

import msgspec
import yarl

__all__ = ["Settings", "base_url", "host_and_port", "origin"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is reached. Nothing here changes what it answers, so none of it is part of an agent's identity.

    An endpoint is a base URL: all models of a process (of an event loop, strictly) that name it share its limits
    (`concurrency`, `adaptive`, `requests_per_minute`, `tokens_per_minute`). Where they differ, the lowest one holds as
    long as the model that asks for it has connections open, and `adaptive` holds if anybody wants it.
    """

    concurrency: int = 256
    """Requests in flight at one endpoint."""
    adaptive: bool = False
    """Fewer than `concurrency` while the server says that it is too busy."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retries: int = 5
    """Further attempts at a request that the server was too busy for, or whose connection broke."""
    connect_seconds: float = 10.0
    first_token_seconds: float | None = None
    """The longest wait for the first token; answers are streamed if it is set."""
    call_seconds: float = 600.0
    """The longest wait for the whole answer to one attempt."""
    api_key_env: str = ""
    """The environment variable that holds the key. It is sent to the servers that are named, not to those they name."""
    cache: str = ""
    """A folder where answers at temperature 0 are kept."""
    prices: str = ""
    """A TOML file of prices: see `arena.adapters.models.prices`."""
    input_price: float | None = None
    """Dollars per million tokens, as the two below."""
    cached_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.retries < 0:
            raise ValueError(f"concurrency={self.concurrency}, retries={self.retries}: at least 1 and 0")
        for name in ("requests_per_minute", "tokens_per_minute", "first_token_seconds", "connect_seconds"):
            self._positive(name)
        self._positive("call_seconds")

    def _positive(self, name: str) -> None:
        value: float | None = getattr(self, name)
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name}={value:g}: must be more than 0")


def base_url(text: str) -> str:
    """The address of a server as it is used here. Raises ValueError with what to write instead.

    >>> base_url("http://127.0.0.1:30000/")
    'http://127.0.0.1:30000'
    """
    try:
        url = yarl.URL(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r}: not a server's address ({error})") from error
    if url.user or url.password:
        raise ValueError("a server's address must not hold a password; name the key's variable in api_key_env=")
    if url.scheme not in {"http", "https"} or not url.host or url.query_string or url.fragment:
        raise ValueError(f"{text!r}: a server's address is such as http://127.0.0.1:30000")
    return str(url).rstrip("/")


def origin(url: str) -> str:
    """Scheme, host and port of a base URL: who is meant by it.

    >>> origin("http://host:30000/models/a")
    'http://host:30000'
    """
    return str(yarl.URL(url).origin())


def host_and_port(url: str) -> str:
    """Who answers there, as `Tournament.endpoints` names servers.

    >>> host_and_port("https://api.example.com/v1"), host_and_port("http://127.0.0.1:30000")
    ('api.example.com:443', '127.0.0.1:30000')
    """
    parsed = yarl.URL(url)
    host = parsed.host or ""
    return f"[{host}]:{parsed.port}" if ":" in host else f"{host}:{parsed.port}"
