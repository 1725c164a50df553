"""Writes a head's folder in its published Hugging Face layout."""

import json
import os

from safetensors.torch import save_file

from export import write_json

ARCHITECTURES = {"eagle3": "LlamaForCausalLMEagle3", "eagle": "EagleLlamaForCausalLM", "mtp": "LlamaForCausalLMMTP"}
TARGET_ONLY = ("auto_map", "transformers_version", "_name_or_path", "quantization_config")


def head_config(kind, head, target_config):
    """The target's sizes, with those of the head."""
    config = {name: value for name, value in target_config.items() if name not in TARGET_ONLY}
    config |= {"architectures": [ARCHITECTURES[kind]], "model_type": "llama", "dtype": "bfloat16",
               "torch_dtype": "bfloat16", "intermediate_size": head.config.intermediate_size}
    if kind == "mtp":
        return {**config, "num_nextn_predict_layers": head.num_modules}
    config |= {"num_hidden_layers": 1, "tie_word_embeddings": False}
    if kind == "eagle3":
        config |= {"draft_vocab_size": len(head.d2t), "target_model_type": target_config["model_type"],
                   "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(head.taps), "use_aux_hidden_state": True}}
    return config


def export_head(kind, head, target, out, report):
    """`target`: the folder of the model that the head was trained for."""
    out.mkdir(parents=True, exist_ok=True)
    save_file(head.published_weights(), out / "model.safetensors", metadata={"format": "pt"})
    os.chmod(out / "model.safetensors", 0o644)
    write_json(out / "config.json", head_config(kind, head, json.loads((target / "config.json").read_text())))
    write_json(out / "training.json", report, indent=1)
