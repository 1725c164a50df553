"""Jina Embeddings 2 (Günther et al. 2023) by plain torch, as transformers has no class for it: BERT with
scores that fall with the distance to either side, and gated MLPs. Names are the published ones."""

import json
import pathlib
import types

import torch
from safetensors.torch import save_file
from torch import nn


def slopes_of(heads):
    """Of a power of two."""
    return torch.tensor([2.0 ** (-8.0 * (i + 1) / heads) for i in range(heads)])


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        self.heads = config.num_attention_heads
        self.attention = nn.ModuleDict({
            "self": nn.ModuleDict({name: nn.Linear(hidden, hidden) for name in ("query", "key", "value")}),
            "output": nn.ModuleDict({"dense": nn.Linear(hidden, hidden), "LayerNorm": nn.LayerNorm(hidden, eps)})})
        self.mlp = nn.ModuleDict({"gated_layers": nn.Linear(hidden, 2 * inner, bias=False),
                                  "wo": nn.Linear(inner, hidden), "layernorm": nn.LayerNorm(hidden, eps)})

    def attend(self, x):
        q, k, v = (self.attention["self"][name](x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for name in ("query", "key", "value"))
        places = torch.arange(x.shape[1])
        distances = (places[:, None] - places[None, :]).abs()
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 - slopes_of(self.heads)[:, None, None] * distances
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def forward(self, x):
        output = self.attention["output"]
        x = output["LayerNorm"](output["dense"](self.attend(x)) + x)
        gates, ups = self.mlp["gated_layers"](x).chunk(2, -1)
        return self.mlp["layernorm"](x + self.mlp["wo"](nn.functional.gelu(gates) * ups))


class JinaBertModel(nn.Module):
    base_model_prefix = "bert"

    def __init__(self, fields):
        super().__init__()
        self.config = types.SimpleNamespace(**fields)
        hidden = self.config.hidden_size
        self.embeddings = nn.ModuleDict({
            "word_embeddings": nn.Embedding(self.config.vocab_size, hidden),
            "token_type_embeddings": nn.Embedding(self.config.type_vocab_size, hidden),
            "LayerNorm": nn.LayerNorm(hidden, self.config.layer_norm_eps)})
        layers = [Layer(self.config) for _ in range(self.config.num_hidden_layers)]
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def forward(self, input_ids):
        words = self.embeddings["word_embeddings"](input_ids)
        x = self.embeddings["LayerNorm"](words + self.embeddings["token_type_embeddings"].weight[0])
        for layer in self.encoder["layer"]:
            x = layer(x)
        return types.SimpleNamespace(last_hidden_state=x)

    def save_pretrained(self, folder):
        folder = pathlib.Path(folder)
        save_file({name: weight.contiguous() for name, weight in self.state_dict().items()},
                  folder / "model.safetensors")
        config = {"architectures": ["JinaBertForMaskedLM"], "model_type": "bert",
                  "position_embedding_type": "alibi", "feed_forward_type": "geglu", **vars(self.config)}
        (folder / "config.json").write_text(json.dumps(config))
