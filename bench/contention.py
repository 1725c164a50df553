#!/usr/bin/env python3
"""Decode speed beside processes that burn every core, against the fair share.

A machine of C cores on which B busy processes run beside the engine's T threads gives the engine a
fair share of T / (T + B) of the cores' time when B + T > C. Alone and beside are measured in turns,
so that a machine whose speed drifts does not favour either.

  bench/contention.py build/foretoken bench/configs/llama-1b --load-format dummy
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def ms_per_token(args, folder):
    out = pathlib.Path(folder) / "decode.json"
    command = [args.foretoken, "bench", "decode", args.model, "--load-format", args.load_format,
               "--batch-sizes", "1", "--input-lens", "16", "--output-len", str(args.output_len),
               "--short-output-len", "4", "--num-iters-warmup", "0", "--num-iters", "1",
               "--max-model-len", "512", "--output-json", str(out), *args.flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(out.read_text())["sizes"][0]["variants"][0]["ms_per_token"]


def burn(count):
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("foretoken")
    parser.add_argument("model")
    parser.add_argument("--load-format", default="auto")
    parser.add_argument("--output-len", type=int, default=36)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--burners", type=int, default=os.cpu_count())
    parser.add_argument("flags", nargs="*", help="further flags of `foretoken bench decode`")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    fair = min(1.0, cores / (cores + args.burners))
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(args.rounds):
            alone = ms_per_token(args, folder)
            burners = burn(args.burners)
            try:
                beside = ms_per_token(args, folder)
            finally:
                for process in burners:
                    process.kill()
                    process.wait()
            shares.append(alone / beside)
            print(f"round {i + 1}: alone {alone:.1f} ms a token, beside {beside:.1f}: "
                  f"{alone / beside:.3f} of alone, {alone / beside / fair:.2f} of the fair share")
    print(f"median {statistics.median(shares):.3f} of alone; fair {fair:.3f}; "
          f"{statistics.median(shares) / fair:.2f} of the fair share")


if __name__ == "__main__":
    main()
