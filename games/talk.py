"""Talk: how long a message may be, how much room it takes when shown, and how a one-word answer is read."""

from arena.game import IllegalAction, Player

__all__ = ["MESSAGE", "PUNCTUATION", "SHOWN", "bare", "check_message"]

MESSAGE = 500
"""The most characters one message may have. It may be empty: silence."""
SHOWN = 10 * MESSAGE + len('Player 63: ""\n')
"""A bound on the characters of one shown message: quoting writes one character as at most ten."""
ANSWER = 64
"""Longer texts are not read as an answer."""
PUNCTUATION = " \t\r\n.,:;!?'\"`*_()[]{}<>"


def check_message(text: str, player: Player) -> None:
    """Raise IllegalAction if the message is too long."""
    if len(text) > MESSAGE:
        raise IllegalAction(f"a message has at most {MESSAGE} characters, yours has {len(text)}", player)


def bare(text: str) -> str:
    """A short answer without case and without the blanks and punctuation around it; a long text as it is.

    >>> bare(" **[Rock]**. ")
    'rock'
    """
    return text.strip(PUNCTUATION).lower() if len(text) <= ANSWER else text
