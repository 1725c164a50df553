#!/usr/bin/env python3
"""Fails when a header has no test in the same room of tests/.

src/<folder>/<room>/x.h is tested by tests/<folder>/<room>/x_test.cpp, which includes it and has a test in it; the
folders cpu, cuda and mpi of a room are no rooms of their own.

tools/mirror_exceptions.txt lists the headers without one, each as "path: reason".
"""

import pathlib
import re
import sys

from cpp_text import without_comments

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCEPTIONS = "tools/mirror_exceptions.txt"
SUFFIXES = {".h", ".hpp"}
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_[FP])?\s*\(", re.M)


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


def lacks(header, text):
    """What a file of that text lacks as the test of a header; empty: nothing."""
    code = without_comments(text)
    name = header.removeprefix("src/")
    if not re.search(rf'^\s*#\s*include\s+"{re.escape(name)}"', code, re.M):
        return f'an #include "{name}"'
    return "" if TEST.search(code) else "a TEST"


def faults(headers, tests, exceptions):
    """The sentences about paths of headers; tests: text by path."""
    for path, why in exceptions.items():
        if not why:
            yield f"{path}: exception without a reason; write one behind the colon in {EXCEPTIONS}"
    untested = set()
    for header in headers:
        test = test_of(header)
        if test not in tests:
            untested.add(header)
            if header not in exceptions:
                yield f'{header}: no test; create {test}, or say in {EXCEPTIONS} why it has none ("{header}: reason")'
        elif lacks(header, tests[test]):
            yield f"{header}: {test} lacks {lacks(header, tests[test])}; test what the header declares there"
    for path in sorted(set(exceptions) - untested):
        yield f"{path}: listed as an exception, but it is gone or has a test; delete the line in {EXCEPTIONS}"


def main():
    headers = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "src").rglob("*")) if path.suffix in SUFFIXES]
    tests = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*_test.cpp")}
    exceptions = read_exceptions((ROOT / EXCEPTIONS).read_text(encoding="utf-8").splitlines())
    found = list(faults(headers, tests, exceptions))
    print("\n".join(found) or f"mirror: {len(headers)} headers, {len(exceptions)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
