#!/usr/bin/env python3
"""Fails when a header has no test in the same room of tests/.

src/<folder>/<room>/x.h is tested by tests/<folder>/<room>/x_test.cpp, which includes it and has a test in it; the
folders cpu, cuda and mpi of a room are no rooms of their own. The test names something that the header declares.

tools/mirror_exceptions.txt lists the headers without one, each as "path: reason", and those whose test reaches them by
another name, each as "path: by NAME: reason", where the test says NAME.
"""

import pathlib
import re
import sys

from cpp_text import code_of, without_comments
from tree import ROOT

EXCEPTIONS = "tools/mirror_exceptions.txt"
SUFFIXES = {".h", ".hpp"}
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_[FP])?\s*\(", re.M)
INCLUDE = re.compile(r"^\s*#\s*include[^\n]*", re.M)
# Types, macros, constants, and what is called and stands first with a bracket behind it.
DECLARED = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?|concept)\s+(?:\[\[\w+\]\]\s*)?(\w+)|\busing\s+(\w+)\s*="
                      r"|^[ \t]*#\s*define\s+(\w+)|(?<![\w:.])(k[A-Z]\w*)\s*(?:[=\[{},]|$)"
                      r"|^(?!#)(?![^\n(]*\b(?:return|if|while|for|switch)\b)[^\n;()=.]*?(?<![<\w>])(?<!->)(\w+)\(", re.M)
NO_NAMES = {"sizeof", "static_assert", "requires", "T", "FT_CHECK", "void", "bool", "int"}
BY = re.compile(r"by (\S+): +(\S.*)")


def read_exceptions(lines):
    """path -> reason."""
    exceptions = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            path, _, reason = line.partition(":")
            exceptions[path.strip()] = reason.strip()
    return exceptions


def test_of(header):
    """The path of the test of a header, both below the root of the tree."""
    path = pathlib.PurePosixPath(header)
    rooms = [part for part in path.parts[1:-1] if part not in ("cpu", "cuda", "mpi")]
    return "/".join(["tests", *rooms, f"{path.stem}_test.cpp"])


def declared(text):
    """The names that a header of that text declares."""
    return {name for found in DECLARED.findall(code_of(text)) for name in found if name} - NO_NAMES


def names_it(test, header):
    """Whether the text of a test names what the text of a header declares; one that declares nothing has no names."""
    names = declared(header)
    return not names or bool(names & set(re.findall(r"\w+", code_of(INCLUDE.sub("", test)))))


def lacks(header, text):
    """What a file of that text lacks as the test of a header; empty: nothing."""
    code = without_comments(text)
    name = header.removeprefix("src/")
    if not re.search(rf'^\s*#\s*include\s+"{re.escape(name)}"', code, re.M):
        return f'an #include "{name}"'
    return "" if TEST.search(code) else "a TEST"


def faults(headers, tests, exceptions):
    """The sentences about headers and tests, text by path each."""
    for path, why in exceptions.items():
        if not why:
            yield f"{path}: exception without a reason; write one behind the colon in {EXCEPTIONS}"
    untested = set()
    by_another = {path: found[1] for path, why in exceptions.items() if (found := BY.fullmatch(why))}
    for header, text in headers.items():
        test = test_of(header)
        if test not in tests:
            untested.add(header)
            if header not in exceptions or header in by_another:
                yield f'{header}: no test; create {test}, or say in {EXCEPTIONS} why it has none ("{header}: reason")'
        elif lacks(header, tests[test]):
            yield f"{header}: {test} lacks {lacks(header, tests[test])}; test what the header declares there"
        elif not names_it(tests[test], text) and header in by_another:
            untested.add(header)
            if by_another[header] not in INCLUDE.sub("", without_comments(tests[test])):
                yield f"{header}: {test} does not say {by_another[header]}; correct the line in {EXCEPTIONS}"
        elif not names_it(tests[test], text):
            yield (f"{header}: {test} names nothing that the header declares; test that there, or say in {EXCEPTIONS} "
                   f'by which name it does ("{header}: by NAME: reason")')
    for path in sorted(set(exceptions) - untested):
        yield f"{path}: listed as an exception, but it is gone or has a test that names it; delete the line in {EXCEPTIONS}"


def main():
    headers = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
               for path in sorted((ROOT / "src").rglob("*")) if path.suffix in SUFFIXES}
    tests = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*_test.cpp")}
    exceptions = read_exceptions((ROOT / EXCEPTIONS).read_text(encoding="utf-8").splitlines())
    found = list(faults(headers, tests, exceptions))
    print("\n".join(found) or f"mirror: {len(headers)} headers, {len(exceptions)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
