#!/usr/bin/env python3
"""Repeated agent traffic through `foretoken serve`: the same tool loop again and again, without drafts, with n-gram
and with suffix drafts.

    bench/suffix_traffic.py --bin build/cpu-release/foretoken --out OUT

A loop is a chat of --turns turns: a question, the model's answer, a tool's result, the next answer, and so on, greedy.
Loops are either all equal (`same`), or each has tool results of its own with other numbers (`other results`). For each
kind and drafter a fresh server answers --loops loops, one client after the other. Writes OUT/suffix_traffic.jsonl, a
line for each run, and prints a table: mean tokens a step, share of drafts that were accepted, output tokens/s of the
requests, of the first loop and of the last ones. Standard library only. The machine must be idle.
"""

import argparse
import json
import pathlib
import tempfile
import time
import urllib.request

from serving_overhead import ROOT, start_server

DRAFTERS = {
    "none": None,
    "ngram": {"method": "ngram", "num_speculative_tokens": 8, "prompt_lookup_min": 3, "prompt_lookup_max": 8},
    "suffix": {"method": "suffix", "num_speculative_tokens": 8},
    "suffix, 16": {"method": "suffix"},
}
SYSTEM = ("You are a helpful assistant with a tool search(query). Call it, read what it returns and tell a story "
          "about it.")
QUESTIONS = ["Tell me a story about a dog and a red ball.", "What did the cat find in the garden?",
             "Who helped the little bird?", "How did the day end?", "Tell me what they learnt.",
             "Now tell it once more from the start."]


def tool_result(turn, loop):
    """What the tool returns; `loop` 0 is the result that all equal loops have."""
    rows = [{"id": 100 * turn + i + 37 * loop, "title": f"page {turn} of the old book",
             "score": round(0.9 - 0.1 * i - 0.001 * loop, 3)} for i in range(3)]
    return json.dumps({"results": rows})


def ask(url, messages, limit):
    body = {"messages": messages, "temperature": 0, "max_tokens": limit}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def run_loop(url, args, loop):
    """Output tokens and seconds of one loop's requests."""
    messages = [{"role": "system", "content": SYSTEM}]
    tokens, seconds = 0, 0.0
    for turn in range(args.turns):
        messages.append({"role": "user", "content": QUESTIONS[turn % len(QUESTIONS)]})
        if turn > 0:
            messages[-1]["content"] += " The tool says: " + tool_result(turn, loop)
        begin = time.monotonic()
        answer = ask(url, messages, args.max_tokens)
        seconds += time.monotonic() - begin
        tokens += answer["usage"]["completion_tokens"]
        messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"] or ""})
    return tokens, seconds


def counters(url):
    """The server's sums of drafts and tokens."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    sums = {}
    for line in lines:
        if line.startswith("#") or " " not in line:
            continue
        name = line.split("{")[0].split(" ")[0]
        sums[name] = sums.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
    return {short: sums.get(f"vllm:spec_decode_num_{short}_total", 0.0)
            for short in ("drafts", "draft_tokens", "accepted_tokens")}


def measure(args, kind, name, folder):
    config = DRAFTERS[name]
    flags = ["--step-time-cache", folder]
    if config is not None:
        if args.policy:
            config = {**config, "length_policy": args.policy}
        flags += ["--speculative-config", json.dumps(config)]
    server = start_server(argparse.Namespace(bin=args.bin, model=args.model, engine=[*flags, *args.engine]))
    process, url = server[0], server[1]
    try:
        loops = [run_loop(url, args, 0 if kind == "same" else loop) for loop in range(args.loops)]
        drafts = counters(url)
    finally:
        process.terminate()
        process.wait()
    tokens = sum(loop[0] for loop in loops)
    tail = loops[len(loops) // 2:]
    steps = tokens - drafts["accepted_tokens"]
    return {"loops": kind, "drafter": name, "num_loops": args.loops, "tokens": tokens,
            "tokens_a_step": tokens / steps,
            "acceptance": drafts["accepted_tokens"] / drafts["draft_tokens"] if drafts["draft_tokens"] else 0.0,
            "mean_length": 1 + drafts["accepted_tokens"] / drafts["drafts"] if drafts["drafts"] else 1.0,
            "tokens_per_second": tokens / sum(loop[1] for loop in loops),
            "first_loop": loops[0][0] / loops[0][1],
            "second_half": sum(loop[0] for loop in tail) / sum(loop[1] for loop in tail)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--model", default=str(ROOT / "models" / "foretoken-7m"))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--loops", type=int, default=50)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--policy", default="", help="length_policy of the drafters")
    parser.add_argument("--engine", nargs="*", default=[], help="further flags of the server")
    return parser.parse_args()


def main():
    args = parse()
    args.out.mkdir(parents=True, exist_ok=True)
    with open(args.out / "suffix_traffic.jsonl", "a", encoding="utf-8") as out, \
            tempfile.TemporaryDirectory() as folder:
        print("| loops | drafter | tokens a step | mean length where drafted | accepted | tokens/s | first loop | "
              "second half |\n|---|---|---|---|---|---|---|---|")
        for kind in ("same", "other results"):
            for name in DRAFTERS:
                row = measure(args, kind, name, folder)
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(f"| {kind} | {name} | {row['tokens_a_step']:.2f} | {row['mean_length']:.2f} | "
                      f"{row['acceptance']:.0%} | {row['tokens_per_second']:.0f} | {row['first_loop']:.0f} | "
                      f"{row['second_half']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
