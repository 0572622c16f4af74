"""Kuhn poker, and its generalisation to more seats.

Rules: H. W. Kuhn, "A simplified two-person poker", *Contributions to the Theory of Games I* (1950), 97-103, who also
varies ante and bet; N. Abou Risk & D. Szafron, "Using counterfactual regret minimization to create competitive
multiplayer poker agents", AAMAS 2010, for more seats. OpenSpiel `kuhn_poker` is the oracle in the tests.
"""

from functools import cache, lru_cache
from itertools import permutations
from random import Random
from typing import Self

from arena.game import Action, IllegalAction, Player, TurnGame, replace
from arena.games.cards.limit import Node, betting_tree, read, steps

__all__ = ["KuhnPoker"]

RANKS = "3456789TJQK"
STRENGTH = {rank: i for i, rank in enumerate(RANKS)}
DEALS = tuple("".join(cards) for cards in permutations("JQK", 2))
ACTIONS = ("check", "bet", "fold", "call")
CHIPS = 1000
RULES = """Kuhn poker with {players} players; you are Player {player}.
The deck has {cards} cards, low to high: {deck}. Each player antes {ante} and is dealt one card, unseen by the others.
The players act in order, Player 0 first, once each: check, or bet {bet}. After a bet every other player, in order, \
calls ({bet} more) or folds; nobody may raise. Then the highest card among those who have not folded takes the pot; \
if all check, it is the highest of all. Cards are shown only if at least two players have not folded.
On your turn write one word: check or bet; after a bet: fold or call.
For example: check
Your return is the chips you win (the pot less what you paid) or lose, at most {loss}."""


@cache
def tree(players: int) -> dict[str, Node]:
    """The betting of so many seats."""
    return betting_tree(players, (1,), 1, "bet")


def winner(node: Node, cards: str) -> Player:
    """The seat that takes the pot: the highest card among those who have not folded."""
    ranks = [STRENGTH[cards[p]] for p in node.live]
    return node.live[ranks.index(max(ranks))]


@lru_cache(maxsize=4096)
def settle(players: int, ante: int, bet: int, cards: str, line: str) -> tuple[float, ...]:
    """Chips won or lost by every seat."""
    node = tree(players)[line]
    if node.legal:
        return (0.0,) * players
    won = [-float(ante + bet * paid) for paid in node.paid]
    won[winner(node, cards)] += float(ante * players + bet * node.pot)
    return tuple(won)


@lru_cache(maxsize=4096)
def seen(players: int, ante: int, bet: int, cards: str, line: str, player: Player) -> str:
    """What the seat sees."""
    node = tree(players)[line]
    if node.legal:
        asked = node.ask if player == node.to_act[0] else node.wait
    else:
        shown = [f"Player {p} {cards[p]}" for p in node.live]
        showdown = f"Showdown: {', '.join(shown)}. " if len(shown) > 1 else ""
        asked = f"{node.wait} {showdown}Player {winner(node, cards)} takes the pot."
    pot = ante * players + bet * node.pot
    return f"You are Player {player}. Your card: {cards[player]}.\n{node.said}\nPot: {pot} chips.\n{asked}"


class KuhnPoker(TurnGame):
    """Kuhn poker: one card each, one bet, and a bluff or two.

    Options:
        players: how many sit at the table, 2 to 10; the deck has one card more
        ante: chips each pays before the deal, 1 to 1000
        bet: chips of a bet, 1 to 1000
    """

    zero_sum = True
    tags = ("cards", "poker", "bluffing")

    players: int
    ante: int
    bet: int
    cards: str  # a card a seat
    line: str = ""

    @classmethod
    def initial(cls, rng: Random, players: int = 2, ante: int = 1, bet: int = 1) -> Self:
        """Deal a card to each."""
        if players == 2 and ante == bet == 1:
            return cls(2, 1, 1, rng.choice(DEALS))  # the checks and rng.sample take longer than the rest of a hand
        for name, value, low, high in (("players", players, 2, 10), ("ante", ante, 1, CHIPS), ("bet", bet, 1, CHIPS)):
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"{name}={value!r}: allowed are {low} to {high}")
        return cls(players, ante, bet, "".join(rng.sample(RANKS[-players - 1 :], players)))

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return tree(self.players)[self.line].to_act

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        return RULES.format(
            players=self.players,
            player=player,
            cards=self.players + 1,
            deck=" ".join(RANKS[-self.players - 1 :]),
            ante=self.ante,
            bet=self.bet,
            loss=self.ante + self.bet,
        )

    def observation(self, player: Player) -> str:
        """Own card, betting, pot, what is asked; after a showdown the cards of those who have not folded."""
        return seen(self.players, self.ante, self.bet, self.cards, self.line, player)

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """See `Game.legal_actions`."""
        node = tree(self.players)[self.line]
        return node.legal if player in node.to_act else ()

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        node = tree(self.players)[self.line]
        line = node.after.get(action)
        if line is None:
            raise IllegalAction(f"write {' or '.join(node.legal)}" if node.legal else "the hand is over")
        return type(self)(self.players, self.ante, self.bet, self.cards, line)

    def normalize(self, text: str, player: Player) -> Action:
        """See `arena.games.cards.limit.read`."""
        return read(text, self.legal_actions(player))

    def fallback(self, player: Player) -> Action | None:
        """Check, else fold."""
        legal = self.legal_actions(player)
        return next((action for action in ("check", "fold") if action in legal), None)

    def returns(self) -> tuple[float, ...]:
        """Chips won or lost; 0 until the hand is over."""
        return settle(self.players, self.ante, self.bet, self.cards, self.line)

    def reward_range(self) -> tuple[float, float]:
        """Lose ante and bet, or win those of all others."""
        most = float(self.ante + self.bet)
        return (-most, most * (self.players - 1))

    def max_turns(self) -> int:
        """All but the last check, the last bets, all others answer."""
        return 2 * self.players - 1

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return 200 + 50 * self.players

    def max_action(self) -> int:
        """See `Game.max_action`."""
        return 5

    def action_table(self) -> tuple[Action, ...]:
        """See `Game.action_table`."""
        return ACTIONS

    def features(self, player: Player) -> tuple[float, ...]:
        """Seat, own card (one-hot each), and the betting: three numbers for each of `max_turns` actions."""
        seat = [0.0] * self.players
        seat[player] = 1.0
        card = [0.0] * (self.players + 1)
        card[STRENGTH[self.cards[player]] - len(RANKS)] = 1.0
        return (*seat, *card, *steps(self.line, 1, self.max_turns()))

    def determinize(self, player: Player, rng: Random) -> Self:
        """The cards that the seat has not seen, dealt anew."""
        node = tree(self.players)[self.line]
        known = {player} if node.legal or len(node.live) == 1 else {player, *node.live}
        seen = [self.cards[p] for p in known]
        unseen = [card for card in RANKS[-self.players - 1 :] if card not in seen]
        rng.shuffle(unseen)
        cards = [self.cards[p] if p in known else unseen.pop() for p in range(self.players)]
        return replace(self, cards="".join(cards))
