#!/usr/bin/env python3
"""Structured outputs of a set of JSON schemas, with and without speculation: every complete output
is validated with the package `jsonschema`, ids are compared, and token rates are printed.

The schemas are JSON lines (perhaps gzipped) with "name" and "schema". Needs `pip install jsonschema`.
"""

import argparse
import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "models" / "foretoken-7m"


def drafter(method, k):
    if method == "off":
        return []
    config = {"method": method, "num_speculative_tokens": k, "length_policy": "fixed"}
    if method == "ngram":
        config.update(prompt_lookup_min=2, prompt_lookup_max=4)
    else:
        suffix = "draft" if method == "draft_model" else method
        config["model"] = str(TARGET.with_name(f"{TARGET.name}-{suffix}"))
    return ["--speculative-config", json.dumps(config)]


def run(args, schemas, method):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        words = [args.bin, "bench", "grammar", "--schemas", schemas, "--every", str(args.every),
                 "--max-tokens", str(args.max_tokens), "--rounds", str(args.rounds),
                 "--temperature", str(args.temperature), "--max-num-seqs", str(args.concurrency),
                 "--log-level", "error", "--output-json", out.name, *drafter(method, args.num_drafts)]
        if args.any_whitespace:
            words.append("--any-whitespace")
        words += args.engine
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{' '.join(words)}\n{result.stderr}")
        print(f"{method}: {result.stdout.strip()}", flush=True)
        return json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))


def judge(schema, output):
    """What became of an output: valid, cut, refused, or wrong."""
    if output["error"]:
        return "refused: " + output["error"].replace("structured_outputs: ", "")[:60]
    if output["finish_reason"] != "stop":
        return "cut at the length"
    try:
        value = json.loads(output["text"])
        validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        validator(schema).validate(value)
    except (ValueError, jsonschema.ValidationError) as error:
        return f"WRONG: {str(error).splitlines()[0]}"
    return "valid"


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Flags of the engine go behind --.")
    parser.add_argument("schemas")
    parser.add_argument("--bin", default=str(ROOT / "build" / "cpu-release" / "foretoken"))
    parser.add_argument("--methods", nargs="+", default=["ngram", "draft_model"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--num-drafts", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--any-whitespace", action="store_true")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:cut])
    args.engine = words[cut + 1:]

    opener = gzip.open if args.schemas.endswith(".gz") else open
    with opener(args.schemas, "rt", encoding="utf-8") as file:
        lines = file.read()
    schemas = [json.loads(line)["schema"] for line in lines.splitlines()][:: args.every]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as plain:
        plain.write(lines)
        plain.flush()
        base = run(args, plain.name, "off")
        others = {method: run(args, plain.name, method) for method in args.methods}

    counts = collections.Counter()
    for schema, output in zip(schemas, base["outputs"], strict=True):
        verdict = judge(schema, output)
        counts[verdict.split(":")[0] if verdict.startswith("WRONG") else verdict] += 1
        if verdict.startswith("WRONG"):
            print(f"{output['name']}: {verdict}\n  {output['text']}")
    for verdict, count in counts.most_common():
        print(f"{count:5} {verdict}")
    differing = 0
    for method, other in others.items():
        same = [a["token_ids"] == b["token_ids"] and a["finish_reason"] == b["finish_reason"]
                for a, b in zip(base["outputs"], other["outputs"], strict=True)]
        differing += same.count(False)
        drafted = sum(output["drafted"] for output in other["outputs"])
        accepted = sum(output["accepted"] for output in other["outputs"])
        print(f"{method}: {same.count(False)} of {len(same)} outputs differ; drafted {drafted}, "
              f"accepted {accepted}; rate with/without grammar {other['ratio']:.3f}")
    print(f"off: rate with/without grammar {base['ratio']:.3f}")
    return 1 if counts["WRONG"] or differing else 0


if __name__ == "__main__":
    sys.exit(main())
