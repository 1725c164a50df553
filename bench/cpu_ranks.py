#!/usr/bin/env python3
"""What ranks as processes on a CPU cost: memory of each, time to start, share of collectives.

For each layout: `bench startup` (from the start of the process until the engine is ready; weights and
KV of rank 0), then `bench latency` for each batch, while the resident memory of every rank is read
from /proc. Prints Markdown.

  bench/cpu_ranks.py build/foretoken bench/configs/llama-1b --layouts "" "-tp 2" -- --load-format dummy
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

LAYOUTS = ["", "-tp 2", "-tp 4", "-pp 2", "-pp 4"]
TIMING = re.compile(r"device ([0-9.]+) ms a step.*?(?:([0-9.]+) in collectives \(([0-9.]+) %\))?; idle")


def ranks_of(pid):
    """The process and those that it started, oldest first."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            pass
    return [found[0], *sorted(found[1:])]


def peak_mib(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found.group(1)) / 1024 if found else 0


def run_and_watch(command):
    """What it prints, and the most MiB that each of its ranks had in memory."""
    peaks = {}
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        while process.poll() is None:
            for pid in ranks_of(process.pid):
                peaks[pid] = max(peaks.get(pid, 0), peak_mib(pid))
            time.sleep(0.02)
        out.seek(0)
        text = out.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{text}")
    return text, [peaks[pid] for pid in sorted(peaks)]


def start_of(args, flags):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "startup.json"
        subprocess.run([args.foretoken, "bench", "startup", args.model, *flags, "--num-iters",
                        str(args.starts), "--output-json", str(out)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Flags of the engine go behind --.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("foretoken")
    parser.add_argument("model")
    parser.add_argument("--layouts", nargs="+", default=LAYOUTS)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--output-len", type=int, default=32)
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:cut])
    args.flags = words[cut + 1:]
    args.foretoken = os.path.abspath(args.foretoken)
    print("| layout | weights, rank 0, MiB | KV, rank 0, MiB | start, s | batch | most resident by rank, MiB "
          "| ms a step | in collectives, ms | share, % |\n" + "|---" * 9 + "|")
    for layout in args.layouts:
        flags = [*layout.split(), *args.flags]
        if layout:
            flags += ["--distributed-executor-backend", "mp"]
        start = start_of(args, flags)
        first = start["runs"][0]
        for batch in args.batches:
            text, peaks = run_and_watch(
                [args.foretoken, "bench", "latency", args.model, *flags, "--batch-size", str(batch),
                 "--input-len", "32", "--output-len", str(args.output_len), "--num-iters", "3"])
            step_ms, exchange_ms, share = TIMING.search(text).groups(default="0")
            print(f"| {layout or 'one rank'} | {first['weight_bytes'] / 2**20:.0f} "
                  f"| {first['kv_cache_bytes'] / 2**20:.0f} | {start['avg_startup_time']:.2f} | {batch} "
                  f"| {', '.join(f'{peak:.0f}' for peak in peaks)} | {step_ms} | {exchange_ms} | {share} |",
                  flush=True)


if __name__ == "__main__":
    main()
