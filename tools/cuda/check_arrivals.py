#!/usr/bin/env python3
"""Whether arrivals at mbarriers wait for the ldmatrix before them.

    tools/cuda/check_arrivals.py [--loads] FILE...

FILE: an object or library with code for sm_90a. An arrival does not wait for reads of shared memory that are
under way, and the copy that it lets start may overtake them (src/kernels/cuda/bulk_copy.cuh, arrive_after_reads).
In the machine code of each kernel that has both, what an LDSM of the last 128 instructions brought must have been
used before an arrival, if no other arrival lies between. Instructions are taken in the order of their addresses,
so a branch may hide a fault or show one that is none: look at what is printed. --loads: plain loads (LDS) count, too,
though they may read what no arrival gives back, such as a plan. Exits with 1 where any was found,
with 77 where there is no cuobjdump (CUDA's bin folder, or the wheel nvidia-cuda-cuobjdump). Standard library only.
"""

import re
import shutil
import subprocess
import sys

NEAR = 16  # instructions: arrivals so close to each other are of one place
FAR = 128  # what is read earlier, such as queries, is in no place of a ring
LINE = re.compile(r"^\s*/\*([0-9a-f]{4,6})\*/\s+(.*?)\s*;")


def kernels(path, tool):
    """(name, [(address, instruction)]) of each kernel."""
    name, code = None, []
    dump = subprocess.run([tool, "-sass", path], check=True, capture_output=True, text=True).stdout
    for line in dump.splitlines():
        if "Function :" in line:
            if name:
                yield name, code
            name, code = line.split(":", 1)[1].strip(), []
        elif match := LINE.match(line):
            code.append((int(match[1], 16), match[2]))
    if name:
        yield name, code


def reads(instruction, first, count=4):
    """Whether the instruction reads one of `count` registers from `first` on."""
    text = re.sub(r"^@!?U?P\d+\s+", "", instruction)
    opcode, _, operands = text.partition(" ")
    wanted = set(range(first, first + count))
    if opcode.startswith("HMMA"):
        _, a, b, c = (int(n) if n.isdigit() else -9 for n in re.findall(r"\bR(\w+)", operands)[:4])
        return bool(wanted & {a, a + 1, a + 2, a + 3, b, b + 1, c, c + 1, c + 2, c + 3})
    stores = opcode.startswith(("ST", "SYNCS", "RED", "ATOM"))
    sources = operands if stores else operands.partition(",")[2]
    return bool(wanted & {int(n) for n in re.findall(r"\bR(\d+)\b", sources)})


def loaded(instruction, loads):
    """(first register, how many) of what a read of shared memory brings; None: it is none that counts."""
    match = re.search(r"\bLDS(M?)(\S*) R(\d+),", instruction)
    if match is None or not (match[1] or loads):
        return None
    width = 4 if match[1] or ".128" in match[2] else 2 if ".64" in match[2] else 1
    return int(match[3]), width


def faults(code, loads):
    """(address of an arrival, the read that it does not wait for)."""
    arrivals = [i for i, (_, text) in enumerate(code) if "SYNCS.ARRIVE" in text and ".A1T0" in text]
    for at in arrivals:
        before = [i for i in arrivals if i < at - NEAR]
        for i in range(max(before[-1] if before else 0, at - FAR), at):
            load = loaded(code[i][1], loads)
            if load and not any(reads(code[k][1], *load) for k in range(i + 1, at)):
                yield code[at][0], f"{code[i][0]:x}: {code[i][1]}"


def main():
    tool = shutil.which("cuobjdump")
    loads = "--loads" in sys.argv[1:]
    files = [path for path in sys.argv[1:] if path != "--loads"]
    if not files:
        sys.exit(__doc__)
    if tool is None:
        print("SKIPPED: there is no cuobjdump; install CUDA's or the wheel nvidia-cuda-cuobjdump")
        return 77
    checked = found = 0
    for path in files:
        for name, code in kernels(path, tool):
            if not any("LDSM" in text or (loads and "LDS" in text) for _, text in code):
                continue
            checked += any("SYNCS.ARRIVE" in text for _, text in code)
            for address, load in faults(code, loads):
                found += 1
                print(f"{name}: the arrival at {address:x} does not wait for {load}")
    print(f"{checked} kernels with such reads and arrivals, {found} arrivals that do not wait for a read")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
