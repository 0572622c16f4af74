"""The leaderboard as a site: pages that open from disk, and the same ones live."""
