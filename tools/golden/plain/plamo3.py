"""PLaMo 3 as its published code describes it, in plain torch: transformers has no class for it.

Names of parameters are those of published checkpoints. A row of a layer with a window sees window_size positions
before it, and itself.
"""

import types

import torch
from torch.nn import functional as F

CONFIG = {
    "architectures": ["Plamo3ForCausalLM"], "model_type": "plamo3", "torch_dtype": "bfloat16", "vocab_size": 128,
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512, "window_size": 23,
    "sliding_window_pattern": 3, "rope_theta": 1000000, "rope_local_theta": 1000, "rms_norm_eps": 1e-6,
    "scale_embedding": False, "tie_word_embeddings": False, "bos_token_id": None,
    "eos_token_id": None}


class Norm(torch.nn.Module):
    """What is added to its weights is the class's, not the file's."""

    def __init__(self, size, eps, offset=1.0):
        super().__init__()
        self.weight, self.eps, self.offset = torch.nn.Parameter(torch.zeros(size)), eps, offset

    def forward(self, x):
        wide = x.float()
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return ((self.weight.float() + self.offset) * normed).to(x.dtype)


def linear(inputs, outputs):
    return torch.nn.Linear(inputs, outputs, bias=False)


def new_model(config):
    return Plamo3(config)


def random_weight(name, weight, config):
    if "post_" in name:
        return torch.rand_like(weight)
    if "norm" in name:
        return torch.rand_like(weight) - 0.5
    if name.endswith("embed_tokens.weight"):
        return torch.randn_like(weight)
    scale = 4.0 if name.startswith("lm_head") else 1.0
    return torch.randn_like(weight) * scale * weight.shape[-1] ** -0.5


def as_stored(stored):
    return stored


def turned(x, positions, theta):
    """x [positions, heads, dim], whose halves turn."""
    half = x.shape[-1] // 2
    angles = positions[:, None].float() * theta ** -(torch.arange(half).float() / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    low, high = x.float().chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1).to(x.dtype)


class Attention(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.heads, self.keys, self.dim = (config[name] for name in ("num_attention_heads", "num_key_value_heads",
                                                                     "head_dim"))
        whole = (index + 1) % config["sliding_window_pattern"] == 0
        self.before = None if whole else config["window_size"]
        self.theta = config["rope_theta"] if whole else config["rope_local_theta"]
        self.qkv_proj = linear(config["hidden_size"], (self.heads + 2 * self.keys) * self.dim)
        self.o_proj = linear(self.heads * self.dim, config["hidden_size"])
        self.q_norm, self.k_norm = (Norm(self.dim, config["rms_norm_eps"]) for _ in range(2))

    def forward(self, x, positions, past):
        q, k, v = self.qkv_proj(x).unflatten(-1, (-1, self.dim)).split((self.heads, self.keys, self.keys), 1)
        q, k = turned(self.q_norm(q), positions, self.theta), turned(self.k_norm(k), positions, self.theta)
        if past is not None:
            k, v = torch.cat((past[0], k)), torch.cat((past[1], v))
        repeats = self.heads // self.keys
        wide_k, wide_v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        scores = torch.einsum("qhd,khd->hqk", q, wide_k) * self.dim ** -0.5
        back = positions[:, None] - torch.arange(len(k))
        hidden = (back < 0) if self.before is None else (back < 0) | (back > self.before)
        shares = scores.masked_fill(hidden, float("-inf")).softmax(-1, dtype=torch.float32).to(x.dtype)
        return self.o_proj(torch.einsum("hqk,khd->qhd", shares, wide_v).flatten(1)), (k, v)


class Mlp(torch.nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate_up_proj, self.down_proj = linear(hidden, 2 * inner), linear(inner, hidden)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, -1)
        return self.down_proj(F.silu(gate) * up)


class Layer(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        self.mixer, self.mlp = Attention(config, index), Mlp(hidden, config["intermediate_size"])
        self.pre_mixer_norm, self.pre_mlp_norm = Norm(hidden, eps), Norm(hidden, eps)
        self.post_mixer_norm, self.post_mlp_norm = Norm(hidden, eps, 1 / 5), Norm(hidden, eps, 5 ** -1.5)

    def forward(self, x, positions, past):
        added, past = self.mixer(self.pre_mixer_norm(x), positions, past)
        x = x + self.post_mixer_norm(added)
        return x + self.post_mlp_norm(self.mlp(self.pre_mlp_norm(x))), past


class Plamo3(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.model = torch.nn.Module()
        self.model.layers = torch.nn.Module()
        self.model.embed_tokens = torch.nn.Embedding(config["vocab_size"], hidden)
        self.model.layers.layers = torch.nn.ModuleList(Layer(config, i) for i in range(config["num_hidden_layers"]))
        self.model.norm = Norm(hidden, config["rms_norm_eps"])
        self.lm_head = linear(hidden, config["vocab_size"])

    def forward(self, ids, past_key_values=None, use_cache=False):
        first, pasts = past_key_values or (0, [None] * len(self.model.layers.layers))
        positions = torch.arange(first, first + ids.shape[1])
        x, behind = self.model.embed_tokens(ids[0]), []
        for layer, past in zip(self.model.layers.layers, pasts):
            x, past = layer(x, positions, past)
            behind.append(past)
        logits = self.lm_head(self.model.norm(x))[None]
        return types.SimpleNamespace(logits=logits, past_key_values=(first + ids.shape[1], behind))
