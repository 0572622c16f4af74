"""Tournaments: who plays whom, what was played, how good everybody is, and the page that says so. Imports `arena` only.

| what | modules |
|---|---|
| what is asked | `config`, `terms`, `checks`, `identity` |
| who meets whom, and when it ends | `schedule` (blocks and games), `history`, `schedules`, `stopping`, `sprt` |
| playing | `runner`, `supply`, `dispatch`, `window`, `caps`, `budget`, `preflight`, `recorder`, `tally`, `owners` |
| stopping, cleanly or not | `watchdog`, `interrupts` |
| keeping | `store`, `reader`, `database`, `sqlite`, `postgres`, `tables`, `migrations`, `integrity`, `leases` |
| counting what is kept | `counts`, `totals`, `readings`, `scanning`, `rows`, `columns`, `conduct` |
| ratings, of any table of results | `ratings` |
| what a leaderboard says | `board` (the data), `report`, `sections`, `overall`, `scores`, `heat`, `past`, `notes` |
| how it is shown | `site` (pages, replays, a server), `leaderboard` (one page), `downloads`, `listing`, `pgn` |
"""

if __name__ != "arena.tournaments":  # a flat import would make every class twice
    raise ImportError("import arena.tournaments, not tournaments")
