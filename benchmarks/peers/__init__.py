"""Facts about Arena and its peers, each found by code that runs now: `python -m benchmarks.peers`.

One module a library, one function a fact. A library is checked in a process of its own, which may be another
interpreter (`--python verifiers=/path/to/python`), and one that is not there is "not installed".
"""
