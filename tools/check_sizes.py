#!/usr/bin/env python3
"""Proves that no room is a hall: fails on more than 40 sources in a folder, on two folders that
include each other, on a file of more than 500 lines, and on a median above 120.

Hand-written sources of the whole tree count (tree.py): code, scripts with or without a suffix, packaging and tests,
but no data, nothing generated and nothing of others. A room is a folder with sources of its own; what lies in the
folders cpu/ and cuda/ of a room counts as this room's where includes are looked at.
"""

import collections
import pathlib
import posixpath
import re
import statistics
import sys

from tree import ROOT, written_sources

MAX_LINES, MAX_MEDIAN, MAX_FILES = 500, 120, 40
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
INCLUDING = {".h", ".hpp", ".inl", ".inc", ".cpp", ".cc", ".cu", ".cuh"}


def room_of(name):
    """A folder below the root; what includes are looked at by."""
    parts = name.split("/")[:-1]
    if len(parts) > 3:
        parts = [part for part in parts if part not in ("cpu", "cuda", "flashinfer")]
    return "/".join(parts)


def included(name, text, files):
    """The files of this tree that a source includes."""
    for other in INCLUDE.findall(text):
        here = posixpath.normpath(posixpath.join(posixpath.dirname(name), other))
        for path in (here, "src/" + other, "tests/" + other, "tools/" + other, "python/src/" + other, other):
            if path in files:
                yield path
                break


def mutual_pairs(files):
    """(room, room, why, why back) of rooms that include each other."""
    reasons = collections.defaultdict(dict)
    for name, text in files.items():
        if pathlib.PurePath(name).suffix not in INCLUDING:
            continue
        for other in included(name, text, files):
            a, b = room_of(name), room_of(other)
            if a != b:
                reasons[a].setdefault(b, f"{name} includes {pathlib.PurePath(other).name}")
    return [(a, b, there, reasons[b][a])
            for a, found in sorted(reasons.items()) for b, there in sorted(found.items())
            if a < b and a in reasons[b]]


def faults(files):
    """The sentences about sources by their path."""
    lines = {name: len(text.splitlines()) for name, text in files.items()}
    folders = collections.Counter(name.rpartition("/")[0] for name in files)
    for name, count in sorted(lines.items()):
        if count > MAX_LINES:
            yield f"{name}: {count} lines, the limit is {MAX_LINES}; split it"
    for folder, count in sorted(folders.items()):
        if count > MAX_FILES:
            yield f"{folder}: {count} sources, the limit is {MAX_FILES}; make rooms"
    for a, b, there, back in mutual_pairs(files):
        yield f"{a} and {b} include each other: {there}; {back}; move what both need to one of them, or below both"
    median = statistics.median(lines.values())
    if median > MAX_MEDIAN:
        yield f"the median of {len(files)} sources is {median:.0f} lines, above {MAX_MEDIAN}; split new files by their ideas"


def main():
    files = {name: (ROOT / name).read_text(encoding="utf-8") for name in written_sources()}
    found = list(faults(files))
    median = statistics.median(len(text.splitlines()) for text in files.values())
    folders = {name.rpartition("/")[0] for name in files}
    print("\n".join(f"error: {fault}" for fault in found) or
          f"sizes: {len(files)} sources in {len(folders)} folders, at most {MAX_FILES} in each and {MAX_LINES} lines, median {median:.0f}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
