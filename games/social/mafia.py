"""Secret Mafia: an informed minority against an uninformed majority.

Rules: Davidoff's Mafia (1986; "The original Mafia rules", *Bulletins of the Serving Library* 2) with the Doctor and the
Detective, as in TextArena `SecretMafia` (the MindGames competition): a first night that kills, a Doctor and a Detective
who may not name themselves, random choice among the Mafia's tied victims, Mafia wins at parity. Ours, stated in the
rules text: all night actions fall at once, votes are secret until all have voted, a tied vote puts nobody out, one
may name nobody, and a game that lasts `max_days` is a draw.
"""

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Self

from arena.chance import Chance
from arena.game import NOBODY, SEAT, Action, Event, Game, IllegalAction, Player, replace
from arena.games.joint import expect
from arena.games.social.hidden import (
    DETECTIVE,
    DOCTOR,
    MAFIA,
    NONE,
    UNASKED,
    VILLAGER,
    Facts,
    Night,
    deal,
    leaders,
    relive,
)
from arena.games.social.naming import read_name
from arena.games.talk import MESSAGE, SHOWN, check_message

__all__ = ["SecretMafia"]

LEAST, GREATEST = 6, 12
MAX_ROUNDS = 5
MAX_DAYS = 20
VERB = {MAFIA: "kill", DOCTOR: "protect", DETECTIVE: "investigate"}
VERBS = ("kill", "protect", "investigate", "vote")
NAMED = {verb: {**{f"{verb} {p}": p for p in range(GREATEST)}, f"{verb} nobody": NONE} for verb in VERBS}
CHOICE = {verb: {p: text for text, p in named.items()} for verb, named in NAMED.items()}
RULES = """Secret Mafia for {players} players, Player 0 to Player {top}. You are Player {player}.
Roles are dealt in secret: {mafia} Mafia{known}, 1 Doctor, 1 Detective, {villagers} Villagers. The \
Village (all but the Mafia) wins when no Mafia is alive; the Mafia win when they are at least half of those alive.
Every day begins with its night, in which these act at the same time:
- each Mafia writes kill N, such as: kill {example}. The living player who is not Mafia named by most of them is the \
victim; a tie among the named is broken at random.
- the Doctor writes protect N, a living other player, such as: protect {example}. If that is the victim, nobody is \
killed.
- the Detective writes investigate N, a living other player, such as: investigate {example}, and learns whether that \
player is Mafia, and nothing more.
{talk}Then all alive vote at the same time: each writes vote N, a living other player. The player with more votes than \
any other, and more than there are votes for nobody, is out; otherwise nobody is. All votes are read out afterwards.
In place of a number one may always write nobody. A player who is dead or out {reveal}, and acts no more.
After day {days} without a winner the game is a draw.
Write the action alone and nothing else; in a vote it may look like this.
For example: vote {example}
The winning team gets +1 each, dead or alive, the others -1; a draw is 0."""
TALK = """By day all alive speak in turn, {rounds}: what you write then, at most {limit} characters, all read. \
The first to speak changes from day to day.
"""
OVER = {"Village": "The Village wins.", "Mafia": "The Mafia win.", "draw": "The days are over: a draw."}


@lru_cache(maxsize=1 << 14)
def menu(verb: str, targets: tuple[Player, ...], but: Player) -> tuple[Action, ...]:
    """The targets one may name, and nobody."""
    choice = CHOICE[verb]
    return (*[choice[p] for p in targets if p != but], choice[NONE])


@lru_cache(maxsize=1 << 12)
def listed(seats: tuple[Player, ...]) -> str:
    """`0, 2, 5`."""
    return ", ".join(map(str, seats))


@lru_cache(maxsize=1 << 12)
def graves(fallen: tuple[Player, ...], roles: tuple[str, ...] | None) -> str:
    """`5 (Doctor), 2 (Mafia)`; without roles if they are not shown."""
    if not fallen:
        return "nobody"
    return ", ".join([f"{p} ({roles[p]})" for p in fallen]) if roles else listed(fallen)


class SecretMafia(Game):
    """Secret Mafia: the Mafia kill by night, the Village talks and votes by day.

    Options:
        players: how many sit at the table, 6 to 12
        rounds: how often each speaks a day, 0 to 5
        mafia: how many are Mafia, 1 to less than half of the players; 0: a quarter of them
        reveal_roles: true or false; true: the role of those who die or are out is shown
        max_days: days after which the game is a draw, 1 to 20
    """

    tags = ("social", "talk", "teams", "simultaneous", "hidden information")

    players: int
    mafia: int
    rounds: int
    reveal: bool
    days: int
    roles: tuple[str, ...]
    chance: Chance
    living: tuple[Player, ...]
    acting: tuple[Player, ...]
    phase: str = "night"  # "night", "talk", "vote" or "over"
    day: int = 1
    said: int = 0  # messages of this day
    won: str = ""  # "Village", "Mafia" or "draw"
    fallen: tuple[Player, ...] = ()  # in the order of their going
    told: tuple[Event, ...] = ()  # what everybody heard
    nights: tuple[Night, ...] = ()  # what was done in secret

    @classmethod
    def initial(
        cls,
        rng: Random,
        players: int = 7,
        rounds: int = 1,
        mafia: int = 0,
        reveal_roles: bool = True,
        max_days: int = 10,
    ) -> Self:
        """The first night, roles dealt. Raises ValueError."""
        allow("players", players, LEAST, GREATEST)
        allow("rounds", rounds, 0, MAX_ROUNDS)
        allow("mafia", mafia, 0, (players - 1) // 2)
        allow("max_days", max_days, 1, MAX_DAYS)
        if type(reveal_roles) is not bool:
            raise ValueError(f"reveal_roles={reveal_roles!r}: allowed are true and false")
        mafia = mafia or players // 4
        roles = [MAFIA] * mafia + [DOCTOR, DETECTIVE] + [VILLAGER] * (players - mafia - 2)
        rng.shuffle(roles)
        return cls.dealt(tuple(roles), Chance.of(rng), rounds, reveal_roles, max_days)

    @classmethod
    def dealt(cls, roles: tuple[str, ...], chance: Chance, rounds: int, reveal: bool, days: int) -> Self:
        """The first night of given roles."""
        living = tuple(range(len(roles)))
        acting = tuple([p for p in living if roles[p] != VILLAGER])
        return cls(len(roles), roles.count(MAFIA), rounds, reveal, days, roles, chance, living, acting)

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`. At night it is a secret."""
        return self.acting

    def rules(self, player: Player) -> str:
        """See `Game.rules`; never the role."""
        often = "once" if self.rounds == 1 else f"{self.rounds} times"
        return RULES.format(
            players=self.players,
            top=self.players - 1,
            player=player,
            mafia=self.mafia,
            known=", who know each other" if self.mafia > 1 else "",
            villagers=self.players - self.mafia - 2,
            talk=TALK.format(rounds=often, limit=MESSAGE) if self.rounds else "",
            reveal="shows their role" if self.reveal else "does not show their role",
            days=self.days,
            example=(player + 1) % self.players,
        )

    def observation(self, player: Player) -> str:
        """The seat's role, who lives, and what is asked."""
        role = self.roles[player]
        known = f" (all Mafia: {listed(self.gang())})" if role == MAFIA and self.mafia > 1 else ""
        state = "" if player in self.living else ", no longer in the game"
        gone = graves(self.fallen, self.roles if self.reveal else None)
        return (
            f"You are Player {player}, {role}{known}{state}.\n"
            f"Alive: {listed(self.living)}. Out: {gone}.\n{self._asked(player)}"
        )

    def _asked(self, player: Player) -> str:
        if self.phase == "over":
            return OVER[self.won]
        asked = player in self.acting
        if self.phase == "night":
            verb = asked and VERB[self.roles[player]]
            return f"Night {self.day}: " + (f"{verb} whom? Write {verb} N or {verb} nobody." if verb else "you sleep.")
        if self.phase == "vote":
            return f"Day {self.day}: " + ("vote for whom? Write vote N or vote nobody." if asked else "the vote.")
        turn = self.said // len(self.living) + 1
        who = "your turn to speak" if asked else f"Player {self.acting[0]} speaks"
        return f"Day {self.day}, round {turn} of {self.rounds}: {who}."

    def events(self, player: Player) -> tuple[Event, ...]:
        """What everybody heard, and after each night what the seat alone, or the Mafia alone, learned."""
        heard: list[Event] = []
        start = 0
        for night in self.nights:
            heard += self.told[start : night.at]
            heard += night.secrets(player, self.roles)
            start = night.at
        return (Event(f"You are dealt: {self.roles[player]}.", None, SEAT[player]), *heard, *self.told[start:])

    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        """See `Game.legal_actions`; None while the seat is asked to speak."""
        if player not in self.acting:
            return ()
        if self.phase == "vote":
            return menu("vote", self.living, player)
        if self.phase == "talk":
            return None
        role = self.roles[player]
        targets = tuple([p for p in self.living if self.roles[p] != MAFIA]) if role == MAFIA else self.living
        return menu(VERB[role], targets, player)

    def check(self, player: Player, action: Action) -> None:
        """See `Game.check`: the length of a message."""
        check_message(action, player)

    def normalize(self, text: str, player: Player) -> Action:
        """`3`, `[Player 3]`, `I vote for Player 3.`, `nobody` -> the action asked for; never another verb than that."""
        if self.phase == "talk" or player not in self.acting:
            return text
        verb = "vote" if self.phase == "vote" else VERB[self.roles[player]]
        named = read_name(text, verb)
        return named if isinstance(named, str) else f"{verb} {'nobody' if named is None else named}"

    def sample_action(self, player: Player, rng: Random) -> Action:
        """A night action or a vote, or a word of suspicion."""
        legal = self.legal_actions(player)
        if legal is not None:
            return super().sample_action(player, rng)
        return rng.choice(("I suspect nobody yet.", "I am a Villager.", f"I suspect Player {rng.choice(self.living)}."))

    def fallback(self, player: Player) -> Action | None:
        """Silence; at night and in the vote nobody is named."""
        if player not in self.acting:
            return None
        if self.phase == "talk":
            return ""
        return CHOICE["vote" if self.phase == "vote" else VERB[self.roles[player]]][NONE]

    def apply(self, actions: Mapping[Player, Action]) -> Self:
        """See `Game.apply`."""
        expect(actions, self.acting)
        if self.phase == "talk":
            return self._hear(self.acting[0], actions[self.acting[0]])
        for player, action in actions.items():
            legal = self.legal_actions(player) or ()
            if action not in legal:
                raise IllegalAction(f"write one of: {', '.join(legal)}", player)
        return self._wake(actions) if self.phase == "night" else self._count(actions)

    def _hear(self, speaker: Player, text: str) -> Self:
        check_message(text, speaker)
        told, said, living = (*self.told, Event(text, speaker)), self.said + 1, self.living
        if said == self.rounds * len(living):
            return replace(self, told=told, said=said, phase="vote", acting=living)
        follower = living[(living.index(speaker) + 1) % len(living)]
        return replace(self, told=told, said=said, acting=SEAT[follower])

    def _wake(self, actions: Mapping[Player, Action]) -> Self:
        roles, named = self.roles, [UNASKED] * self.players
        for p, action in actions.items():
            named[p] = NAMED[VERB[roles[p]]][action]
        victim, chance = self._victim(named)
        if victim >= 0 and any(named[p] == victim for p in self.acting if roles[p] == DOCTOR):
            victim = NONE
        night = Night(self.day, len(self.told), self.living, tuple(named), victim)
        after = replace(self, nights=(*self.nights, night), chance=chance)
        if victim < 0:
            told = Event(f"Night {self.day}: nobody was killed.")
            return after._morning(told, self.living, self.fallen)
        told = Event(f"Night {self.day}: Player {victim} was killed{self._shown(victim)}.")
        return after._bury(victim, told)

    def _victim(self, named: list[int]) -> tuple[int, Chance]:
        """Whom most of the Mafia named."""
        tied = leaders([named[p] for p in self.acting if self.roles[p] == MAFIA and named[p] >= 0])
        if len(tied) < 2:
            return (tied[0] if tied else NONE), self.chance
        (i,), chance = self.chance.integers(len(tied))
        return tied[i], chance

    def _count(self, actions: Mapping[Player, Action]) -> Self:
        named = NAMED["vote"]
        votes = [(p, named[actions[p]]) for p in self.acting]
        tied = leaders([n for _, n in votes])
        read = ", ".join([f"{p} for {n if n >= 0 else 'nobody'}" for p, n in votes])
        head = f"Day {self.day}, the votes: {read}."
        if len(tied) > 1 or tied[0] < 0:
            return self._evening(Event(f"{head} Nobody is out."), self.living, self.fallen)
        return self._bury(tied[0], Event(f"{head} Player {tied[0]} is out{self._shown(tied[0])}."))

    def _shown(self, player: Player) -> str:
        return f" ({self.roles[player]})" if self.reveal else ""

    def _bury(self, player: Player, event: Event) -> Self:
        living = tuple([p for p in self.living if p != player])
        fallen = (*self.fallen, player)
        mafia = sum([self.roles[p] == MAFIA for p in living])
        if not mafia or 2 * mafia >= len(living):
            return self._finish("Mafia" if mafia else "Village", event, living, fallen)
        return (self._morning if self.phase == "night" else self._evening)(event, living, fallen)

    def _morning(self, event: Event, living: tuple[Player, ...], fallen: tuple[Player, ...]) -> Self:
        """The night is over: talk, or at once the vote."""
        phase, acting = "vote", living
        if self.rounds:
            phase, acting = "talk", SEAT[living[(self.day - 1) % len(living)]]
        told = (*self.told, event)
        return replace(self, told=told, living=living, fallen=fallen, phase=phase, acting=acting, said=0)

    def _evening(self, event: Event, living: tuple[Player, ...], fallen: tuple[Player, ...]) -> Self:
        """The vote is over: the next night, unless it was the last day."""
        if self.day == self.days:
            return self._finish("draw", event, living, fallen)
        acting = tuple([p for p in living if self.roles[p] != VILLAGER])
        told, day = (*self.told, event), self.day + 1
        return replace(self, told=told, living=living, fallen=fallen, phase="night", acting=acting, day=day)

    def _finish(self, won: str, event: Event, living: tuple[Player, ...], fallen: tuple[Player, ...]) -> Self:
        roles = ", ".join([f"Player {p} {role}" for p, role in enumerate(self.roles)])
        told = (*self.told, event, Event(f"{OVER[won]} The roles were: {roles}."))
        return replace(self, told=told, living=living, fallen=fallen, phase="over", acting=NOBODY, won=won)

    def gang(self) -> tuple[Player, ...]:
        """The Mafia, dead or alive."""
        return tuple([p for p, role in enumerate(self.roles) if role == MAFIA])

    def role(self, player: Player) -> str:
        """See `Game.role`. A secret of the seat until the end."""
        return self.roles[player]

    def teams(self) -> tuple[int, ...]:
        """1: Mafia, 0: Village. A secret until the end."""
        return tuple([int(role == MAFIA) for role in self.roles])

    def returns(self) -> tuple[float, ...]:
        """1 for every member of the team that won, -1 for the others; 0 before the end and in a draw."""
        if self.won in ("", "draw"):
            return (0.0,) * self.players
        return tuple([1.0 if (role == MAFIA) == (self.won == "Mafia") else -1.0 for role in self.roles])

    def determinize(self, player: Player, rng: Random) -> Self:
        """Roles and nights drawn anew among those that agree with all the seat knows (roles: each equally likely)."""
        roles, acting = self.roles, self.acting
        if not self.won:
            roles = deal(player, rng, roles, self.nights, self.fallen, self.reveal)
        if self.phase == "night":
            acting = tuple([p for p in self.living if roles[p] != VILLAGER])
        nights = tuple([relive(night, player, rng, roles) for night in self.nights])
        return replace(self, roles=roles, acting=acting, nights=nights, chance=Chance.of(rng))

    def max_turns(self) -> int:
        """Every day a night, the talk of all, and a vote."""
        return self.days * (2 + self.rounds * self.players)

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return 1024 + self.days * (512 + self.rounds * self.players * SHOWN)

    def max_action(self) -> int:
        """See `Game.max_action`."""
        return MESSAGE if self.rounds else len("investigate nobody")

    def action_table(self) -> tuple[Action, ...] | None:
        """Every verb with every seat and nobody; None with talk."""
        if self.rounds:
            return None
        return tuple([CHOICE[verb][p] for verb in VERBS for p in (*range(self.players), NONE)])

    def features(self, player: Player) -> tuple[float, ...] | None:
        """Day; my role, one of four; night or vote; by seat: alive, known Mafia (1) or known not to be (-1).

        None with talk: the words are what matters.
        """
        if self.rounds:
            return None
        seats = range(self.players)
        shown = seats if self.won else self.fallen if self.reveal else ()
        facts = Facts.of(player, self.roles, self.nights, shown)
        return (
            self.day / self.days,
            *[float(self.roles[player] == role) for role in (MAFIA, DOCTOR, DETECTIVE, VILLAGER)],
            *[float(self.phase == phase) for phase in ("night", "vote")],
            *[float(p in self.living) for p in seats],
            *[float(p in facts.guilty) - float(p in facts.clean) for p in seats],
        )


def allow(name: str, value: int, low: int, high: int) -> None:
    """Raise ValueError unless the option is a whole number in the range."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name}={value!r}: allowed are {low} to {high}")
