#!/usr/bin/env python3
"""Tiny families over GPU ranks: gpu_families_suite.py PROGRAM [--only CASE ...]

Each case runs one family of tests/golden/architectures on one rank and over several ranks that share
attention's positions, heads or experts, without drafts, with n-grams and with the family as its own
draft model, greedy and sampled: the ids are one rank's. One GPU is enough: the ranks are processes
that take turns on it, which makes a step slow. Skips (77) without a GPU or the CUDA plug-in.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from gpu_ranks_suite import PATIENCE, SKIPPED, Group
from ranks_common import expect, num_gpus

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "architectures"
NUM_TOKENS = 24
SLOPES, FLEX = ["--hf-overrides", '{"alibi": true}'], ["--attention-backend", "flex"]
FLEX += ["--flex-mask", "kv <= q and q - kv < 40", "--flex-score", "score - 0.05 * (q - kv)"]
# A family, the flags of its ranks and those of the model.
CASES = {
    "states-qwen3_next": ("qwen3_next", ["-tp", "4", "-ep", "-dcp", "2"], []),
    "states-qwen3_5": ("qwen3_5", ["-tp", "4", "-dcp", "2"], []),
    "states-lfm2": ("lfm2", ["-tp", "4", "-dcp", "2"], []),
    "states-olmo_hybrid": ("olmo_hybrid", ["-tp", "4", "-dcp", "2"], []),
    "states-kimi_linear": ("kimi_linear", ["-tp", "2", "-ep", "-dcp", "2"], []),
    "slopes-tp2": ("falcon", ["-tp", "2", "-dcp", "2"], SLOPES),
    "slopes-tp4dcp2": ("falcon", ["-tp", "4", "-dcp", "2"], SLOPES),
    "flex-tp2": ("falcon", ["-tp", "2", "-dcp", "2"], FLEX),
    "flex-tp4": ("falcon", ["-tp", "4", "-dcp", "4"], FLEX),
    "entries-tp2": ("deepseek_v4", ["-tp", "2", "-ep"], []),
    "entries-dcp2": ("deepseek_v4", ["-tp", "2", "-ep", "-dcp", "2"], []),
    "chosen-dcp2": ("deepseek_v32", ["-tp", "2", "-ep", "-dcp", "2"], []),
    "blocks-dcp2": ("minimax_m3", ["-tp", "4", "-ep", "-dcp", "2"], []),
    "heads-axk2": ("axk2", ["-tp", "2", "-ep"], []),
    "heads-bailing_v2_5": ("bailing_v2_5", ["-tp", "2", "-ep"], []),
    "heads-kimi_k3": ("kimi_k3", ["-tp", "2", "-ep"], []),
    "heads-zamba2": ("zamba2", ["-tp", "2"], []),
}


def prompts(variant):
    """Eight pieces of the golden's texts, of 17 to 40 ids, so that n-grams find something."""
    text = [token for entry in variant["fp32"] for part in ("ids", "greedy") for token in entry[part]]
    length = min(40, variant["max_model_len"] - NUM_TOKENS - 8)
    return [text[29 * i % (len(text) - length) :][: length - 3 * i] for i in range(8)]


def requests(variant):
    for method in ("none", "ngram", "draft_model"):
        speculative = {"enabled": False} if method == "none" else {"method": method}
        for i, ids in enumerate(prompts(variant)):
            sampling = {"temperature": 0.7 * (i % 2), "seed": 70 + i, "max_tokens": NUM_TOKENS, "ignore_eos": True}
            yield {"request_id": f"{method} {i}", "prompt_token_ids": ids, "speculative": speculative, **sampling}


def drafters(folder, tp):
    common = {"num_speculative_tokens": 3, "length_policy": "fixed"}
    ngram = {"method": "ngram", "prompt_lookup_max": 4, "prompt_lookup_min": 1, **common}
    draft = {"method": "draft_model", "model": folder, "draft_tensor_parallel_size": tp, **common}
    return ["-sc", json.dumps([ngram, draft])]


class Case:
    def __init__(self, program, name, folder):
        self.program, self.name = program, name
        family, self.layout, self.model_flags = CASES[name]
        self.family = str(GOLDEN / family)
        self.variant = json.loads((GOLDEN / family / "golden.json").read_text())["variants"][0]
        self.requests = os.path.join(folder, f"{name}.jsonl")
        with open(self.requests, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(request) + "\n" for request in requests(self.variant))

    def command(self, tp):
        flags = ["--json", "--jsonl", self.requests, "--skip-tokenizer-init", *self.model_flags]
        if "--hf-overrides" not in self.model_flags:
            flags += ["--hf-overrides", json.dumps(self.variant["hf_overrides"])]
        return ["generate", self.family, *flags, *drafters(self.family, tp)]

    def common(self):
        common = ["--device", "cuda", "--dtype", "float32", "--max-num-seqs", "8", "--max-num-batched-tokens", "64"]
        length = str(self.variant["max_model_len"])
        return common + ["--max-model-len", length, "--num-gpu-blocks-override", "256"]

    def texts(self, lines):
        found = {output["request_id"]: output["token_ids"] for output in map(json.loads, lines.splitlines())}
        expect(len(found) == 24, f"{self.name}: {len(found)} outputs\n{lines}")
        return found

    def run(self):
        begin = time.monotonic()
        alone = subprocess.run(
            [self.program, *self.command(1), *self.common()], capture_output=True, text=True, timeout=PATIENCE
        )
        expect(alone.returncode == 0, f"{self.name}, one rank:\n{alone.stderr}")
        tp = int(self.layout[self.layout.index("-tp") + 1])
        group = Group(self.program, self.command(tp), tp, False, self.layout, self.common())
        results = group.outputs(PATIENCE)
        logs = "\n".join(f"rank {rank}: {code}\n{err}" for rank, (code, _, err) in enumerate(results))
        expect(all(code == 0 for code, _, _ in results), f"{self.name}:\n{logs}")
        reference, texts = self.texts(alone.stdout), self.texts(results[0][1])
        differing = [key for key in reference if texts[key] != reference[key]]
        seconds = time.monotonic() - begin
        print(f"  {self.name}: {len(differing)} of {len(reference)} texts differ {differing}, {seconds:.1f} s", flush=True)
        return len(differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    arguments = parser.parse_args()
    if num_gpus() == 0:
        print("SKIPPED: no GPU")
        sys.exit(SKIPPED)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            try:
                if Case(os.path.abspath(arguments.program), name, folder).run() > 0:
                    failed.append(name)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print(f"  {name}: {str(error)[-1500:]}", flush=True)
                failed.append(name)
    expect(not failed, f"failed: {failed}")
    print("all cases hold")


if __name__ == "__main__":
    main()
