#!/usr/bin/env python3
"""Writes prompts whose texts prepare.py held out, for measurements inside what the bundled models learned.

Openings of stories come as they are, sums as the user's turn of a chat. Nothing of them occurs in the training text.
"""

import argparse
import json
import pathlib
import random

import arithmetic
import prepare

STORY_SOURCES = {"tinystories": 36, "children-classics": 12, "fairytales": 12}
SUMS = 20


def opening(text, generator):
    """The first 12 to 40 words."""
    words = text.strip().split(" ")
    return " ".join(words[:generator.randint(12, 40)])


def story_lines(corpus, mix, share, generator):
    for source in mix["sources"]:
        count = STORY_SOURCES.get(source["name"], 0)
        if count == 0:
            continue
        _, held = prepare.split_source(source, prepare.load_source(corpus, source), share, "")
        for i, text in enumerate(generator.sample(held, count)):
            yield {"id": f"held-out-{source['name']}-{i}", "category": "held-out stories", "prompt": opening(text, generator)}


def sum_lines(seed, share, generator):
    _, held = arithmetic.problems(20_000, seed, share)
    for i, (question, _) in enumerate(generator.sample(held, SUMS)):
        yield {"id": f"held-out-sum-{i}", "category": "held-out sums", "messages": [{"role": "user", "content": question}]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--mix", type=pathlib.Path, default=pathlib.Path(__file__).parent / "mix.json")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--held-out", type=float, default=0.05, help="as prepare.py was given")
    parser.add_argument("--seed", type=int, default=20261121, help="as prepare.py was given")
    args = parser.parse_args()
    generator = random.Random(args.seed)
    mix = json.loads(args.mix.read_text())
    lines = [*story_lines(args.corpus, mix, args.held_out, generator),
             *sum_lines(args.seed, args.held_out, generator)]
    args.out.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
