#!/usr/bin/env python3
"""Words that only this project would understand, with the field's word for each: none may stand in the source.

docs/glossary.md explains the project's own words that are allowed.
"""

import re
import sys

from tree import ROOT, written_sources

# This file and its test name them, and what models are trained on has sentences about anything.
APART = ("tools/check_words.py", "tools/check_words_test.py", "tools/train/")
INSTEAD = {
    r"\bkMost(?![a-z])\w*": "kMax...",
    r"(?<![A-Za-z_])most_(?!common\b)\w*": "max_...",
    r"(?<![A-Za-z])mend(s|ed|ing)?(?![a-z])|Mend(s|ed|ing)?(?![a-z])": "repair",
    r"(?<![A-Za-z])purses?(?![a-z])|Purses?(?![a-z])": "budget",
    r"[Pp]ioneer": "first learners",
    r"\bkNobody(?![a-z])": "the thing that is missing, as in kNoClass",
    r"(?<![A-Za-z])coins?(?![a-z])|Coins?(?![a-z])": "draw",
    r"(?<![A-Za-z])seats?(?![a-z])|Seats?(?![a-z])": "barrier, slot or place",
    r"\btook\b(?= ?[=(]|\.count)|\btook_": "elapsed",
}

# Without which none of the above is there: a source that has none of them need not be searched.
STEMS = ("most_", "kmost", "mend", "purse", "pioneer", "knobody", "coin", "seat", "took")


def faults(name, text):
    """The sentences about a source."""
    lower = text.lower()
    if not any(stem in lower for stem in STEMS):
        return
    for pattern, instead in INSTEAD.items():
        for found in re.finditer(pattern, text):
            yield f"{name}:{text.count(chr(10), 0, found.start()) + 1}: '{found.group()}': write {instead}"


def main():
    names = [name for name in written_sources() if not name.startswith(APART)]
    found = [fault for name in names for fault in faults(name, (ROOT / name).read_text(errors="replace"))]
    print("\n".join(found) or f"words: {len(names)} sources")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
