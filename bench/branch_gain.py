#!/usr/bin/env python3
"""What several drafts for one position would bring: tokens a step of chains, and of chains with branches.

    bench/branch_gain.py PROGRAM [--target models/foretoken-7m] [--draft models/foretoken-7m-draft]
                         [--prompts bench/prompts/prompts.jsonl] [--count 60] [--tokens 160]

The target writes a text for each prompt, greedily, and the draft model tells at every place of it how likely each of its
16 best ids is. From these alone follows what a step would accept: a chain goes on while the target's id is the draft
model's best. A branch has the chain's drafts before its place, another id there, and the best ids behind it. Branches
are taken in two ways: at the first draft alone, and wherever the chain's probability up to there times that of
the other id reaches a bound, from the first draft on, while there are branches left. Drafts behind a rejected one are not
known and not wanted. Standard library only.
"""

import argparse
import json
import math
import pathlib
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from server_process import Server  # noqa: E402

NUM_BEST = 16
FLAGS = ("--served-model-name", "model", "--max-model-len", "1024", "--max-logprobs", str(NUM_BEST))


def complete(url, **body):
    data = json.dumps({"model": "model", **body}).encode()
    request = urllib.request.Request(url + "/v1/completions", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]


def places_of(text, draft_url):
    """For each token of a text: its rank among the draft model's ids, and the probabilities of the best of these."""
    begin, ids = len(text["prompt_token_ids"]), text["prompt_token_ids"] + text["token_ids"]
    told = complete(draft_url, prompt=ids, max_tokens=1, temperature=0, prompt_logprobs=NUM_BEST)["prompt_logprobs"]
    places = []
    for position in range(begin, len(ids)):
        ranked = sorted((entry["rank"], math.exp(entry["logprob"])) for entry in told[position].values())
        places.append((told[position][str(ids[position])]["rank"], [p for rank, p in ranked if rank <= NUM_BEST]))
    return places


def branches_of(places, count, bound):
    """(place, rank) of each branch; without a bound those of the first draft."""
    if bound is None:
        return [(0, rank) for rank in range(2, count + 2)]
    found, chain = [], 1.0
    for place, (_, best) in enumerate(places):
        found += [(place, rank) for rank, p in enumerate(best[1:8], 2) if chain * p >= bound]
        chain *= best[0]
    return found[:count]


def tokens_a_step(texts, num_drafts, num_branches, bound=None):
    tokens = steps = made = 0
    for text in texts:
        at = 0
        while at < len(text):
            places = text[at:min(at + num_drafts, len(text) - 1)]
            branches = branches_of(places, num_branches, bound) if num_branches else []
            made += len(branches)
            ranks = [rank for rank, _ in places]
            accepted = next((i for i, rank in enumerate(ranks) if rank > 1), len(ranks))
            if accepted < len(ranks) and (accepted, ranks[accepted]) in branches:
                behind = ranks[accepted + 1:]
                accepted += 1 + next((i for i, rank in enumerate(behind) if rank > 1), len(behind))
            tokens, steps, at = tokens + accepted + 1, steps + 1, at + accepted + 1
    return tokens / steps, made / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--target", default=str(ROOT / "models" / "foretoken-7m"))
    parser.add_argument("--draft", default=str(ROOT / "models" / "foretoken-7m-draft"))
    parser.add_argument("--prompts", type=pathlib.Path, default=ROOT / "bench" / "prompts" / "prompts.jsonl")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=160)
    args = parser.parse_args()
    prompts = [json.loads(line)["prompt"][:600] for line in args.prompts.read_text(encoding="utf-8").splitlines()]
    with Server(args.program, args.target, *FLAGS) as target, Server(args.program, args.draft, *FLAGS) as draft:
        texts = [places_of(complete(target.url, prompt=prompt, max_tokens=args.tokens, temperature=0,
                                    return_token_ids=True), draft.url) for prompt in prompts[:args.count]]
    ranks = [rank for text in texts for rank, _ in text]
    missed = [rank for rank in ranks if rank > 1]
    print(f"{len(ranks)} tokens: {1 - len(missed) / len(ranks):.3f} are the best draft; of the others "
          f"{missed.count(2) / len(missed):.2f} are the second, {sum(r <= 4 for r in missed) / len(missed):.2f} up to the fourth")
    print("| drafts | branches | bound | tokens a step | over the chain | branches a step |\n|---|---|---|---|---|---|")
    for num_drafts in (4, 6):
        chain, _ = tokens_a_step(texts, num_drafts, 0)
        print(f"| {num_drafts} | 0 | | {chain:.2f} | | |")
        for count, bound in ((1, None), (3, None), (7, None), (1, .05), (3, .05), (7, .02)):
            tokens, made = tokens_a_step(texts, num_drafts, count, bound)
            print(f"| {num_drafts} | {count} | {'first draft' if bound is None else bound} | {tokens:.2f} "
                  f"| {100 * (tokens / chain - 1):+.1f} % | {made:.2f} |")


if __name__ == "__main__":
    main()
