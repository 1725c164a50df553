#!/usr/bin/env python3
"""Perplexity of GGUF files beside llama.cpp's, on the same tokens: windows of a text, of each the second
half scored, as llama-perplexity does it.

usage: gguf_perplexity.py --text FILE[.gz] --llama FOLDER [--foretoken PROGRAM] [--chunks 8] [--window 512]
                          [--flags="--dtype float32"] [--llama-flags="-ctk f32 -ctv f32 -fa off"] FILE...
FOLDER has llama-perplexity. Prints a row of a table for each file.
"""

import argparse
import gzip
import json
import math
import pathlib
import re
import subprocess
import tempfile


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return file.read()


def ids_of(args, model, text):
    """The text's tokens: what a prompt of it has behind a special token."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        prompts.write(json.dumps({"prompt": args.special + text, "max_tokens": 1, "prompt_logprobs": 0}) + "\n")
        prompts.flush()
        out = subprocess.run([args.foretoken, "generate", "--model", model, "--jsonl", prompts.name, "--json"],
                             capture_output=True, text=True, check=True).stdout
    return [place["token_id"] for place in json.loads(out.splitlines()[0])["prompt_logprobs"]]


def ours(args, model, windows):
    """e to the mean negative log-probability of the second halves of all windows."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        for ids in windows:
            prompts.write(json.dumps({"prompt_token_ids": ids, "max_tokens": 1, "prompt_logprobs": 0,
                                      "temperature": 0}) + "\n")
        prompts.flush()
        out = subprocess.run([args.foretoken, "generate", "--model", model, "--jsonl", prompts.name,
                              "--json", *args.flags.split()], capture_output=True, text=True, check=True).stdout
    scores = []
    for line in out.splitlines():
        places = json.loads(line)["prompt_logprobs"]
        scores += [place["logprob"] for place in places[args.window // 2:]]
    return math.exp(-sum(scores) / len(scores)), len(scores)


def theirs(args, model, text):
    program = str(pathlib.Path(args.llama) / "llama-perplexity")
    done = subprocess.run([program, "-m", model, "-f", text, "-c", str(args.window), "-b", str(args.window),
                           "--chunks", str(args.chunks), "-t", str(args.threads), *args.llama_flags.split()],
                          capture_output=True, text=True)
    found = re.search(r"Final estimate: PPL = ([0-9.]+) \+/- ([0-9.]+)", done.stdout + done.stderr)
    if not found:
        raise SystemExit(f"{program} on {model}: " + (done.stdout + done.stderr)[-500:])
    return float(found[1]), float(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--text", required=True)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--foretoken", default="build/rel/foretoken")
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp")
    parser.add_argument("--special", default="<|im_start|>", help="a special token of the model")
    parser.add_argument("--flags", default="--dtype float32")
    parser.add_argument("--llama-flags", default="-ctk f32 -ctv f32 -fa off")
    args = parser.parse_args()
    # Tokens are taken from the beginning; more text than that would be read for nothing.
    text = read(args.text)[:6 * args.window * args.chunks]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        ids = None
        print("| file | tokens | foretoken | llama.cpp | its error | difference |\n|---|---|---|---|---|---|")
        for model in args.models:
            ids = ids or ids_of(args, model, text)
            windows = [ids[at:at + args.window] for at in range(0, args.chunks * args.window, args.window)]
            own, count = ours(args, model, windows)
            other, error = theirs(args, model, file.name)
            print(f"| {pathlib.Path(model).name} | {count} | {own:.4f} | {other:.4f} | {error:.2f} | "
                  f"{own / other - 1:+.3%} |", flush=True)


if __name__ == "__main__":
    main()
