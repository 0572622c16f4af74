"""Make the word lists of `games/words` anew from SCOWL, as the Debian packages wamerican-small and -large have it.

    python -m tests.games.words.make_lists american-english-small american-english-large games/words

Both word lists lie in /usr/share/dict where the packages (2020.12.07-2) are installed.
"""

import re
import sys
from pathlib import Path

LENGTHS = (4, 5, 6)
# Allowed as guesses, like every word of the large list, but nobody is asked to find them.
NOT_ASKED = {"anus", "chink", "dyke", "faggot", "pussy", "rape", "raped", "raper", "rapes", "rapist", "slut", "tits"}
NOT_ASKED |= {"whore"}


def lists(common: set[str], large: set[str], length: int) -> tuple[list[str], list[str]]:
    """Answers (common words that are no plain plural or verb form in -s) and guesses (all), in order."""
    word = re.compile(f"[a-z]{{{length}}}")
    guesses = sorted(w for w in common | large if word.fullmatch(w))
    plural = {w for w in guesses if w.endswith("s") and not w.endswith("ss") and w[:-1] in large}
    return [w for w in guesses if w in common and w not in plural and w not in NOT_ASKED], guesses


def main(common: str, large: str, folder: str) -> None:
    small_words, large_words = (set(Path(name).read_text(encoding="utf-8").split()) for name in (common, large))
    for length in LENGTHS:
        for kind, words in zip(("answers", "guesses"), lists(small_words, large_words, length), strict=True):
            Path(folder, f"{kind}-{length}.txt").write_text("\n".join(words) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
