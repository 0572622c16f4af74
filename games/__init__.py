"""Rules, nothing else: each module is one game (or a family), a value that `arena.game` describes."""

if __name__ != "arena.games":  # a flat import would make every class twice
    raise ImportError("import arena.games, not games")
