#!/usr/bin/env python3
"""Words that only this project would understand, with the field's word for each: none may stand in the source.

docs/glossary.md explains the project's own words that are allowed.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "apps", "include", "tests", "python", "tools", "cmake", "text-crate/src")
ENDINGS = (".h", ".cpp", ".cu", ".cuh", ".py", ".rs", ".sh", ".def", ".cmake")
INSTEAD = {
    r"\bkMost(?=[A-Z]|\b)\w*": "kMax...",
    r"\bmost_(?!common\b)\w*": "max_...",
    r"\bmend(s|ed|ing)?\b|_mend(s|ed)?\b|Mend(?=[A-Z_]|\b)": "repair",
    r"\b[Pp]urses?_?\b": "budget",
    r"pioneer": "first learners",
    r"\bkNobody\b": "the thing that is missing, as in kNoClass",
    r"\bcoins?_?\b": "draw",
    r"\b(Start)?[Ss]eats?_?\b": "barrier, slot or place",
    r"\btook\b(?= ?[=(]|_|\.count)": "elapsed",
}


ANY = re.compile("|".join(INSTEAD))


def faults(path):
    text = path.read_text(errors="replace")
    if not ANY.search(text):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in INSTEAD.items():
            found = re.search(pattern, line)
            if found:
                yield f"{path.relative_to(ROOT)}:{number}: '{found.group()}': write {instead}"


def sources():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *FOLDERS]
    names = subprocess.run(command, cwd=ROOT, check=True, text=True,
                           capture_output=True).stdout.split()
    skipped = ("tests/golden/", "tools/check_words.py", "tools/train/")
    return [ROOT / name for name in names if name.endswith(ENDINGS) and not name.startswith(skipped)
            and (ROOT / name).is_file()]


def main():
    found = [fault for path in sources() for fault in faults(path)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
