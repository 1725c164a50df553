"""C++ sources without what is no code, for the checks of tools/: every line stays where it is."""

import re

# Every alternative begins with its mark, by which the search is fast. Line splices inside of a comment or literal do
# not occur in this tree.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|"(?<=R")(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?<![0-9a-fA-F]')(?:\\.|[^'\\\n])+'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)


def _lines(text):
    return "\n" * text.count("\n")


def without_comments(text):
    """The text with its literals and without its comments."""
    return NO_CODE.sub(lambda found: " " + _lines(found[0]) if found[0].startswith("/") else found[0], text)


def code_of(text):
    """The text without comments, and with literals that say nothing: "" and 0."""
    def instead(found):
        if found[0].startswith("/"):
            return " " + _lines(found[0])
        return ("0" if found[0].endswith("'") else '""') + _lines(found[0])
    return NO_CODE.sub(instead, text)


def literals(text):
    """(begin, contents) of the string literals of a text; those beside each other are one."""
    last_end, begun = -1, None
    for found in NO_CODE.finditer(text):
        if not found[0].endswith('"') or found[0].startswith("/"):
            continue
        contents = found[0].partition('"')[2][:-1]
        if found["mark"] is not None:
            contents = contents[len(found["mark"]) + 1:-len(found["mark"]) - 1]
        if begun and not NO_CODE.sub("", text[last_end:found.start()]).strip():
            begun = (begun[0], begun[1] + contents)
        else:
            if begun:
                yield begun
            begun = (found.start(), contents)
        last_end = found.end()
    if begun:
        yield begun


def line_of(text, at):
    return text.count("\n", 0, at) + 1
