"""Who meets whom, the store of finished games, ratings and the leaderboard."""

if __name__ != "arena.tournaments":  # a flat import would make every class twice
    raise ImportError("import arena.tournaments, not tournaments")
