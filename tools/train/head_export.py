"""Writes a head's folder in its published Hugging Face layout."""

import json
import os

from safetensors.torch import save_file

from export import write_json

ARCHITECTURES = {"eagle3": "LlamaForCausalLMEagle3", "eagle": "EagleLlamaForCausalLM", "mtp": "LlamaForCausalLMMTP"}


def head_config(kind, head, target_config):
    """A Llama's config.json: the head has plain rotary embeddings and no biases, whatever the target has."""
    config = head.config.to_hugging_face()
    ends = {name: target_config[name] for name in ("bos_token_id", "eos_token_id") if name in target_config}
    config |= {"architectures": [ARCHITECTURES[kind]], **ends}
    if kind == "mtp":
        return {**config, "num_hidden_layers": head.target_layers, "num_nextn_predict_layers": head.num_modules,
                "tie_word_embeddings": target_config.get("tie_word_embeddings", False)}
    config["tie_word_embeddings"] = False
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
