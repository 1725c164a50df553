"""Writes the cards (README.md) of bundled heads from their config.json and training.json.

    python3 report_heads.py models/foretoken-7m-eagle3 models/foretoken-7m-eagle models/foretoken-7m-mtp
"""

import argparse
import json
import pathlib

from report import fill

KINDS = {
    "eagle3": {
        "what": "An EAGLE-3 head (Li et al. 2025)", "method": "eagle3", "shared": "embedding and tokenizer",
        "layout": "`LlamaForCausalLMEagle3`, as SafeAILab and SpecForge publish it",
        "loss": "cross entropy to the target's probabilities of the draft vocabulary"},
    "eagle": {
        "what": "An EAGLE head (Li et al. 2024)", "method": "eagle", "shared": "embedding, output matrix and tokenizer",
        "layout": "`EagleLlamaForCausalLM`, as SafeAILab publishes it",
        "reads": "the target's state after its final norm",
        "loss": "cross entropy to the target's probabilities and {{feature_weight}} of the smooth L1 distance to its next state"},
    "mtp": {
        "what": "An MTP module (of the kind of DeepSeek-V3, 2024)", "method": "mtp", "shared": "embedding, output matrix and tokenizer",
        "layout": "`LlamaForCausalLMMTP`, names of DeepSeek-V3's module: `model.layers.10.*`",
        "reads": "the target's state after its final norm",
        "loss": "cross entropy to the target's probabilities"},
}


def table(report, other):
    """A row for each part; `other` holds the draft model's figures."""
    greedy, warm = report["greedy"], report["temperature 0.8"]
    lines = ["| part | 1 | 2 | 3 | 4 | length, greedy | length, temperature 0.8 |", "|---|---|---|---|---|---|---|"]
    for name, row in greedy.items():
        cells = [f"{share:.3f}" for share in row["per_position"]]
        cells += [f"{part[name]['mean_length']:.2f} ({other[how][name]['mean_length']:.2f})"
                  for how, part in (("greedy", greedy), ("temperature 0.8", warm))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_card(folder):
    config, report = (json.loads((folder / name).read_text()) for name in ("config.json", "training.json"))
    kind, arguments = folder.name.rsplit("-", 1)[1], report["arguments"]
    values = dict(KINDS[kind])
    values["loss"] = values["loss"].replace("{{feature_weight}}", arguments["feature_weight"])
    values["vocabulary"] = "3,072 tokens"
    if kind == "eagle3":
        taps = config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
        values["reads"] = "what enters the target's layers " + ", ".join(map(str, taps))
        values["vocabulary"] = f"the target's {config['draft_vocab_size']:,} most frequent tokens of 3,072 (`d2t`, `t2d`)"
    fill("head.md", folder, {
        **values, "name": folder.name, "parameters": f"{report['parameters']:,}", "mlp": config["intermediate_size"],
        "mb": f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f}", "unroll": arguments["unroll"],
        "share": round(100 * float(arguments["sample_share"])), "texts": f"{report['sampled_texts']:,}",
        "text_tokens": f"{report['sampled_tokens']:,}", "steps": f"{report['steps']:,}",
        "tokens": f"{int(arguments['tokens']):,}", "seconds": round(report["seconds"]),
        "table": table(report["acceptance"], next(iter(report["compared"].values())))})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    for folder in parser.parse_args().folders:
        write_card(folder)


if __name__ == "__main__":
    main()
