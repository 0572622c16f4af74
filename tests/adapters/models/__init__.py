"""Tests of served models, their transport included."""
