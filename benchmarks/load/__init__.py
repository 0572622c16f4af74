"""Language models at the table under load: thousands of matches at once at a light fake server in a process of its own.

Each side of a comparison runs in its own process: `arena_side` (ours), `client_side` (the same calls made alone by the
same client), `floor_side` (bare aiohttp), `verifiers_side` and `inspect_side` (peers, in their own environment).
"""
