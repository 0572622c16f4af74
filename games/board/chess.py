"""Chess, and Chess960, on python-chess.

Rules: FIDE Laws of Chess (2023), Articles 1-5, 9.2, 9.3 and Guidelines II (Chess960), but nobody has to claim a draw:
a position that occurs for the third time and fifty moves of each side without a capture or a pawn move end the game by
themselves (so 9.6, five times and 75 moves, never matters). Of the dead positions (5.2.2) those end the game that
material alone proves dead, as python-chess sees it. Checkmate and stalemate come before all of these.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple, Self

import chess

from arena.game import NOBODY, SEAT, Action, Drawing, Event, IllegalAction, Player, TurnGame
from arena.games.board.chess_moves import MOVES, legal_moves
from arena.games.board.chess_text import castling_field, draw, read_fen, read_move

__all__ = ["Chess", "Position"]

COLOURS = ("White", "Black")
PLAYS = tuple([{uci: Event(f"{colour} plays {uci}.") for uci in MOVES} for colour in COLOURS])
# at most 96 pawn moves and 30 captures, a hundred moves from one to the next, and a hundred after the last
MAX_TURNS = 127 * 100
ACTIONS = tuple(MOVES)
BITS = tuple([tuple([float(byte >> i & 1) for i in range(8)]) for byte in range(256)])
GLYPHS = chess.UNICODE_PIECE_SYMBOLS
OWNERS = {symbol: int(letter.islower()) for letter, symbol in GLYPHS.items()}
MATE, STALEMATE = "Checkmate", "stalemate"
RULES = """Chess under the FIDE Laws{variant}. You are {colour}; {setup}
On the board White's pieces are capitals, Black's are small letters.
On your turn write a legal move in UCI: the square the piece leaves and the square it goes to, and for a promotion the \
new piece (e7e8q). Castling is written as {castling}.
For example: {example}
SAN (Nf3) is understood too where it means exactly one legal move.
Checkmate wins (+1, the loser -1). These are draws (0) at once, nobody has to claim them: stalemate, a position that \
occurs for the third time, fifty moves of each side without a capture or a pawn move, and insufficient material."""


class Position(NamedTuple):
    """What must be equal for a position to occur again (FIDE 9.2.3): bitboards, side to move, rights.

    `ep` is the en passant square if such a capture is legal, else None; `castling` are the rooks that may castle.
    """

    white: int
    black: int
    pawns: int
    knights: int
    bishops: int
    rooks: int
    queens: int
    kings: int
    turn: bool
    castling: int
    ep: int | None

    @classmethod
    def of(cls, board: chess.Board) -> Self:
        """The position on a board whose en passant square is None where no such capture is legal."""
        black, white = board.occupied_co
        return cls(
            white,
            black,
            board.pawns,
            board.knights,
            board.bishops,
            board.rooks,
            board.queens,
            board.kings,
            board.turn,
            board.clean_castling_rights(),
            board.ep_square,
        )

    def board(self, chess960: bool = False) -> chess.Board:
        """A new board of python-chess, its clocks at 0 and 1."""
        board = chess.Board(None, chess960=chess960)
        board.occupied_co = [self.black, self.white]
        board.occupied = self.black | self.white
        _, _, board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings = self[:8]
        board.turn, board.castling_rights, board.ep_square = self[8:]
        return board


class Setup(NamedTuple):
    """What the rules say of the options."""

    start: str = "the game starts from the usual position."
    example: str = "e2e4"
    chess960: bool = False


class Chess(TurnGame):
    """Chess, from the usual position or any other; Chess960 too. Player 0 is White.

    Options:
        fen: the position the game starts from, in Forsyth-Edwards Notation
        chess960: true or false; true: the castling of Chess960, and without a fen of yours a shuffled start
        scharnagl: the number of that shuffled start, 0 to 959 (518 is the usual position); None: drawn by lot
    """

    zero_sum = True
    perfect_information = True
    tags = ("board", "abstract")
    players = 2

    position: Position
    clock: int  # moves of either side since the last capture or pawn move
    number: int
    legal: tuple[Action, ...]
    in_check: bool
    seen: tuple[Position, ...]  # since the last capture or pawn move, this one included
    times: int  # that this position has occurred
    ending: str
    log: tuple[Event, ...]
    setup: Setup

    @classmethod
    def initial(
        cls, rng: Random, fen: str = chess.STARTING_FEN, chess960: bool = False, scharnagl: int | None = None
    ) -> Self:
        """The start; ValueError for a FEN that cannot be read or be a position, or whose game is over."""
        if type(chess960) is not bool:
            raise ValueError(f"chess960={chess960!r}: allowed are True and False")
        if fen != chess.STARTING_FEN or not chess960:
            if scharnagl is not None:
                raise ValueError("scharnagl: allowed only with chess960=True and without a fen")
            return cls._from_fen(fen, chess960)
        if scharnagl is None:
            board = chess.Board.from_chess960_pos(rng.randrange(960))
            setup = Setup("the game starts from one of 960 shuffled positions, drawn by lot.", chess960=True)
        elif type(scharnagl) is int and 0 <= scharnagl < 960:
            board = chess.Board.from_chess960_pos(scharnagl)
            setup = Setup(f"the game starts from Chess960 position {scharnagl}.", chess960=True)
        else:
            raise ValueError(f"scharnagl={scharnagl!r}: allowed are 0 to 959, and None")
        return cls._at(board, (), (), setup)

    @classmethod
    def _from_fen(cls, fen: str, chess960: bool) -> Self:
        if fen == chess.STARTING_FEN:
            return cls._at(chess.Board(), (), (), Setup())
        board = read_fen(fen, chess960)
        text = board.fen(shredder=chess960)
        game = cls._at(board, (), (), Setup())
        if game.ending:
            raise ValueError(f"fen={fen!r}: the game is over there ({game.ending.lower()})")
        return cls._at(board, (), (), Setup(f"the game starts from {text}.", game.legal[0], chess960))

    @classmethod
    def _at(cls, board: chess.Board, seen: tuple[Position, ...], log: tuple[Event, ...], setup: Setup) -> Self:
        """The game on this board, which is not kept; its en passant square goes if nobody may capture there."""
        if board.ep_square is not None and not board.has_legal_en_passant():
            board.ep_square = None
        legal, check = legal_moves(board)
        position, clock = Position.of(board), board.halfmove_clock
        seen = (*seen, position) if clock else (position,)
        times = seen.count(position) if clock > 3 else 1
        ending = ""
        if not legal:
            ending = MATE if check else STALEMATE
        elif times > 2:
            ending = "threefold repetition"
        elif clock > 99:
            ending = "the fifty-move rule"
        elif not board.pawns | board.rooks | board.queens and board.is_insufficient_material():
            ending = "insufficient material"
        if ending:
            legal = ()
        return cls(position, clock, board.fullmove_number, legal, check, seen, times, ending, log, setup)

    def board(self) -> chess.Board:
        """The position as a new board of python-chess, without the moves that led to it."""
        board = self.position.board(self.setup.chess960)
        board.halfmove_clock, board.fullmove_number = self.clock, self.number
        return board

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return NOBODY if self.ending else SEAT[not self.position.turn]

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        start, example, chess960 = self.setup
        castling = "the king taking its own rook (e1h1)" if chess960 else "the king's two steps (e1g1)"
        variant = " with the castling of Chess960" if chess960 else ""
        return RULES.format(variant=variant, colour=COLOURS[player], setup=start, castling=castling, example=example)

    def observation(self, player: Player) -> str:
        """The board, then all that a FEN says of it, in words and in the FEN's notation."""
        return f"You are {COLOURS[player]}.\n{self.render()}"

    def render(self) -> str:
        """What both players see."""
        position = self.position
        ep = "-" if position.ep is None else chess.SQUARE_NAMES[position.ep]
        return (
            f"{draw(position.white, position.black, position[2:8])}\n{self._status()}\nMove: {self.number}. "
            f"Castling: {castling_field(position.castling, self.setup.chess960)}. En passant: {ep}. "
            f"Halfmove clock: {self.clock}."
        )

    def drawing(self) -> Drawing:
        """White below; a king in check is marked."""
        board = self.board()
        ranks = [[board.piece_at(chess.square(file, 7 - row)) for file in range(8)] for row in range(8)]
        cells = tuple([tuple(["" if piece is None else GLYPHS[piece.symbol()] for piece in rank]) for rank in ranks])
        king = board.king(board.turn) if self.in_check else None
        marked = () if king is None else ((7 - chess.square_rank(king), chess.square_file(king)),)
        return Drawing(cells, "squares", tuple("87654321"), tuple(chess.FILE_NAMES), OWNERS, marked)

    def _status(self) -> str:
        turn = self.position.turn
        if self.ending:
            # the side to move has lost: White (True) to Black, COLOURS[1]
            return f"Checkmate: {COLOURS[turn]} wins." if self.ending == MATE else f"Draw by {self.ending}."
        status = "White to move." if turn else "Black to move."
        if self.in_check:
            status += " Check."
        if self.times > 1:
            status += " This position has occurred twice: a third time is a draw."
        return status

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """See `Game.legal_actions`; castling in Chess960 is the king taking its own rook."""
        return () if player == self.position.turn else self.legal

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        if action not in self.legal:
            known = action in MOVES
            raise IllegalAction(
                f"{action} is not legal in this position"
                if known
                else "write a legal move in UCI, such as e2e4 or e7e8q"
            )
        board = self.board()
        board.push(MOVES[action])
        return self._at(board, self.seen, (*self.log, PLAYS[not self.position.turn][action]), self.setup)

    def normalize(self, text: str, player: Player) -> Action:
        """UCI for SAN and its like (`chess_text.read_move`)."""
        if text in self.legal or self.to_act() != (player,):
            return text
        move = read_move(text, self.board())
        return move if move in self.legal else text

    def returns(self) -> tuple[float, ...]:
        """See `Game.returns`."""
        if self.ending != MATE:
            return (0.0, 0.0)
        return (-1.0, 1.0) if self.position.turn else (1.0, -1.0)

    def pgn(self, actions: Sequence[Action], players: Sequence[str], tags: Mapping[str, str]) -> str:
        """See `Game.pgn`."""
        from arena.games.board.chess_pgn import write_pgn  # who only plays needs none of it

        return write_pgn(self.board(), actions, players, tags)

    def events(self, player: Player) -> tuple[Event, ...]:
        """The moves so far."""
        return self.log

    def max_turns(self) -> int:
        """See `MAX_TURNS`."""
        return MAX_TURNS

    def max_length(self) -> int:
        """An event and its line break take at most 19 characters."""
        return MAX_TURNS * 19 + 512

    def max_action(self) -> int:
        """UCI needs 5; `normalize` reads longer notations."""
        return 32

    def action_table(self) -> tuple[Action, ...]:
        """The 1,968 moves of queens and knights on an empty board and of promotions; castling looks like these."""
        return ACTIONS

    def features(self, player: Player) -> tuple[float, ...]:
        """796 numbers. Squares run from a1 by ranks to h8 for both seats, as `action_table` does; 1 is a piece.

        64 for each of my pawns, knights, bishops, rooks, queens and kings, then of theirs; eight files of my rooks that
        may castle, then of theirs; eight files of the en passant square; 1 if I am White, else -1; 1 if it is my turn;
        the halfmove clock in hundreds; 1 if the position has occurred before.
        """
        at = self.position
        numbers: list[float] = []
        mine, theirs = (at.white, at.black) if player == 0 else (at.black, at.white)
        for men in (mine, theirs):
            for kind in at[2:8]:
                for rank in (kind & men).to_bytes(8, "little"):
                    numbers += BITS[rank]
        rights = at.castling & 255, at.castling >> 56
        ep = 0 if at.ep is None else 1 << (at.ep & 7)
        numbers += BITS[rights[player]] + BITS[rights[1 - player]] + BITS[ep]
        turn = self.to_act() == (player,)
        numbers += (1.0 - 2 * player, float(turn), min(self.clock / 100, 1.0), float(self.times > 1))
        return tuple(numbers)
