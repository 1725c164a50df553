"""Packs folders <name>/config.json into one file of tests/golden/configs, an object a line by name.

    python3 tools/golden/pack_configs.py FOLDER tests/golden/configs/published.json

What no reader of a decoder looks at is left out: labels, other parts of a model, remote code, and
the lists of a quantisation, which can be long.
"""

import json
import pathlib
import sys

DROPPED = {
    "_name_or_path", "auto_map", "audio_config", "attention_dropout", "bad_words_ids",
    "chunk_size_feed_forward", "id2label", "label2id", "initializer_range", "output_attentions",
    "output_hidden_states", "problem_type", "return_dict", "transformers_version", "use_cache",
    "vision_config", "embedding_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop",
}
QUANTISATION_KEPT = {"quant_method", "quant_algo", "fmt", "format", "bits", "group_size",
                     "weight_block_size", "activation_scheme", "config_groups"}


def packed(config):
    kept = {key: value for key, value in config.items() if key not in DROPPED}
    if isinstance(kept.get("quantization_config"), dict):
        kept["quantization_config"] = {key: value for key, value in kept["quantization_config"].items()
                                       if key in QUANTISATION_KEPT}
        for group in kept["quantization_config"].get("config_groups", {}).values():
            group["targets"] = group.get("targets", [])[:1]
    for inner in ("text_config", "encoder", "decoder"):
        if isinstance(kept.get(inner), dict):
            kept[inner] = packed(kept[inner])
    return kept


def main():
    folder, out = map(pathlib.Path, sys.argv[1:])
    lines = []
    for path in sorted(folder.glob("*/config.json")):
        config = packed(json.loads(path.read_text()))
        lines.append(f"{json.dumps(path.parent.name)}: {json.dumps(config, separators=(',', ':'))}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
