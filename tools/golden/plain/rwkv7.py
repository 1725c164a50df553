"""RWKV 7 as its published code describes it, in plain torch: transformers has no class for it.

Names of parameters are those of flash-linear-attention's checkpoints. Positions run one after the other through the
state.
"""

import math
import types

import torch
from torch.nn import functional as F

CONFIG = {
    "architectures": ["RWKV7ForCausalLM"], "model_type": "rwkv7", "torch_dtype": "bfloat16", "vocab_size": 128,
    "hidden_size": 64, "hidden_ratio": 4.0, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 16,
    "num_heads": 4, "decay_low_rank_dim": 16, "gate_low_rank_dim": 24, "a_low_rank_dim": 8, "v_low_rank_dim": 8,
    "hidden_act": "sqrelu", "max_position_embeddings": 2048, "norm_first": True, "norm_bias": True, "norm_eps": 1e-5,
    "attn": None, "attn_mode": "chunk", "fuse_norm": False, "value_dim": [64, 64], "tie_word_embeddings": False,
    "bos_token_id": 1, "eos_token_id": 2}


def linear(inputs, outputs):
    return torch.nn.Linear(inputs, outputs, bias=False)


def new_model(config):
    return Rwkv7(config)


def random_weight(name, weight, config):
    """Decays, rates and shares of the first values spread over their ranges; states forget within some ten positions."""
    short = name.rsplit(".", 1)[-1]
    if short.startswith("x_"):
        return torch.rand_like(weight)
    if short in ("k_k", "k_a"):
        return torch.rand_like(weight) + 0.5
    if short == "r_k":
        return torch.randn_like(weight) * 0.3
    if name.endswith("lora.2.bias"):
        return torch.randn_like(weight) - (1.0 if "w_lora" in name else 0.0)
    if "norm" in name:
        return torch.rand_like(weight) + 0.5 if short == "weight" else torch.randn_like(weight) * 0.1
    if name.endswith("embeddings.weight"):
        return torch.randn_like(weight)
    if name.endswith("lm_head.weight"):
        return torch.randn_like(weight) * 3.0 * weight.shape[-1] ** -0.5
    return torch.randn_like(weight) * weight.shape[-1] ** -0.5


def as_stored(stored):
    return stored


def parameter(*shape):
    return torch.nn.Parameter(torch.empty(*shape))


def shifted(x, before):
    """Each row's difference to the row before it, and the last row. before: what stands before the first, or None."""
    first = torch.zeros_like(x[:1]) if before is None else before
    return torch.cat((first, x[:-1])) - x, x[-1:]


class Factors(torch.nn.Module):
    def __init__(self, inputs, outputs, rank, activation, bias=True):
        super().__init__()
        self.lora = torch.nn.Sequential(linear(inputs, rank), activation, torch.nn.Linear(rank, outputs, bias=bias))

    def forward(self, x):
        return self.lora(x)


class TimeMix(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        hidden, self.dim, self.is_first = config["hidden_size"], config["head_dim"], index == 0
        self.heads = hidden // self.dim
        for mix in "rwkvag":
            setattr(self, "x_" + mix, parameter(1, 1, hidden))
        self.k_k, self.k_a, self.r_k = parameter(hidden), parameter(hidden), parameter(self.heads, self.dim)
        self.r_proj, self.k_proj, self.v_proj, self.o_proj = (linear(hidden, hidden) for _ in range(4))
        self.w_lora = Factors(hidden, hidden, config["decay_low_rank_dim"], torch.nn.Tanh())
        if not self.is_first:
            self.v_lora = Factors(hidden, hidden, config["v_low_rank_dim"], torch.nn.Identity())
        self.a_lora = Factors(hidden, hidden, config["a_low_rank_dim"], torch.nn.Identity())
        self.g_lora = Factors(hidden, hidden, config["gate_low_rank_dim"], torch.nn.Sigmoid(), bias=False)
        self.g_norm = torch.nn.GroupNorm(self.heads, hidden, eps=self.dim * config["norm_eps"])

    def by_head(self, x):
        return x.float().unflatten(-1, (self.heads, self.dim))

    def forward(self, x, past, first_values):
        before, state = past or (None, torch.zeros(self.heads, self.dim, self.dim))
        delta, last = shifted(x, before)
        r_in, w_in, k_in, v_in, a_in, g_in = (x + delta * getattr(self, "x_" + mix)[0] for mix in "rwkvag")
        r, k, v = self.r_proj(r_in), self.k_proj(k_in), self.v_proj(v_in)
        decay = torch.exp(-math.exp(-0.5) * torch.sigmoid(self.w_lora(w_in).float()))
        if self.is_first:
            first_values = v
        else:
            v = v + (first_values - v) * torch.sigmoid(self.v_lora(v_in))
        rate = torch.sigmoid(self.a_lora(a_in))
        unit = F.normalize(self.by_head(k * self.k_k), dim=-1)
        k = k * (1 + (rate - 1) * self.k_a)
        r, k, v, decay, rate = (self.by_head(each) for each in (r, k, v, decay, rate))
        rows = []
        for t in range(len(x)):  # state [heads, keys, values]
            known = (state * unit[t][..., None]).sum(-2)
            state = (state * decay[t][..., None] - (unit[t] * rate[t])[..., None] * known[:, None]
                     + k[t][..., None] * v[t][:, None])
            rows.append((state * r[t][..., None]).sum(-2))
        left = self.g_norm(torch.stack(rows).flatten(1).to(x.dtype))
        bonus = (r * k * self.r_k).sum(-1, keepdim=True) * v
        return self.o_proj((left + bonus.flatten(1).to(x.dtype)) * self.g_lora(g_in)), (last, state), first_values


class ChannelMix(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.x_k, self.key, self.value = parameter(hidden), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x, past):
        delta, last = shifted(x, past)
        return self.value(torch.relu(self.key(x + delta * self.x_k)).square()), last


class Layer(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        norm = lambda: torch.nn.LayerNorm(config["hidden_size"], eps=config["norm_eps"])
        if index == 0:
            self.pre_norm = norm()
        self.attn_norm, self.attn = norm(), TimeMix(config, index)
        self.ffn_norm, self.ffn = norm(), ChannelMix(config)

    def forward(self, x, past, first_values):
        if hasattr(self, "pre_norm"):
            x = self.pre_norm(x)
        time, channel = past or (None, None)
        added, time, first_values = self.attn(self.attn_norm(x), time, first_values)
        x = x + added
        added, channel = self.ffn(self.ffn_norm(x), channel)
        return x + added, (time, channel), first_values


class Rwkv7(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.model = torch.nn.Module()
        self.model.embeddings = torch.nn.Embedding(config["vocab_size"], hidden)
        self.model.layers = torch.nn.ModuleList(Layer(config, i) for i in range(config["num_hidden_layers"]))
        self.model.norm = torch.nn.LayerNorm(hidden, eps=config["norm_eps"])
        self.lm_head = linear(hidden, config["vocab_size"])

    def forward(self, ids, past_key_values=None, use_cache=False):
        pasts = past_key_values or [None] * len(self.model.layers)
        x, first_values, behind = self.model.embeddings(ids[0]), None, []
        for layer, past in zip(self.model.layers, pasts):
            x, past, first_values = layer(x, past, first_values)
            behind.append(past)
        return types.SimpleNamespace(logits=self.lm_head(self.model.norm(x))[None], past_key_values=behind)
