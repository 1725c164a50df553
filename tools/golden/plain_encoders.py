"""Encoders by plain torch that transformers has no class for, under the published names: Jina Embeddings 2 (Günther
et al. 2023), BERT with scores that fall with the distance to either side, and gated MLPs; Nomic Embed Text 2 (Nussbaum
and Duderstadt 2025), with rotary positions and, in every second layer, experts."""

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


def turned(x, theta):
    """x [batch, heads, places, size] by halves."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * theta ** (-torch.arange(half) / half)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class NomicExperts(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner, count = config.n_embd, config.n_inner, config.num_experts
        self.router = nn.ModuleDict({"layer": nn.Linear(hidden, count, bias=False)})
        self.experts = nn.Module()
        self.experts.mlp = nn.Module()
        self.experts.mlp.w1 = nn.Parameter(torch.zeros(count * inner, hidden))
        self.experts.mlp.w2 = nn.Parameter(torch.zeros(count * inner, hidden))
        self.experts.bias = nn.Parameter(torch.zeros(hidden))
        self.inner, self.top_k = inner, config.moe_top_k

    def forward(self, x):
        shares = self.router["layer"](x).softmax(-1)
        best, chosen = shares.topk(self.top_k, -1)
        w1, w2 = (weight.unflatten(0, (-1, self.inner)) for weight in (self.experts.mlp.w1, self.experts.mlp.w2))
        out = torch.zeros_like(x)
        for e in range(len(w1)):
            weight = torch.where(chosen == e, best, 0).sum(-1, keepdim=True)
            out = out + weight * (nn.functional.gelu(x @ w1[e].T) @ w2[e])
        return out + self.experts.bias


class NomicMlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc1 = nn.Linear(config.n_embd, config.n_inner)
        self.fc2 = nn.Linear(config.n_inner, config.n_embd)

    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class NomicLayer(nn.Module):
    def __init__(self, config, index):
        super().__init__()
        hidden, eps = config.n_embd, config.layer_norm_epsilon
        self.heads, self.theta = config.n_head, config.rotary_emb_base
        self.attn = nn.ModuleDict({"Wqkv": nn.Linear(hidden, 3 * hidden), "out_proj": nn.Linear(hidden, hidden)})
        self.mlp = NomicExperts(config) if index % config.moe_every_n_layers == 1 else NomicMlp(config)
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps), nn.LayerNorm(hidden, eps)

    def attend(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.attn["Wqkv"](x).chunk(3, -1))
        scores = turned(q, self.theta) @ turned(k, self.theta).transpose(-1, -2) / q.shape[-1] ** 0.5
        return self.attn["out_proj"]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = self.norm1(self.attend(x) + x)
        return self.norm2(self.mlp(x) + x)


class NomicBertModel(nn.Module):
    base_model_prefix = "nomic"

    def __init__(self, fields):
        super().__init__()
        self.config = types.SimpleNamespace(**fields)
        self.embeddings = nn.ModuleDict({
            "word_embeddings": nn.Embedding(self.config.vocab_size, self.config.n_embd),
            "token_type_embeddings": nn.Embedding(self.config.type_vocab_size, self.config.n_embd)})
        self.emb_ln = nn.LayerNorm(self.config.n_embd, self.config.layer_norm_epsilon)
        layers = [NomicLayer(self.config, i) for i in range(self.config.n_layer)]
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(layers)})

    def forward(self, input_ids, token_type_ids=None):
        words = self.embeddings["word_embeddings"](input_ids)
        x = self.emb_ln(words + self.embeddings["token_type_embeddings"].weight[0])
        for layer in self.encoder["layers"]:
            x = layer(x)
        return types.SimpleNamespace(last_hidden_state=x)

    def save_pretrained(self, folder):
        folder = pathlib.Path(folder)
        save_file({name: weight.contiguous() for name, weight in self.state_dict().items()},
                  folder / "model.safetensors")
        config = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", **vars(self.config)}
        (folder / "config.json").write_text(json.dumps(config))
