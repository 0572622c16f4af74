"""Reading zstd files that were appended to, and noticing those that were cut."""

import io
from typing import IO, Any

import zstandard

__all__ = ["Frames"]


class Frames(io.RawIOBase):
    """The decompressed bytes of one zstd frame after another; one that was cut short is an error, not an end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._frame, self._open, self._ready = (
            file,
            zstandard.ZstdDecompressor().decompressobj(),
            False,
            b"",
        )

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`. Raises zstandard.ZstdError for what is no frame or half of one."""
        while not self._ready:
            data = self._file.read(1 << 16)
            if not data:
                if self._open:
                    raise zstandard.ZstdError("it was cut short")
                return 0
            self._ready = self._more(data)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _more(self, data: bytes) -> bytes:
        parts = []
        while data:
            parts.append(self._frame.decompress(data))
            self._open = not self._frame.eof
            data = self._frame.unused_data
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
        return b"".join(parts)
