#!/usr/bin/env python3
"""Perplexity of models on stories, from the log-probabilities of prompts, and what it is beside the
first one's; also the share of places where the likeliest token is the first one's.

usage: perplexity.py --text FILE[.gz] [--foretoken PROGRAM] [--stories 200] [--flags="--dtype float32"]
                     [--flags="--dtype float32 --kv-cache-dtype fp8"]... MODEL...
Every model runs with each of the flags. The text is cut at lines of '<|endoftext|>' or at empty lines.
"""

import argparse
import gzip
import itertools
import json
import math
import re
import subprocess
import tempfile


def stories(path, count):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        text = file.read()
    separator = "<|endoftext|>" if "<|endoftext|>" in text else r"\n\s*\n"
    parts = [part.strip() for part in re.split(re.escape(separator) if "|" in separator
                                               else separator, text)]
    return [part for part in parts if 200 < len(part) < 4000][:count]


def perplexity(program, model, texts, flags):
    """e to the mean negative log-probability of every token but the first, and the likeliest tokens."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        for text in texts:
            prompts.write(json.dumps({"prompt": text, "max_tokens": 1, "prompt_logprobs": 1,
                                      "temperature": 0}) + "\n")
        prompts.flush()
        out = subprocess.run([program, "generate", "--model", model, "--jsonl", prompts.name,
                              "--json", *flags.split()], capture_output=True, text=True,
                             check=True).stdout
    places = [entry for line in out.splitlines()
              for entry in json.loads(line)["prompt_logprobs"] if entry]
    mean = sum(place["logprob"] for place in places) / len(places)
    return math.exp(-mean), [place["top"][0]["token_id"] for place in places]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--text", required=True)
    parser.add_argument("--foretoken", default="build/rel/foretoken")
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--flags", action="append")
    args = parser.parse_args()
    texts = stories(args.text, args.stories)
    first = None
    for model, flags in itertools.product(args.models, args.flags or [""]):
        value, likeliest = perplexity(args.foretoken, model, texts, flags)
        first = first or (value, likeliest)
        same = sum(a == b for a, b in zip(likeliest, first[1])) / len(likeliest)
        print(f"{model} {flags}: perplexity {value:.4f} over {len(likeliest)} tokens, "
              f"{value / first[0] - 1:+.3%}, the same likeliest token {same:.2%}", flush=True)


if __name__ == "__main__":
    main()
