"""Examples: whole programs that use the library as anybody can. They are no part of the wheel."""

__all__: list[str] = []
