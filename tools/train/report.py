"""Writes the cards of a bundled pair: samples.md and README.md of the target, README.md of the draft.

    python3 report.py --data build/tokens --target models/foretoken-7m --draft models/foretoken-7m-draft \
        --prompts bench/prompts/prompts.jsonl

Runs on a CPU in some minutes. Needs torch, numpy, safetensors and tokenizers.
"""

import argparse
import json
import pathlib

import torch
from tokenizers import Tokenizer

from generate import generate
from llama import load

HERE = pathlib.Path(__file__).parent
LICENCES = {"tinystories": "CDLA-Sharing-1.0", "story-requests": "made from the TinyStories part",
            "african-storybook": "CC-BY", "pratham-books": "CC-BY-4.0, some public domain",
            "fairytales": "public domain (collected by FairytaleQA, Apache-2.0)",
            "children-classics": "public domain in the US", "fairytale-questions": "Apache-2.0 (FairytaleQA)",
            "oasst": "Apache-2.0", "gpteacher-roleplay": "MIT; written by GPT-4", "gsm8k-train": "MIT",
            "arithmetic": "made by `tools/train/arithmetic.py`", "smalltalk": "made by `tools/train/smalltalk.py`",
            "wikitext2-test": "CC-BY-SA-3.0; never trained on"}
BASELINE = {"tinystories": 0.889, "african-storybook": 1.346, "pratham-books": 1.562, "fairytales": 1.495,
            "children-classics": 1.614, "oasst": 1.753, "gpteacher-roleplay": 1.406, "gsm8k-train": 1.239,
            "wikitext2-test": 2.514}


def prompt_ids(tokenizer, prompt):
    text = prompt.get("text") or f"<|user|>{prompt['chat']}<|end|><|assistant|>"
    return tokenizer.encode(text).ids


def write_samples(model, tokenizer, name, out):
    """20 fixed prompts, each answered once; nothing is chosen."""
    prompts = json.loads((HERE / "cards" / "prompts.json").read_text())
    heat = [prompt.get("temperature", 0.0) for prompt in prompts]
    outputs = generate(model, [prompt_ids(tokenizer, prompt) for prompt in prompts], 200, "cpu", heat, seed=1)
    lines = [f"# Samples of {name}", "", "The prompts of `tools/train/cards/prompts.json`, each answered once, at most 200 new tokens, written by",
             "`tools/train/report.py` in fp32; none was left out or drawn again.", ""]
    for number, (prompt, degree, output) in enumerate(zip(prompts, heat, outputs), 1):
        kind = "chat" if "chat" in prompt else "text"
        said = tokenizer.decode(output).strip()
        quoted = "\n".join(f"> {line}".rstrip() for line in said.split("\n"))
        how = "greedy" if degree == 0 else f"temperature {degree}"
        ended = "" if output and output[-1] in (0, 3) else " [...]"
        lines += [f"## {number}. {kind}, {how}", "", f"**{prompt.get('chat') or prompt['text']}**", "", quoted + ended, ""]
    (out / "samples.md").write_text("\n".join(lines))


def repeated_share(ids, size=8):
    """8-grams that occurred earlier in the same output, and all of them."""
    seen, repeated = set(), 0
    grams = [tuple(ids[i:i + size]) for i in range(len(ids) - size + 1)]
    for gram in grams:
        repeated += gram in seen
        seen.add(gram)
    return repeated, len(grams)


def repetition(model, tokenizer, path, tokens):
    """{subject: share} of repeated 8-grams in greedy chat answers to the prompts of a file, and over all."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    outputs = []
    for start in range(0, len(records), 50):
        part = [prompt_ids(tokenizer, {"chat": record["prompt"]}) for record in records[start:start + 50]]
        outputs += generate(model, part, tokens, "cpu")
    counts = {"all": [0, 0]}
    for record, output in zip(records, outputs):
        for subject in ("all", record["category"]):
            total = counts.setdefault(subject, [0, 0])
            for i, value in enumerate(repeated_share(output)):
                total[i] += value
    return {subject: round(repeated / max(1, total), 4) for subject, (repeated, total) in counts.items()}


def data_table(data, report):
    summary, figures = json.loads((data / "summary.json").read_text()), report["bits_per_byte"]
    lines = ["| part | licence | MB | tokens | share of training | held-out bits per byte | foretoken-3m |",
             "|---|---|---|---|---|---|---|"]
    for name, part in summary["train"].items():
        lines.append(f"| {name} | {LICENCES.get(name, '?')} | {part['bytes'] / 1e6:.2f} | {part['tokens']:,} | "
                     f"{part['weight'] * 100:.3g} % | {figure(figures, name)} | {figure(BASELINE, name)} |")
    for name in figures.keys() - summary["train"].keys():
        lines.append(f"| {name} | {LICENCES.get(name, '?')} | {summary['evaluate'][name]['bytes'] / 1e6:.2f} | - | - | "
                     f"{figure(figures, name)} | {figure(BASELINE, name)} |")
    return "\n".join(lines)


def figure(figures, name):
    return f"{figures[name]:.3f}" if name in figures else "-"


def agreement_table(report, target_figures):
    text, own = report["agreement"]["held_out_text"], report["agreement"]["target_text"]
    lines = ["| part | bits per byte, target | draft | same greedy token, held-out text | overlap, held-out text | "
             "same greedy token, target's text |", "|---|---|---|---|---|---|"]
    for name, value in report["bits_per_byte"].items():
        lines.append(f"| {name} | {target_figures[name]:.3f} | {value:.3f} | {text[name]['greedy']:.3f} | "
                     f"{text[name]['sampled']:.3f} | {own[name]['greedy'] if name in own else float('nan'):.3f} |")
    return "\n".join(lines).replace("nan", "-")


def fill(template, out, values):
    text = (HERE / "cards" / template).read_text()
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", str(value))
    (out / "README.md").write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("data", "target", "draft", "prompts"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--tokens", type=int, default=256, help="new tokens of each greedy answer")
    args = parser.parse_args()
    torch.set_num_threads(2)
    model, tokenizer = load(args.target), Tokenizer.from_file(str(args.target / "tokenizer.json"))
    write_samples(model, tokenizer, args.target.name, args.target)
    shares = repetition(model, tokenizer, args.prompts, args.tokens)
    reports = [json.loads((folder / "training.json").read_text()) for folder in (args.target, args.draft)]
    size = lambda folder: f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f}"
    common = {"target_parameters": f"{reports[0]['parameters']:,}", "draft_parameters": f"{reports[1]['parameters']:,}",
              "target_mb": size(args.target), "draft_mb": size(args.draft)}
    fill("target.md", args.target, {
        **common, "table": data_table(args.data, reports[0]), "tokens": args.tokens,
        "steps": f"{reports[0]['log'][-1]['step']:,}", "seconds": round(reports[0]["seconds"]),
        "teachers": len(reports[0]["teachers"]), "repeated": f"{shares['all'] * 100:.1f} %",
        "repeated_by_subject": ", ".join(f"{name} {share * 100:.1f} %" for name, share in shares.items() if name != "all"),
        **{f"right_{name[:5]}": f"{share * 100:.1f} %" for name, share in reports[0]["sums_right"].items()}})
    fill("draft.md", args.draft, {
        **common, "table": agreement_table(reports[1], reports[0]["bits_per_byte"]),
        "steps": f"{reports[1]['log'][-1]['step']:,}", "seconds": round(reports[1]["seconds"]),
        "texts": f"{reports[1]['sampled_texts']:,}", "text_tokens": f"{reports[1]['sampled_tokens']:,}"})
    print(json.dumps({"repeated_8grams": shares, "sums_right": reports[0]["sums_right"]}, indent=1))


if __name__ == "__main__":
    main()
