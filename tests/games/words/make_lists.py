"""Make the word lists of `games/words` anew from SCOWL, as the Debian packages wamerican-small and -large have it.

    python -m tests.games.words.make_lists american-english-small american-english-large games/words

Both word lists lie in /usr/share/dict where the packages (2020.12.07-2) are installed.
"""

import re
import sys
from pathlib import Path

LENGTHS = (4, 5, 6)
ROMAN = re.compile("m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
# Not taken at all, not even as guesses: insults for groups of people ...
SLURS = """
bohunk boong buckra chink chinks coolie coon coons cunt cunts dago dagoes dagos darkie darky dyke dykes faggot fagot
fagots fags gook gooks gypped gyps homo homos honkey honkie honky kafir kafirs kike kikes kraut krauts mick micks mong
negro nigga niggas nigger ofay poof poofs retard sambo sheeny shiksa slut sluts slutty spic spick spicks spics squaw
squaws whore whores wogs wops yids
"""
# ... and abbreviations.
SHORT = """
abbr acct acpt actg adjt advt assn assoc asst astr atty attn attrib avdp bact bdrm bibl biog bldg blvd brit
capt chem coll cong conj cont contd csch decd dept dict eccl elem elev encl engr exch excl ftps geol geom govt hdqrs
hist hons hosp ibid illus imit imper impf impv incl incr indef indic insp inst instr intr invt irreg lect lgth mfrs misc
mtge natl neut obdt orch ordn orig pkwy plur poss pres prob pron pseud publ quot rcpt recd retd rhet secy shpt shtg
supt surv synd tbsp terr tnpk transl treas univ wkly
"""
REFUSED = frozenset(f"{SLURS} {SHORT}".split())
# Allowed as guesses, like every word of the large list, but nobody is asked to find them.
NOT_ASKED = {"anus", "pussy", "rape", "raped", "raper", "rapes", "rapist", "tits"}


def lists(common: set[str], large: set[str], length: int) -> tuple[list[str], list[str]]:
    """Answers (common words that are no plain plural or verb form in -s) and guesses (all), in order."""
    word = re.compile(f"[a-z]{{{length}}}")
    guesses = sorted(w for w in common | large if word.fullmatch(w) and not ROMAN.fullmatch(w) and w not in REFUSED)
    plural = {w for w in guesses if w.endswith("s") and not w.endswith("ss") and w[:-1] in large}
    return [w for w in guesses if w in common and w not in plural and w not in NOT_ASKED], guesses


def main(common: str, large: str, folder: str) -> None:
    small_words, large_words = (set(Path(name).read_text(encoding="utf-8").split()) for name in (common, large))
    for length in LENGTHS:
        for kind, words in zip(("answers", "guesses"), lists(small_words, large_words, length), strict=True):
            Path(folder, f"{kind}-{length}.txt").write_text("\n".join(words) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
