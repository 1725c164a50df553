#!/usr/bin/env python3
"""Proves that no room is a hall: fails on more than 40 sources in a folder, on two folders that
include each other, on a file of more than 500 lines, and on a median above 120.

Hand-written sources count: code, scripts and tests, but no data, nothing generated and nothing of
others (vendor folders). A room is a folder with sources of its own; what lies in the folders cpu/ and
cuda/ of a room counts as this room's where includes are looked at.
"""

import collections
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("include", "src", "apps", "tests", "bench", "tools", "cmake", "text-crate", "python",
           "examples")
SUFFIXES = {".h", ".hpp", ".inl", ".cpp", ".cc", ".cu", ".cuh", ".def", ".rs", ".py", ".sh", ".js", ".cmake"}
NOT_WRITTEN = {"target", "vendor", "data", "corpus", "node_modules", "__pycache__"}
MAX_LINES, MAX_MEDIAN, MAX_FILES = 500, 120, 40
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and not NOT_WRITTEN & set(path.relative_to(ROOT).parts):
                yield path


def room_of(path):
    """A folder below the root; what includes are looked at by."""
    parts = path.relative_to(ROOT).parts[:-1]
    if len(parts) > 3:
        parts = tuple(part for part in parts if part not in ("cpu", "cuda", "flashinfer"))
    return "/".join(parts)


def included(path, text):
    """The files of this tree that a source includes."""
    for name in INCLUDE.findall(text):
        for base in (path.parent, ROOT / "src", ROOT / "tests", ROOT / "tools", ROOT):
            if (base / name).exists():
                yield (base / name).resolve()
                break


def mutual_pairs(files):
    reasons = collections.defaultdict(dict)
    for path, text in files.items():
        if path.suffix in (".rs", ".py", ".sh", ".js", ".cmake"):
            continue
        for other in included(path, text):
            a, b = room_of(path), room_of(other)
            if a != b:
                reasons[a].setdefault(b, f"{path.relative_to(ROOT)} includes {other.name}")
    return [(a, b, there, reasons[b][a])
            for a, found in sorted(reasons.items()) for b, there in sorted(found.items())
            if a < b and a in reasons[b]]


def main():
    files = {path: path.read_text(encoding="utf-8") for path in sources()}
    lines = {path: len(text.splitlines()) for path, text in files.items()}
    folders = collections.Counter(path.parent.relative_to(ROOT) for path in files)
    long = [(path, count) for path, count in lines.items() if count > MAX_LINES]
    halls = [(folder, count) for folder, count in folders.items() if count > MAX_FILES]
    pairs = mutual_pairs(files)
    median = statistics.median(lines.values())
    for path, count in sorted(long):
        print(f"error: {path.relative_to(ROOT)}: {count} lines, the limit is {MAX_LINES}; split it")
    for folder, count in sorted(halls):
        print(f"error: {folder}: {count} sources, the limit is {MAX_FILES}; make rooms")
    for a, b, there, back in pairs:
        print(f"error: {a} and {b} include each other: {there}; {back}; move what both need to one of them, or below both")
    if median > MAX_MEDIAN:
        print(f"error: the median of {len(files)} sources is {median:.0f} lines, above {MAX_MEDIAN}; split new files by their ideas")
    print(f"sizes: {len(files)} sources in {len(folders)} folders; {len(halls)} folders over {MAX_FILES}, "
          f"{len(pairs)} mutual pairs, {len(long)} over {MAX_LINES} lines, median {median:.0f}")
    return 1 if long or halls or pairs or median > MAX_MEDIAN else 0


if __name__ == "__main__":
    sys.exit(main())
