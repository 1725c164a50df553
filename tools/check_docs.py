#!/usr/bin/env python3
"""Links of the documents lead to something, and the programs of the tree that they name are there.

A link without a scheme is a file of the tree, with `#heading` a heading of it. A path in backquotes or
in a block of code that begins with one of FOLDERS and ends in a suffix of SUFFIXES is a file. Exit code
1: a line for each that is not there.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("tools", "tests", "bench", "examples", "deploy", "packaging", "models")
SUFFIXES = ("py", "sh", "cpp", "h", "md", "txt", "json", "yml", "yaml")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
PATH = re.compile(rf"(?<![\w/.*-])((?:{'|'.join(FOLDERS)})/[\w./-]+\.(?:{'|'.join(SUFFIXES)}))(?![\w/*])")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def anchors(text):
    """The names that a page's headings can be linked by, as GitHub makes them."""
    lines = re.findall(r"^#+ +(.*?) *$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def faults_of(page):
    text = page.read_text(encoding="utf-8")
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"the link to {link} leads nowhere"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{name or page.name} has no heading #{anchor}"
    for code in CODE.findall(text):
        for path in PATH.findall(code):
            # x stands for any name: tests/doors/x_door.py.
            if not (ROOT / path).exists() and not re.match(r"x[._]", pathlib.PurePath(path).name):
                yield f"{path} is not there"


def main():
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True,
                           check=False).stdout.split()
    # What the history names may be gone; a card's links are those of the model's folder.
    pages = [ROOT / name for name in names or ["README.md", "CONTRIBUTING.md"]
             if name != "CHANGELOG.md" and "/cards/" not in name and (ROOT / name).is_file()]
    faults = [f"{page.relative_to(ROOT)}: {fault}" for page in pages for fault in faults_of(page)]
    print("\n".join(faults) or f"docs: {len(pages)} pages")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
