"""Leduc hold'em.

Rules: F. Southey et al., "Bayes' bluff: opponent modelling in poker", UAI 2005; OpenSpiel `leduc_poker` is the oracle
in the tests. Suits decide nothing, so the cards are shown by rank only.
"""

from functools import cache, lru_cache
from itertools import permutations
from random import Random
from typing import Self

from arena.game import Action, IllegalAction, Player, TurnGame, replace
from arena.games.cards.limit import Node, betting_tree, read, steps

__all__ = ["LeducPoker"]

DECK = "JJQQKK"
RANKS = "JQK"
DEALS = tuple("".join(cards) for cards in permutations(DECK, 3))
ACTIONS = ("check", "raise", "fold", "call")
ANTE = 1
SIZES = (2, 4)
MOST_RAISES = 8
RULES = """Leduc hold'em with 2 players; you are Player {player}.
The deck has 6 cards: two jacks (J), two queens (Q), two kings (K). Each player antes {ante} and is dealt one card, \
unseen by the other. After a first round of betting a board card is opened; after a second round is the showdown: \
who pairs the board card wins, else the higher card (K over Q over J); equal cards share the pot. A player who folds \
loses what he or she has put in, and no card is shown.
Player 0 speaks first in both rounds: check, or raise; facing a raise: fold, call, or raise again. A raise is {first} \
chips on top of the call in round 1 and {second} in round 2. Most raises in one round, both players together: {raises}.
On your turn write one word: check, raise, fold or call.
For example: check
Your return is the chips you win or lose, at most {most}."""


def _winner(deal: str) -> Player | None:
    mine, other, board = tuple(deal)
    if mine == other:
        return None
    if board in (mine, other):
        return 0 if mine == board else 1
    return 0 if RANKS.index(mine) > RANKS.index(other) else 1


WINNER = {deal: _winner(deal) for deal in DEALS}


@cache
def tree(raises: int) -> dict[str, Node]:
    """The betting with at most so many raises a round."""
    return betting_tree(2, SIZES, raises, "raise")


@lru_cache(maxsize=8192)
def seen(raises: int, deal: str, line: str, player: Player) -> str:
    """What the seat sees. All views of the default game are about 4,000."""
    node = tree(raises)[line]
    if node.legal:
        asked = node.ask if player == node.to_act[0] else node.wait
    else:
        asked = f"{node.wait} {_result(node, deal)}"
    first, second = node.paid
    return (
        f"You are Player {player}. Your card: {deal[player]}. Board card: {deal[2] if node.round else 'hidden'}.\n"
        f"{node.said}\nIn the pot: {ANTE + first} of Player 0, {ANTE + second} of Player 1.\n{asked}"
    )


def _result(node: Node, deal: str) -> str:
    if len(node.live) == 1:
        return f"Player {node.live[0]} takes the pot."
    winner = WINNER[deal]
    end = "The pot is shared." if winner is None else f"Player {winner} takes the pot."
    return f"Showdown: Player 0 {deal[0]}, Player 1 {deal[1]}. {end}"


class LeducPoker(TurnGame):
    """Leduc hold'em: a card each, two rounds of betting, and a board card between them.

    Options:
        raises: the most raises in one round, both players together, 1 to 8
    """

    zero_sum = True
    tags = ("cards", "poker", "bluffing")
    players = 2

    raises: int
    deal: str  # the cards of Player 0, Player 1 and the board
    line: str = ""

    @classmethod
    def initial(cls, rng: Random, raises: int = 2) -> Self:
        """Deal a card to each, and the board card face down."""
        if type(raises) is not int or not 1 <= raises <= MOST_RAISES:
            raise ValueError(f"raises={raises!r}: allowed are 1 to {MOST_RAISES}")
        return cls(raises, rng.choice(DEALS))

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return tree(self.raises)[self.line].to_act

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        first, second = SIZES
        most = int(self.reward_range()[1])
        return RULES.format(player=player, ante=ANTE, first=first, second=second, raises=self.raises, most=most)

    def observation(self, player: Player) -> str:
        """Own card, board card when open, betting, chips, what is asked; the other card after a showdown only."""
        return seen(self.raises, self.deal, self.line, player)

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """See `Game.legal_actions`."""
        node = tree(self.raises)[self.line]
        return node.legal if player in node.to_act else ()

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        node = tree(self.raises)[self.line]
        line = node.after.get(action)
        if line is None:
            raise IllegalAction(f"write {' or '.join(node.legal)}" if node.legal else "the hand is over")
        return type(self)(self.raises, self.deal, line)

    def normalize(self, text: str, player: Player) -> Action:
        """See `arena.games.cards.limit.read`."""
        return read(text, self.legal_actions(player))

    def fallback(self, player: Player) -> Action | None:
        """Check, else fold."""
        legal = self.legal_actions(player)
        return next((action for action in ("check", "fold") if action in legal), None)

    def returns(self) -> tuple[float, ...]:
        """Chips won or lost; 0 until the hand is over."""
        node = tree(self.raises)[self.line]
        if node.legal:
            return (0.0, 0.0)
        winner = WINNER[self.deal] if len(node.live) > 1 else node.live[0]
        if winner is None:
            return (0.0, 0.0)
        chips = float(ANTE + node.paid[1 - winner])
        return (-chips, chips) if winner else (chips, -chips)

    def reward_range(self) -> tuple[float, float]:
        """The ante and all raises of both rounds."""
        most = float(ANTE + sum(SIZES) * self.raises)
        return (-most, most)

    def max_turns(self) -> int:
        """In each round a check, all raises and a call."""
        return 2 * (self.raises + 2)

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return 300 + 20 * self.max_turns()

    def max_action(self) -> int:
        """See `Game.max_action`."""
        return 5

    def action_table(self) -> tuple[Action, ...]:
        """See `Game.action_table`."""
        return ACTIONS

    def features(self, player: Player) -> tuple[float, ...]:
        """Seat, own card, board card (one-hot each), share of the stake limit of both, and three numbers an action."""
        node = tree(self.raises)[self.line]
        most = self.reward_range()[1]
        seat = (float(player == 0), float(player == 1))
        card = [float(rank == self.deal[player]) for rank in RANKS]
        board = [float(rank == self.deal[2] and node.round > 0) for rank in RANKS]
        chips = [(ANTE + paid) / most for paid in node.paid]
        return (*seat, *card, *board, *chips, *steps(self.line, 2, self.raises + 2))

    def determinize(self, player: Player, rng: Random) -> Self:
        """The cards that the seat has not seen, dealt anew."""
        node = tree(self.raises)[self.line]
        showdown = not node.legal and len(node.live) == 2
        known = (player == 0 or showdown, player == 1 or showdown, node.round > 0)
        unseen = list(DECK)
        for card, seen in zip(self.deal, known, strict=True):
            if seen:
                unseen.remove(card)
        rng.shuffle(unseen)
        deal = [card if seen else unseen.pop() for card, seen in zip(self.deal, known, strict=True)]
        return replace(self, deal="".join(deal))
