"""Policies that can sit down at any game; the registry finds them by their spec strings."""

if __name__ != "arena.agents":  # a flat import would make every class twice
    raise ImportError("import arena.agents, not agents")
