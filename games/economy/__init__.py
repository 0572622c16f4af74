"""Bargaining and social dilemmas."""
