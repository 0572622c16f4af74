"""Other people's worlds: what Arena needs of another library is imported here and nowhere else."""

if __name__ != "arena.adapters":  # a flat import would make every class twice
    raise ImportError("import arena.adapters, not adapters")
