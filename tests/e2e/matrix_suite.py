#!/usr/bin/env python3
"""One part of all cells of the support matrix that a CPU can run: matrix_suite.py PROGRAM FOLDER [I/N].
Without I/N it is the part of the day, so that runs of days see all of them. No cell may be red."""

import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys

# A part has about 190 cells, two minutes of two cores; a quarter of that where runs are short.
PARTS = 600 if os.environ.get("FORETOKEN_TEST_PROMPTS") else 150


def part_of_today():
    return f"{datetime.date.today().toordinal() % PARTS + 1}/{PARTS}"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    part = sys.argv[3] if len(sys.argv) > 3 else part_of_today()
    output = folder / "matrix-part"
    output.with_suffix(".jsonl").unlink(missing_ok=True)
    command = [program, "matrix", "--skip-rows", "--every-cell", "--part", part, "--num-prompts", "8",
               "--output", str(output), "--work-folder", str(folder / "matrix-models")]
    print(" ".join(command), flush=True)
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    cells = json.loads(output.with_suffix(".json").read_text())["cells"]
    counts = collections.Counter(cell["status"] for cell in cells)
    print(f"part {part}: {len(cells)} cells, {dict(counts)}")
    assert set(counts) == {"green reduced"}, "a cell that compat takes did not run"
    return code


if __name__ == "__main__":
    sys.exit(main())
