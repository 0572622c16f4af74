"""The leaderboard as a site: pages that open from disk, and the same ones live.

`write_site` makes a folder. A server makes the same pages with `page`, `games_page` and `replay_page`, which are pure;
`live` names the address of its server-sent events, and at each event `change` an open page fetches itself anew.
"""

from arena.tournaments.site.folder import write_site
from arena.tournaments.site.games import games_page
from arena.tournaments.site.pages import one_page, page, parts
from arena.tournaments.site.replay import replay_page

__all__ = ["games_page", "one_page", "page", "parts", "replay_page", "write_site"]
