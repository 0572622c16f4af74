"""Word games and their lists."""
