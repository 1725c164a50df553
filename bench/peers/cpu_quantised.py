#!/usr/bin/env python3
"""Forwards of one model file by Foretoken and by llama.cpp, in turns, on a CPU.

Each round probes the read bandwidth, then times llama-bench and `foretoken bench forward` on every
file: one row, a few rows of one sequence and a prompt of 512, all behind 128 tokens. Bandwidth on
shared machines drifts, so only medians of the ratios of a round mean something. One row of llama.cpp is its
token generation; its other figures compute the logits of the last row only, ours of all rows.

usage: cpu_quantised.py --llama BIN_FOLDER [--foretoken PROGRAM] [--probe MEMBW] [--rounds 3] [--rows 1 4 8] FILE...
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

CONTEXT = 128
PROMPT = 512


def llama(folder, path, threads, rows):
    """Milliseconds by number of rows."""
    times = {}
    base = [os.path.join(folder, "llama-bench"), "-m", path, "-t", str(threads), "-o", "jsonl"]
    runs = [["-p", "0", "-n", "16", "-d", str(CONTEXT), "-r", "3"],
            ["-p", ",".join(map(str, rows[1:])), "-n", "0", "-d", str(CONTEXT), "-r", "3"],
            ["-p", str(PROMPT), "-n", "0", "-d", str(CONTEXT), "-r", "2"]]
    for run in runs:
        out = subprocess.run(base + run, capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            entry = json.loads(line)
            tokens = entry["n_prompt"] or entry["n_gen"]
            ms = min(entry["samples_ns"]) / 1e6
            times[entry["n_prompt"] or 1] = ms if entry["n_prompt"] else ms / tokens
    return times


def foretoken(program, path, threads, rows):
    """Milliseconds by number of rows, all logits included (of a prompt: those of its last row)."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([program, "bench", "forward", path, "--rows-per-seq",
                        *map(str, rows + [PROMPT]), "--context", str(CONTEXT), "--spec-method",
                        "ngram", "--spec-tokens", str(rows[-1] - 1), "--max-model-len", "1024",
                        "--max-num-seqs", "4", "--seconds", "0.5", "--cpu-threads", str(threads),
                        "--skip-tokenizer-init", "--output-json", out.name],
                       capture_output=True, check=True)
        shapes = json.load(open(out.name))["shapes"]
    return {shape["rows_per_seq"]: shape["with_logits"]["graph_ms"] for shape in shapes}


def bandwidth(probe):
    """The best of a few reads, in GB/s."""
    if probe is None:
        return 0.0
    out = subprocess.run([probe, "2", "1", "3", "h", "2", "2048"], capture_output=True, text=True,
                         check=True).stdout
    return max(float(line.split()[3]) for line in out.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--llama", required=True)
    parser.add_argument("--foretoken", default="build/rel/foretoken")
    parser.add_argument("--probe")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4, 8],
                        help="rows of one sequence, 1 first")
    args = parser.parse_args()
    results = {path: [] for path in args.files}
    for _ in range(args.rounds):
        for path in args.files:
            before = bandwidth(args.probe)
            peer = llama(args.llama, path, args.threads, args.rows)
            own = foretoken(args.foretoken, path, args.threads, args.rows)
            rate = max(before, bandwidth(args.probe))
            results[path].append((peer, own, rate))
            print(json.dumps({"file": os.path.basename(path), "gb_s": rate, "llama_ms": peer,
                              "foretoken_ms": own}), flush=True)
    print("\n| file | rows | llama.cpp ms | Foretoken ms | llama.cpp / Foretoken | "
          "Foretoken / its one row | Foretoken / llama.cpp's one row |")
    print("|---|---|---|---|---|---|---|")
    for path, rounds in results.items():
        for rows in args.rows + [PROMPT]:
            def median(value):
                return statistics.median(value(peer, own) for peer, own, _ in rounds)
            print(f"| {os.path.basename(path)} | {rows} "
                  f"| {median(lambda p, o: p[rows]):.1f} | {median(lambda p, o: o[rows]):.1f} "
                  f"| {median(lambda p, o: p[rows] / o[rows]):.2f} "
                  f"| {median(lambda p, o: o[rows] / o[1]):.2f} "
                  f"| {median(lambda p, o: o[rows] / p[1]):.2f} |")
        rates = [rate for _, _, rate in rounds]
        size = os.path.getsize(path)
        share = 0 if not any(rates) else statistics.median(size / own[1] / 1e6 / rate for _, own, rate in rounds if rate)
        print(f"| {os.path.basename(path)} | read bandwidth {min(rates):.0f} to {max(rates):.0f} GB/s; "
              f"file bytes a second at one row / bandwidth {share:.2f} | | | | | |")


if __name__ == "__main__":
    main()
