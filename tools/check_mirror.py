#!/usr/bin/env python3
"""Fails when a header has no test in the same room of tests/.

src/<folder>/<room>/x.h is tested by tests/<folder>/<room>/x_test.cpp; the folders cpu and cuda of a
room are no rooms of their own.

tools/mirror_exceptions.txt lists the headers without one, each as "path: reason".
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / "tools" / "mirror_exceptions.txt"


def read_exceptions():
    exceptions = {}
    for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            path, _, reason = line.partition(":")
            exceptions[path.strip()] = reason.strip()
    return exceptions


def main():
    exceptions = read_exceptions()
    problems = [f"{path}: exception without a reason; write one behind the colon in tools/mirror_exceptions.txt" for path, why in exceptions.items() if not why]
    untested = set()
    headers = sorted((ROOT / "src").rglob("*.h"))
    for header in headers:
        path = header.relative_to(ROOT)
        rooms = [part for part in path.parts[1:-1] if part not in ("cpu", "cuda", "mpi")]
        test = ROOT.joinpath("tests", *rooms, f"{header.stem}_test.cpp")
        if not test.exists():
            untested.add(path.as_posix())
            if path.as_posix() not in exceptions:
                problems.append(f"{path}: no test; create {test.relative_to(ROOT)}, or say in "
                                f"tools/mirror_exceptions.txt why it has none (\"{path}: reason\")")
    for path in sorted(set(exceptions) - untested):
        problems.append(f"{path}: listed as an exception, but it is gone or has a test; delete the line in tools/mirror_exceptions.txt")
    print("\n".join(problems) or f"mirror: {len(headers)} headers, {len(untested)} exceptions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
