"""The version, in the one place that need not import anything."""

__all__ = ["__version__"]

__version__ = "0.1.0"
