"""What all faces share: how an episode goes on, whose answer is awaited, what a wrong one costs, what each seat sees.

`Setup` is fixed when a face is made, `Table` is one episode. A face asks the seat `table.asked`, hands what it says
to `table.answer`, and reads `table.earned`. Seats to act at the same moment are asked in ascending order and
`Game.apply` is called when the last answer is in; vacated seats are answered for.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import index
from typing import Any, Literal

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from arena.deal import deal_of
from arena.game import Action, Game, LiveGame, Player, TurnGame
from arena.numeric import Codec
from arena.penalty import Penalties
from arena.referee import Reading, Referee
from arena.registry import frozen, id_of, load, options_of, unknown
from arena.spaces import Text
from arena.text import show

__all__ = ["ARGUMENTS", "NOTE_ROOM", "OVER", "RENDER_MODES", "History", "Setup", "Table", "draw_seed", "seed_of"]

History = Literal["full", "new"] | int
OVER = -1
"""`Table.asked` once nobody is asked any more."""
RENDER_MODES = ["ansi", "human"]
NOTE_ROOM = 4096
"""Characters an observation may take for the referee's note above the game's own text."""
_CUT = Reading("truncated", None, "the reply was cut off before it ended")
ARGUMENTS = ("illegal", "retries", "show_legal", "history", "render_mode", "numeric")
"""What every face takes beside the game's own options."""


def seed_of(seed: Any) -> int:
    """The seed as an int. Raises ValueError unless it is 0 to 2**64 - 1, TypeError unless it is an integer."""
    number = index(seed)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"seed={number}: allowed are 0 to 2**64 - 1")
    return number


def _history(value: Any) -> History:
    if value in ("full", "new") or (type(value) is int and value >= 0):
        known: History = value
        return known
    raise ValueError(f"history={value!r}: allowed are 'full', 'new' or a number of events, 0 or more")


def _render_mode(value: Any) -> str | None:
    if value is None or value in RENDER_MODES:
        mode: str | None = value
        return mode
    raise ValueError(f"render_mode={value!r}: allowed are None, 'ansi' and 'human'")


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{name}={value!r}: allowed are True and False")
    return value


def draw_seed(rng: np.random.Generator) -> int:
    """The seed of an episode that was reset without one."""
    return int(rng.bit_generator.random_raw())


class Setup:
    """A game with its options, a referee, and how things are shown: all that stays the same from episode to episode.

    `own` names the arguments of the face itself, for the message about an unknown one. Raises ValueError for
    whatever is not allowed.
    """

    def __init__(
        self,
        game: str | type[Game],
        options: Mapping[str, Any],
        own: Iterable[str],
        *,
        illegal: Any,
        retries: Any,
        show_legal: Any,
        history: Any,
        render_mode: Any,
        numeric: Any,
    ) -> None:
        self.id = id_of(game)
        self.game = load(game) if isinstance(game, str) else game
        self._check_names(options, {*ARGUMENTS, *own})
        self.options = {key: frozen(value) for key, value in options.items()}
        self.referee = Referee(illegal, retries, _flag("show_legal", show_legal))
        self.history = _history(history)
        self.render_mode = _render_mode(render_mode)
        deal = deal_of(self.game, self.options)
        self.lives, self.template, self.rules, self.talks = deal.live, deal.template, deal.rules, deal.talks
        self.players = self.template.players
        self.deal: Callable[[int], Game] = deal.first
        self.codec = Codec(self.id, self.template) if _flag("numeric", numeric) else None

    def _check_names(self, options: Mapping[str, Any], own: set[str]) -> None:
        allowed = options_of(self.game)
        for name in options:
            if name not in allowed:
                raise unknown(f"argument of {self.id}", name, {*own, *allowed})
        if taken := sorted(own & set(allowed)):
            raise ValueError(f"option {taken[0]!r} of {self.id} is the name of an argument of every environment")

    def observation_space(self) -> Space[Any]:
        """A fresh space that holds every observation of every seat."""
        return self.codec.observation_space() if self.codec else Text(self.template.max_length() + NOTE_ROOM)

    def action_space(self) -> Space[Any]:
        """A fresh space to sample from; with a vocabulary where all actions are known."""
        if self.codec:
            return self.codec.action_space()
        return Text(self.template.max_action(), vocabulary=self.template.action_table())


class Table:
    """One episode."""

    __slots__ = (
        "acting", "answers", "asked", "codec", "earned", "everyone", "forfeits", "left", "legal", "marks",
        "note", "penalties", "play", "ply", "reasons", "referee", "retries", "seed", "seen", "setup", "shown", "shows",
        "state", "talks", "turns", "verdicts",
    )  # fmt: skip

    setup: Setup
    seed: int
    state: Game
    acting: tuple[Player, ...]
    """Seats to act now."""
    answers: dict[Player, Action]
    """The actions of this ply so far, in ascending order of seats."""
    asked: Player
    """The seat whose answer is awaited, or OVER."""
    legal: tuple[Action, ...] | None
    """Its legal actions, or None: open text."""
    left: int
    """Retries it still has."""
    note: str
    """The referee's word about its last try, "" at the first."""
    earned: tuple[float, ...]
    """What each seat has earned, forfeits settled."""
    turns: list[int]
    """Turns each seat has had."""
    verdicts: list[str]
    """The verdict on each seat's last answer, "" before the first."""
    reasons: list[str]
    """Why the last answer that was not legal was not."""
    forfeits: list[Player]
    """Seats that have forfeited."""
    play: Callable[[Any, Action], Game] | None
    penalties: Penalties

    def __init__(self, setup: Setup, *, everyone: bool = False) -> None:
        """`everyone`: all seats look at every ply (parallel), so that news are what the last ply brought."""
        self.setup, self.referee, self.retries = setup, setup.referee, setup.referee.retries
        self.everyone, self.marks = everyone, setup.history == "new"
        self.codec, self.talks, self.shows = setup.codec, setup.talks, setup.referee.show_legal
        game = setup.game
        # One seat moves at a time: its action need not wait for others.
        self.play = game.play if issubclass(game, TurnGame) and game.apply is TurnGame.apply else None
        self.penalties = Penalties(self.referee, 0, self.referee.ends(setup.template))
        self.asked = OVER

    def deal(self, seed: int) -> None:
        """Begin anew."""
        setup = self.setup
        if setup.lives:
            self.close()
        blank = [0] * setup.players
        self.seed, self.ply = seed, 0
        self.state = state = setup.deal(seed)
        self.earned = state.returns()
        self.penalties.begin(seed)
        self.answers, self.forfeits = {}, self.penalties.forfeits
        self.left, self.note = self.retries, ""
        self.turns, self.seen = blank, blank[:]
        self.verdicts, self.reasons = [""] * setup.players, [""] * setup.players
        self.shown = [("", 0)] * setup.players if setup.talks else []
        self.acting = state.to_act()
        self._ask()

    def close(self) -> None:
        """Let go of what the game opened."""
        state = getattr(self, "state", None)
        if isinstance(state, LiveGame):
            state.close()

    def answer(self, text: str, truncated: bool = False) -> None:
        """What the seat `asked` says; `truncated`: it was cut off. Any `str` is taken.

        Raises TypeError for another type.
        """
        player, legal, action = self.asked, self.legal, text
        if legal is not None and not truncated and type(text) is str and text in legal:
            self.verdicts[player] = "legal"
        else:
            judged = self._judge(player, _CUT if truncated else self.referee.read(self.state, player, text))
            if judged is None:
                return
            action = judged
        self.turns[player] += 1
        if self.note:
            self.left, self.note = self.retries, ""
        if self.forfeits or self.play is None:
            self.answers[player] = action
            self._go_on()
            return
        # What `_apply` and `_ask` do, for the one seat of a turn: this is where the time of a fast game goes.
        if self.marks:
            self._mark()
        self.state = state = self.play(self.state, action)
        self.ply += 1
        self.earned = state.returns()
        self.acting = acting = state.to_act()
        if acting:
            self.asked = player = acting[0]
            self.legal = state.legal_actions(player)
        else:
            self.asked, self.legal = OVER, ()

    def _judge(self, player: Player, reading: Reading) -> Action | None:
        """What the seat plays by the referee's reading of its answer; None: it has another try."""
        self.verdicts[player], self.reasons[player] = reading.verdict, reading.reason
        if reading.action is not None:
            return reading.action
        if self.left:
            self.left -= 1
            self.note = self.referee.note(self.state, player, reading)
            return None
        played = self.penalties.wrong(self.state, player)
        return "" if played is None else played

    def _mark(self) -> None:
        """What comes from here on is news to those who look now."""
        for player in range(self.setup.players) if self.everyone else self.acting:
            self.seen[player] = len(self.state.events(player))

    def _go_on(self) -> None:
        """Once the last answer of the ply is in, the game goes on."""
        if len(self.answers) == len(self.acting):
            if self.penalties.over:
                self.earned = self.penalties.earned(self.state)
                self.acting, self.asked, self.legal = (), OVER, ()
                return
            self._apply()
        self._ask()

    def _apply(self) -> None:
        if self.marks:
            self._mark()
        self.state = state = self.state.apply(self.answers)
        self.answers = {}
        self.ply += 1
        self.earned = self.penalties.earned(state)
        self.acting = state.to_act()

    def _ask(self) -> None:
        """Go to the next seat that still plays for itself."""
        while self.acting:
            for player in self.acting[len(self.answers) :]:
                if player not in self.forfeits:
                    self.asked, self.legal = player, self.state.legal_actions(player)
                    return
                self.answers[player] = self.penalties.substitute(self.state, player)
            self._apply()
        self.asked, self.legal = OVER, ()

    def text(self, player: Player) -> str:
        """What the seat sees: the referee's note, the history, the position."""
        text = self.state.observation(player)
        if self.talks:
            text = self._with_history(player, text)
        if self.note and player == self.asked:
            text = f"{self.note}\n{text}"
        return text

    def _with_history(self, player: Player, observation: str) -> str:
        history = self.setup.history
        if history == "full":
            return self._all_shown(player) + observation
        events = self.state.events(player)
        news = events[self.seen[player] :] if history == "new" else events[len(events) - min(history, len(events)) :]
        return "\n".join([*map(show, news), observation])

    def _all_shown(self, player: Player) -> str:
        """Events are only ever added, so what was shown before is kept."""
        before, count = self.shown[player]
        events = self.state.events(player)
        if len(events) > count:
            before += "".join([f"{show(event)}\n" for event in events[count:]])
            self.shown[player] = before, len(events)
        return before

    def observation(self, player: Player) -> Any:
        """What the seat sees, as its space has it."""
        text = self.text(player)
        return text if self.codec is None else self.codec.observation(self.state, player, text)

    def info(self, player: Player, acts: bool | None = None) -> dict[str, Any]:
        """What stands beside the observation of a seat; never whose turn it is.

        `acts`: whether its answer is wanted now; None: whether it is the one asked.
        """
        legal: tuple[Action, ...] | None = ()
        left = 0
        if acts is None and player == self.asked:
            legal, left = self.legal if self.shows else None, self.left
        elif acts:
            legal = self.state.legal_actions(player) if self.shows else None
        verdict = self.verdicts[player]
        info: dict[str, Any] = {
            "legal_actions": legal,
            "player": player,
            "turn": self.turns[player],
            "verdict": verdict,
            "retries_left": left,
        }
        if verdict and verdict != "legal":
            info["reason"] = self.reasons[player]
        if self.codec is not None:
            info["text"] = self.text(player)
            info["action_mask"] = self.codec.mask(legal)
        return info

    def mask(self, player: Player) -> NDArray[np.int8]:
        """The action mask of a seat (numeric face). Raises ValueError without one."""
        if self.codec is None:
            raise ValueError("action masks need numeric=True")
        return self.codec.mask(self.legal if self.shows and player == self.asked else ())

    def render(self) -> str | None:
        """The whole table as an onlooker sees it: returned in mode `ansi`, printed in mode `human`."""
        mode = self.setup.render_mode
        if mode is None:
            return None
        picture = self.state.render()
        if mode == "ansi":
            return picture
        print(picture)
        return None

    def action(self, action: Any) -> str:
        """What the seat says, given an action of its space. Raises TypeError for one of another type."""
        text: str = action if self.codec is None else self.codec.action(action)
        return text
