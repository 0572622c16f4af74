"""Served language models: how they are reached, and what each kind of server speaks."""
