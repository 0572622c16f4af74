"""Games of talk, roles and votes."""
