"""Keys: read from the environment, and kept out of everything that is shown or recorded."""

import os

from arena.model import ModelError

__all__ = ["hide", "key_in", "masked"]

SHORTEST = 4
"""Characters: what is shorter is a placeholder, and part of too many words."""
_hidden: set[str] = set()


def key_in(name: str) -> str:
    """The key that this environment variable holds; from now on it is masked. Raises ModelError."""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ModelError(f"api_key_env={name}: set that environment variable to the key")
    if not (key.isascii() and key.isprintable()):
        raise ModelError(f"api_key_env={name}: that variable holds characters no key has")
    hide(key)
    return key


def hide(key: str) -> None:
    """Mask this key from now on, for as long as the process lives: an answer may come long after the request."""
    if len(key) >= SHORTEST:
        _hidden.add(key)


def masked(text: str) -> str:
    """The text without any of the keys in use."""
    for key in sorted(_hidden, key=len, reverse=True):
        text = text.replace(key, "***")
    return text
