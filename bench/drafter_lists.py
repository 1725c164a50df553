#!/usr/bin/env python3
"""Lists of drafters against each of their members: tokens a step on plain and on repeating prompts, with `foretoken generate`.

    bench/drafter_lists.py --bin build/cpu-release/foretoken

Greedy, 96 tokens a prompt, fixed lengths, the bundled model and drafters. Counts outputs that differ from those without
speculation. Prints a line for each kind of prompts and drafter. Standard library only.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NGRAM = {"method": "ngram", "num_speculative_tokens": 6, "prompt_lookup_min": 2, "prompt_lookup_max": 5}
SUFFIX = {"method": "suffix", "num_speculative_tokens": 6}


def head(name):
    folder = "foretoken-7m-" + name.removesuffix("_model")
    return {"method": name, "model": str(ROOT / "models" / folder), "num_speculative_tokens": 4}


DRAFTERS = {
    "off": None,
    "ngram": NGRAM,
    "suffix": SUFFIX,
    "eagle3": head("eagle3"),
    "draft_model": head("draft_model"),
    "ngram+eagle3": {"method": [NGRAM, head("eagle3")]},
    "suffix+eagle3": {"method": [SUFFIX, head("eagle3")]},
    "ngram+draft_model": {"method": [NGRAM, head("draft_model")]},
}
STORIES = ["Once upon a time there was a little dog named Max. He had a red ball.",
           "Lily and Tom went to the park. They saw a big tree.", "One day a small bird could not find her nest.",
           "The sun was warm and the cat sat by the window."]
WORDS = ["red blue green ", "one two three four ", "dog cat bird ", "run hop skip jump "]


def prompts(count):
    lines = (ROOT / "bench/prompts/prompts.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["prompt"] for line in lines[:count]]
    plain = [f"{STORIES[i % 4]} {text[:60]}" for i, text in enumerate(texts)]
    repeating = [WORDS[i % 4] * (8 + i) for i in range(count)]
    return {"plain": plain, "repeating": repeating, "mixed": [p for pair in zip(plain, repeating) for p in pair]}


def run(args, texts, drafter):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for text in texts:
            fields = {"prompt": text, "max_tokens": 96, "ignore_eos": True, "temperature": 0.0}
            file.write(json.dumps(fields) + "\n")
        file.flush()
        command = [args.bin, "generate", "--model", str(ROOT / "models/foretoken-7m"), "--jsonl", file.name, "--json",
                   "--max-num-seqs", "8", "--log-level", "error"]
        if drafter is not None:
            command += ["-sc", json.dumps({**drafter, "length_policy": args.policy})]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--policy", default="fixed")
    args = parser.parse_args()
    for kind, texts in prompts(args.prompts).items():
        base = None
        for name, drafter in DRAFTERS.items():
            outputs = run(args, texts, drafter)
            ids = [output.get("token_ids", output.get("text")) for output in outputs]
            base = base or ids
            total = {field: sum(output["usage"][field] for output in outputs)
                     for field in ("completion_tokens", "steps", "drafts", "drafted_tokens", "accepted_tokens")}
            length = 1 + total["accepted_tokens"] / total["drafts"] if total["drafts"] else 1
            print(f"{kind:10} {name:18} differ {sum(a != b for a, b in zip(ids, base))} of {len(ids)}, tokens a step "
                  f"{total['completion_tokens'] / total['steps']:.2f}, mean acceptance length {length:.2f}, accepted "
                  f"{total['accepted_tokens']} of {total['drafted_tokens']}", flush=True)


if __name__ == "__main__":
    main()
