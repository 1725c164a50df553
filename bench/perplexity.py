#!/usr/bin/env python3
"""Perplexity of models on stories, from the log-probabilities of prompts, and what it is beside the
first model's.

usage: perplexity.py --text FILE[.gz] [--foretoken PROGRAM] [--stories 200] [--flags="--dtype float32"]
                     MODEL...
The text is cut at lines of '<|endoftext|>' or at empty lines.
"""

import argparse
import gzip
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
    """e to the mean negative log-probability of every token but the first, and the tokens."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        for text in texts:
            prompts.write(json.dumps({"prompt": text, "max_tokens": 1, "prompt_logprobs": 0,
                                      "temperature": 0}) + "\n")
        prompts.flush()
        out = subprocess.run([program, "generate", "--model", model, "--jsonl", prompts.name,
                              "--json", *flags.split()], capture_output=True, text=True,
                             check=True).stdout
    values = [entry["logprob"] for line in out.splitlines()
              for entry in json.loads(line)["prompt_logprobs"] if entry]
    return math.exp(-sum(values) / len(values)), len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--text", required=True)
    parser.add_argument("--foretoken", default="build/rel/foretoken")
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--flags", default="")
    args = parser.parse_args()
    texts = stories(args.text, args.stories)
    first = None
    for model in args.models:
        value, tokens = perplexity(args.foretoken, model, texts, args.flags)
        first = first or value
        print(f"{model}: perplexity {value:.4f} over {tokens} tokens, {value / first - 1:+.3%}",
              flush=True)


if __name__ == "__main__":
    main()
