"""Checks the heads of heads.py against tests/golden/heads: logits of all entries, and every chained draft.

    python3 check_heads.py

Needs torch and safetensors.
"""

import json
import pathlib
import types

import torch
from safetensors.torch import load_file

from heads import load_head, unroll

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"


def entries(head, target, ids, states, steps):
    """Per step (module, logits [length, ..]) over the entries of `ids`; `states` are those of all but the last token."""
    embedding = target.embedding[torch.tensor(ids[1:])][None]
    final, taps = states["final"][None, :len(ids) - 1], [tap[None, :len(ids) - 1] for tap in states["taps"]]
    return [(module, head.logits(module, out, target)[0]) for module, out in unroll(head, embedding, final, taps, steps)]


def check(name, golden, tensors, target):
    head, ids = load_head(GOLDEN / "heads" / name), golden["ids"]
    states = {"final": tensors["target.final"], "taps": [tensors[f"target.tap{tap}"] for tap in golden["taps"]]}
    worst = 0.0
    for module, logits in entries(head, target, ids, states, head.num_modules):
        wanted = tensors[f"{name}.module{module + 1}.logits" if name == "mtp-2" else f"{name}.logits"]
        worst = max(worst, ((logits[module:] - wanted).norm() / wanted.norm()).item())
    cases = next(row["drafts"] for row in golden["heads"] if row["name"] == name)
    right = 0
    for case in cases:
        length, drafts = case["prefix"], case["ids"]
        padded = {"final": torch.cat((states["final"][:length], torch.zeros(2, states["final"].shape[1]))),
                  "taps": [torch.cat((tap[:length], torch.zeros(2, tap.shape[1]))) for tap in states["taps"]]}
        steps = entries(head, target, ids[:length] + drafts[:2], padded, 3)
        said = [int(head.draft_ids(logits[length - 2 + step].argmax())) for step, (_, logits) in enumerate(steps)]
        right += said == drafts
    print(f"{name}: logits within {worst:.1e}, {right} of {len(cases)} draft lists")
    return worst < 1e-5 and right == len(cases)


def main():
    golden = json.loads((GOLDEN / "heads" / "golden.json").read_text())
    tensors = load_file(GOLDEN / "heads" / "golden.safetensors")
    weights = load_file(GOLDEN / golden["target"] / "model.safetensors")
    target = types.SimpleNamespace(embedding=weights["model.embed_tokens.weight"].float(),
                                   logits=lambda x: x @ weights["lm_head.weight"].float().T)
    with torch.no_grad():
        passed = [check(name, golden, tensors, target) for name in ("eagle3", "eagle", "mtp", "mtp-2")]
    raise SystemExit(not all(passed))


if __name__ == "__main__":
    main()
