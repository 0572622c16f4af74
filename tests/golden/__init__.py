"""Episodes that must replay for ever."""
