"""Question families with a verifier."""
