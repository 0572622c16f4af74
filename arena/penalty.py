"""What wrong answers have cost in one episode: who has forfeited, what is played instead, what is paid.

The match loop and all faces share it, so that the same wrong answer costs the same everywhere.
"""

from random import Random

from arena.game import Action, Game, Player
from arena.referee import Referee

__all__ = ["Penalties"]


class Penalties:
    """`forfeits` are the seats that have forfeited, in the order in which they did."""

    __slots__ = ("_rng", "_seed", "ends", "forfeits", "referee")

    forfeits: list[Player]
    _rng: Random | None

    def __init__(self, referee: Referee, seed: int, ends: bool) -> None:
        """`ends`: one forfeit ends this game (`Referee.ends`)."""
        self.referee, self.ends = referee, ends
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """An episode without any yet."""
        self._seed, self._rng, self.forfeits = seed, None, []

    @property
    def over(self) -> bool:
        """A forfeit has ended the game."""
        return self.ends and bool(self.forfeits)

    def wrong(self, game: Game, player: Player) -> Action | None:
        """The seat's last try was wrong: what is played for it, or None where that ends the game."""
        if self.referee.illegal == "forfeit":
            self.forfeits.append(player)
            if self.ends:
                return None
        return self.substitute(game, player)

    def substitute(self, game: Game, player: Player) -> Action:
        """An action for a seat that gives none; drawn from a stream of the episode's own."""
        if self._rng is None:
            self._rng = Random((2 << 64) + self._seed)
        return self.referee.substitute(game, player, self._rng)

    def earned(self, game: Game) -> tuple[float, ...]:
        """The returns as they stand, forfeits settled."""
        return self.referee.settle(game, self.forfeits) if self.forfeits else game.returns()
