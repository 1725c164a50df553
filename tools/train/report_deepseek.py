"""Writes the card (README.md) of a model that train_deepseek.py made, from its config.json and training.json.

    python3 report_deepseek.py models/foretoken-2m-deepseek
"""

import argparse
import json
import pathlib

from report import fill


def table(report, held_out):
    """A row for each part: held-out loss, then what drafts are accepted."""
    greedy, warm = report["greedy"], report["temperature 0.8"]
    lines = ["| part | held-out nats a token | 1 | 2 | 3 | 4 | length, greedy | length, temperature 0.8 |",
             "|---|---|---|---|---|---|---|---|"]
    for name, row in greedy.items():
        cells = [f"{held_out['mean' if name == 'all' else name]:.3f}"]
        cells += [f"{share:.3f}" for share in row["per_position"]]
        cells += [f"{part[name]['mean_length']:.2f}" for part in (greedy, warm)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_card(folder):
    config, report = (json.loads((folder / name).read_text()) for name in ("config.json", "training.json"))
    arguments, model, module = report["arguments"], report["model"], report["module"]
    sizes = {"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
             "nope": "qk_nope_head_dim", "rope": "qk_rope_head_dim", "value": "v_head_dim", "latent": "kv_lora_rank",
             "q_latent": "q_lora_rank", "mlp": "intermediate_size", "experts": "n_routed_experts",
             "inner": "moe_intermediate_size", "groups": "n_group", "chosen": "num_experts_per_tok",
             "chosen_groups": "topk_group"}
    trained = model["steps"] * int(model["tokens"])
    fill("deepseek.md", folder, {
        **{name: config[field] for name, field in sizes.items()}, "name": folder.name,
        "parameters": f"{report['parameters']:,}", "module_parameters": f"{report['module_parameters']:,}",
        "mb": f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f}", "short": arguments["short_context"],
        "context": arguments["context"], "steps": f"{model['steps']:,}", "tokens": f"{int(model['tokens']):,}",
        "seconds": f"{model['seconds']:,.0f}", "module_steps": f"{module['steps']:,}", "unroll": arguments["unroll"],
        "module_seconds": f"{module['seconds']:,.0f}", "prompts": arguments["eval_prompts"],
        "sample": arguments["sample_tokens"], "sources": ", ".join(model["sources"]), "million": f"{trained / 1e6:.1f}",
        "table": table(report["acceptance"], report["held_out_nats"])})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    for folder in parser.parse_args().folders:
        write_card(folder)


if __name__ == "__main__":
    main()
