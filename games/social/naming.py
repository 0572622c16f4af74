"""How a text that names a player is read: a number or nobody, with no other verb than the one that is asked for."""

import re

from arena.games.talk import MESSAGE

__all__ = ["read_name"]

ABSTAIN = ("nobody", "noone", "no one", "none", "abstain", "skip", "pass")
FORMS = {
    "kill": "kill kills killing",
    "protect": "protect protects protecting",
    "investigate": "investigate investigates investigating",
    "vote": "vote votes voting",
}
WORDS = "i ll d m am will would like to want choose name my is the for on against player number please"
PLAIN = frozenset(WORDS.split())
KNOWN = {verb: PLAIN | set(forms.split()) for verb, forms in FORMS.items()}
TOKEN = re.compile("[a-z]+|[0-9]+")


def read_name(text: str, verb: str) -> int | str | None:
    """The number of the player named, None for nobody, or the text itself where it means neither for sure.

    >>> read_name("I vote for Player 3.", "vote"), read_name("[3]", "kill"), read_name("Vote: no one", "vote")
    (3, 3, None)
    >>> read_name("vote 3", "kill"), read_name("not 3", "vote"), read_name("2 or 3", "vote")
    ('vote 3', 'not 3', '2 or 3')
    """
    if len(text) > MESSAGE:
        return text
    tokens = TOKEN.findall(text.lower())
    words = [token for token in tokens if not token.isdecimal()]
    numbers = {int(token) for token in tokens if token.isdecimal()}
    said = " ".join(words)
    if not numbers and (said == f"no {verb}" or said.removeprefix(f"{verb} ").removeprefix("for ") in ABSTAIN):
        return None
    return numbers.pop() if len(numbers) == 1 and KNOWN[verb].issuperset(words) else text
