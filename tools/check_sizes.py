#!/usr/bin/env python3
"""Fails on a source file of more than 800 lines; warns from 400 on."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("include", "src", "apps", "tests", "bench", "tools", "cmake", "text-crate", "python")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".rs", ".py", ".sh", ".cmake"}
WARN, LIMIT = 400, 800


def main():
    too_long = False
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or "target" in path.parts:
                continue
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LIMIT:
                print(f"error: {path.relative_to(ROOT)}: {lines} lines, the limit is {LIMIT}; split it")
                too_long = True
            elif lines > WARN:
                print(f"warning: {path.relative_to(ROOT)}: {lines} lines")
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
