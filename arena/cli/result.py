"""How a game that was played at the terminal ended, in words."""

from collections.abc import Sequence

from arena.game import Game, Player

__all__ = ["outcome", "points"]


def outcome(game: Game, returns: Sequence[float], seat: Player | None) -> str:
    """One sentence: who won, else the rank or what was earned; to the person in `seat`, or to onlookers (None).

    `game` is any position of it: rules and options say what the returns mean.
    """
    if game.players == 1:
        return f"{_who(seat, 0)} {_verb(seat, 0, 'earn')} {_plain(returns[0])} of at most {game.reward_range()[1]:g}."
    if game.players == 2 and game.zero_sum:
        return _duel(returns, seat)
    if (teams := game.teams()) is not None:
        return _battle(returns, teams, seat)
    if seat is None:
        best = [p for p, earned in enumerate(returns) if earned == max(returns)]
        return "All earn the same." if len(best) == game.players else f"{_names(best)} earned the most."
    if game.players == 2:
        return f"You earn {_plain(returns[seat])}, the other player {_plain(returns[1 - seat])}."
    above, tied = sum(r > returns[seat] for r in returns), list(returns).count(returns[seat]) > 1
    return f"You come {_ordinal(above + 1)} of {game.players}{', tied' if tied else ''}."


def points(game: Game, earned: float) -> str:
    """A return as it is shown: with its sign where there may be losses."""
    return f"{earned:+g}" if earned and game.reward_range()[0] < 0 else _plain(earned)


def _plain(earned: float) -> str:
    return f"{earned:.3g}" if abs(earned) < 1 else f"{earned:g}"


def _duel(returns: Sequence[float], seat: Player | None) -> str:
    if returns[0] == returns[1]:
        return "Draw."
    winner = 0 if returns[0] > returns[1] else 1
    if seat is None:
        return f"Player {winner} wins."
    return "You win." if seat == winner else "You lose."


def _battle(returns: Sequence[float], teams: Sequence[int], seat: Player | None) -> str:
    best = max(returns)
    if min(returns) == best:
        return "Draw."
    if seat is None:
        return f"{_names([p for p, earned in enumerate(returns) if earned == best])} won."
    return f"Your team {'wins' if returns[seat] == best else 'loses'}."


def _who(seat: Player | None, player: Player) -> str:
    return "You" if seat == player else f"Player {player}"


def _verb(seat: Player | None, player: Player, verb: str) -> str:
    return verb if seat == player else f"{verb}s"


def _names(players: Sequence[Player]) -> str:
    if len(players) == 1:
        return f"Player {players[0]}"
    return f"Players {', '.join(map(str, players[:-1]))} and {players[-1]}"


def _ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    last = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{last}"
