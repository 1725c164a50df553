"""DeepSeek MoE 16B's form: the text model of transformers' DeepSeek OCR 2, which computes the same,
with an output matrix behind it and one matrix for each expert in its files. gen_mixtures.py runs it.
"""

import types

import torch
import transformers
from transformers.models.deepseek_ocr2.configuration_deepseek_ocr2 import DeepseekOcr2TextConfig

import mixtures


class DeepseekV1(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        dense = config["first_k_dense_replace"]
        names = DeepseekOcr2TextConfig().to_dict()
        fields = {key: value for key, value in config.items() if key in names and key != "model_type"}
        types_of = ["dense" if i < dense else "sparse" for i in range(config["num_hidden_layers"])]
        self.config = DeepseekOcr2TextConfig(**fields, mlp_layer_types=types_of, topk_method="greedy")
        self.config.rope_parameters = {"rope_type": "default", "rope_theta": config["rope_theta"]}
        self.config._attn_implementation = "eager"
        self.model = transformers.DeepseekOcr2TextModel(self.config)
        self.lm_head = torch.nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)

    def forward(self, ids, cache=None, position_ids=None, use_cache=False):
        out = self.model(ids, cache=cache, position_ids=position_ids, use_cache=use_cache)
        return types.SimpleNamespace(logits=self.lm_head(out.last_hidden_state), cache=out.cache)


def new_model(config):
    return DeepseekV1(config)


def random_weight(name, weight, config):
    return mixtures.random_weight(name, weight, config)


def as_stored(stored):
    """A matrix for each expert, as published."""
    apart = {}
    for key, weight in stored.items():
        base = key.rsplit(".", 1)[0]
        if key.endswith("experts.gate_up_proj"):
            for expert, matrix in enumerate(weight):
                gate, up = matrix.chunk(2)
                apart[f"{base}.{expert}.gate_proj.weight"] = gate.contiguous()
                apart[f"{base}.{expert}.up_proj.weight"] = up.contiguous()
        elif key.endswith("experts.down_proj"):
            for expert, matrix in enumerate(weight):
                apart[f"{base}.{expert}.down_proj.weight"] = matrix.contiguous()
        else:
            apart[key] = weight
    return apart
