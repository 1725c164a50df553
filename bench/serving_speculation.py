#!/usr/bin/env python3
"""Tokens/s of `foretoken serve` with each drafter beside the same server without speculation.

    bench/serving_speculation.py --bin build/cpu-release/foretoken --out OUT --clients 1,4,16

For each drafter two servers run on the bundled model, one with drafts and one without; the one with drafts starts
with an empty cache of step times, so that it measures between requests as a new installation does. Equal loads go to
both in turns, round by round; round 0 is the first load that a new server gets. Prompts, greedy, ignoring EOS.
Writes OUT/serving_speculation.jsonl, a line for each round, and prints medians. Standard library only.
The machine must be idle.
"""

import argparse
import json
import pathlib
import statistics
import tempfile

from serving_overhead import (ROOT, load_parser, parse_load, served, shared_flags, start_server,
                              write_prompts)

MODELS = ROOT / "models"
DRAFTERS = {
    "ngram": {"method": "ngram", "num_speculative_tokens": 4},
    "draft_model": {"model": str(MODELS / "foretoken-7m-draft"), "num_speculative_tokens": 4},
    "eagle": {"method": "eagle", "model": str(MODELS / "foretoken-7m-eagle"),
              "num_speculative_tokens": 3},
    "eagle3": {"method": "eagle3", "model": str(MODELS / "foretoken-7m-eagle3"),
               "num_speculative_tokens": 3},
    "mtp": {"method": "mtp", "model": str(MODELS / "foretoken-7m-mtp"),
            "num_speculative_tokens": 2},
}


def start(args, folder, flags):
    return start_server(argparse.Namespace(bin=args.bin, model=args.model, engine=[
        "--step-time-cache", folder, *flags, *args.engine]))


def rates(args, urls, clients, requests, order, folder):
    """Output tokens/s of each server under one load, in `order`."""
    prompts = str(pathlib.Path(folder) / f"prompts-{clients}.jsonl")
    write_prompts(prompts, requests, args.words, clients)
    flags = shared_flags(args, prompts, clients, requests)
    # A first load is part of what is measured.
    flags[flags.index("--num-warmups") + 1] = "0"
    return {way: served(args, folder, flags, urls[way])["tokens_per_second"] for way in order}


def measure(args, drafter, folder, out):
    config = json.dumps(DRAFTERS[drafter])
    cache = tempfile.mkdtemp(dir=folder)
    servers = {"off": start(args, cache, []),
               "on": start(args, cache, ["--speculative-config", config])}
    urls = {way: server[1] for way, server in servers.items()}
    ratios = {}
    try:
        for number in range(args.rounds):
            for clients, requests in zip(args.clients, args.requests):
                order = ["off", "on"] if number % 2 == 0 else ["on", "off"]
                found = rates(args, urls, clients, requests, order, folder)
                ratios.setdefault(clients, []).append(found["on"] / found["off"])
                out.write(json.dumps({"drafter": drafter, "round": number, "clients": clients,
                                      "requests": requests, **found}) + "\n")
                out.flush()
    finally:
        for process, _ in servers.values():
            process.terminate()
            process.wait(timeout=60)
    for clients, found in ratios.items():
        print(f"{drafter}, {clients} clients: with drafts / without = "
              f"{statistics.median(found):.3f} ({', '.join(f'{ratio:.3f}' for ratio in found)})",
              flush=True)


def main():
    parser = load_parser(__doc__, clients=[1, 4, 16], requests=[6, 16, 48], rounds=3, words=[40, 160])
    parser.add_argument("--drafters", type=lambda text: text.split(","), default=list(DRAFTERS))
    args = parse_load(parser)
    folder = pathlib.Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "serving_speculation.jsonl", "w", encoding="utf-8") as out, \
            tempfile.TemporaryDirectory() as scratch:
        for drafter in args.drafters:
            measure(args, drafter, scratch, out)


if __name__ == "__main__":
    main()
