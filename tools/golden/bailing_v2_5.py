"""Ling 2.5 as its published code describes it, in plain torch: transformers has no class for it.

Names of parameters are those of published checkpoints. Positions run one after the other through lightning attention.
"""

import types

import torch
from torch.nn import functional as F

import recurrent

CONFIG = recurrent.recurrent(
    "BailingMoeV2_5ForCausalLM", "bailing_hybrid", hidden_size=64, intermediate_size=64, num_hidden_layers=4,
    head_dim=16, num_key_value_heads=4, layer_group_size=3, group_norm_size=2, partial_rotary_factor=0.5,
    use_qk_norm=True, use_qkv_bias=False, use_bias=False, kv_lora_rank=32, q_lora_rank=None, qk_nope_head_dim=32,
    qk_rope_head_dim=8, v_head_dim=32, rms_norm_eps=1e-6, num_experts=4, num_experts_per_tok=2, num_shared_experts=1,
    moe_intermediate_size=32, moe_shared_expert_intermediate_size=32, n_group=2, topk_group=1, norm_topk_prob=True,
    routed_scaling_factor=2.5, score_function="sigmoid", moe_router_enable_expert_bias=True,
    first_k_dense_replace=2, linear_silu=False, num_nextn_predict_layers=0)


class Norm(torch.nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype)


def linear(inputs, outputs):
    return torch.nn.Linear(inputs, outputs, bias=False)


def new_model(config):
    return BailingV25(config)


def random_weight(name, weight, config):
    return recurrent.random_weight(name, weight, config)


def as_stored(stored):
    return stored


def angles(config, positions, size):
    frequencies = config["rope_theta"] ** -(torch.arange(0, size, 2).float() / size)
    return positions[:, None].float() * frequencies


def turned(x, by):
    """x [positions, heads, dim], whose first elements turn in pairs half of them apart."""
    half = by.shape[-1]
    cos, sin = by.cos()[:, None], by.sin()[:, None]
    low, high, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat((low * cos - high * sin, high * cos + low * sin, rest), -1)


class Mlp(torch.nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Mixture(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, hidden, inner = config, config["hidden_size"], config["moe_intermediate_size"]
        self.gate = torch.nn.Module()
        self.gate.weight = torch.nn.Parameter(torch.empty(config["num_experts"], hidden))
        self.gate.expert_bias = torch.nn.Parameter(torch.empty(config["num_experts"]))
        self.experts = torch.nn.ModuleList(Mlp(hidden, inner) for _ in range(config["num_experts"]))
        self.shared_experts = Mlp(hidden, config["moe_shared_expert_intermediate_size"])

    def forward(self, x):
        config = self.config
        scores = torch.sigmoid(F.linear(x.float(), self.gate.weight.float()))
        wanted = (scores + self.gate.expert_bias).unflatten(-1, (config["n_group"], -1))
        best = wanted.topk(2, -1).values.sum(-1).topk(config["topk_group"], -1).indices
        allowed = torch.zeros(wanted.shape[:-1]).scatter(-1, best, 1.0).bool()[..., None]
        chosen = wanted.masked_fill(~allowed, float("-inf")).flatten(1).topk(config["num_experts_per_tok"]).indices
        weights = scores.gather(-1, chosen)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * config["routed_scaling_factor"]
        every = torch.zeros_like(scores).scatter(-1, chosen, weights)
        summed = sum(every[:, e:e + 1].to(x.dtype) * expert(x) for e, expert in enumerate(self.experts))
        return summed + self.shared_experts(x)


class Latent(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.heads, self.rank = config, config["num_attention_heads"], config["kv_lora_rank"]
        self.nope, self.rope, self.value = (config[name] for name in ("qk_nope_head_dim", "qk_rope_head_dim",
                                                                      "v_head_dim"))
        hidden = config["hidden_size"]
        self.q_proj = linear(hidden, self.heads * (self.nope + self.rope))
        self.kv_a_proj_with_mqa, self.kv_a_layernorm = linear(hidden, self.rank + self.rope), Norm(self.rank, 1e-6)
        self.kv_b_proj = linear(self.rank, self.heads * (self.nope + self.value))
        self.dense = linear(self.heads * self.value, hidden)

    def turn(self, x, positions):
        """Of pairs side by side."""
        apart = torch.cat((x[..., 0::2], x[..., 1::2]), -1)
        return turned(apart, angles(self.config, positions, self.rope)).to(x.dtype)

    def forward(self, x, positions, past):
        q, q_turning = self.q_proj(x).unflatten(-1, (self.heads, -1)).split((self.nope, self.rope), -1)
        low, shared = self.kv_a_proj_with_mqa(x).split((self.rank, self.rope), -1)
        keys, values = self.kv_b_proj(self.kv_a_layernorm(low)).unflatten(-1, (self.heads, -1)).split(
            (self.nope, self.value), -1)
        shared = self.turn(shared[:, None], positions).expand(-1, self.heads, -1)
        q, keys = torch.cat((q, self.turn(q_turning, positions)), -1), torch.cat((keys, shared), -1)
        if past is not None:
            keys, values = torch.cat((past[0], keys)), torch.cat((past[1], values))
        scores = torch.einsum("qhd,khd->hqk", q, keys) * (self.nope + self.rope) ** -0.5
        behind = torch.ones(scores.shape[1:]).triu(len(keys) - len(q) + 1).bool()
        shares = scores.masked_fill(behind, float("-inf")).softmax(-1, dtype=torch.float32).to(x.dtype)
        return self.dense(torch.einsum("hqk,khd->qhd", shares, values).flatten(1)), (keys, values)


class Lightning(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.config, self.heads, hidden = config, config["num_attention_heads"], config["hidden_size"]
        self.dim, self.groups = config["head_dim"], config["group_norm_size"]
        size, eps = self.heads * self.dim, config["rms_norm_eps"]
        self.query_key_value, self.g_proj, self.dense = linear(hidden, 3 * size), linear(hidden, size), linear(size, hidden)
        self.query_layernorm, self.key_layernorm = Norm(self.dim, eps), Norm(self.dim, eps)
        self.g_norm = Norm(size, eps)
        slopes = 2.0 ** (-8.0 / self.heads * torch.arange(1, self.heads + 1))  # of a power of two of heads
        self.decay = torch.exp(-slopes * (1 - (index - 1) / (config["num_hidden_layers"] - 1) + 1e-5))

    def forward(self, x, positions, past):
        q, k, v = self.query_key_value(x).unflatten(-1, (3, self.heads, self.dim)).unbind(1)
        by = angles(self.config, positions, int(self.dim * self.config["partial_rotary_factor"]))
        q, k = turned(self.query_layernorm(q).float(), by), turned(self.key_layernorm(k).float(), by)
        state, rows = torch.zeros(self.heads, self.dim, self.dim) if past is None else past, []
        for t in range(len(x)):
            state = state * self.decay[:, None, None] + k[t][..., None] * v[t].float()[:, None]
            rows.append((state * q[t][..., None]).sum(-2) * self.dim ** -0.5)
        left = torch.stack(rows).reshape(len(x), self.groups, -1)
        left = left * torch.rsqrt(left.square().mean(-1, keepdim=True) + self.g_norm.eps)
        gated = left.flatten(1) * self.g_norm.weight * torch.sigmoid(self.g_proj(x).float())
        return self.dense(gated.to(x.dtype)), state


class Layer(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        group, count = config["layer_group_size"], config["num_hidden_layers"]
        attends = (index + 1) % group == 0 or index >= count // group * group
        self.attention = Latent(config) if attends else Lightning(config, index)
        dense = index < config["first_k_dense_replace"]
        self.mlp = Mlp(config["hidden_size"], config["intermediate_size"]) if dense else Mixture(config)
        self.input_layernorm, self.post_attention_layernorm = (Norm(config["hidden_size"], config["rms_norm_eps"])
                                                               for _ in range(2))

    def forward(self, x, positions, past):
        added, past = self.attention(self.input_layernorm(x), positions, past)
        x = x + added
        return x + self.mlp(self.post_attention_layernorm(x)), past


class BailingV25(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.model = torch.nn.Module()
        self.model.word_embeddings = torch.nn.Embedding(config["vocab_size"], hidden)
        self.model.layers = torch.nn.ModuleList(Layer(config, i) for i in range(config["num_hidden_layers"]))
        self.model.norm = Norm(hidden, config["rms_norm_eps"])
        self.lm_head = linear(hidden, config["vocab_size"])

    def forward(self, ids, past_key_values=None, use_cache=False):
        first, pasts = past_key_values or (0, [None] * len(self.model.layers))
        positions = torch.arange(first, first + ids.shape[1])
        x, behind = self.model.word_embeddings(ids[0]), []
        for layer, past in zip(self.model.layers, pasts):
            x, past = layer(x, positions, past)
            behind.append(past)
        logits = self.lm_head(self.model.norm(x))[None]
        return types.SimpleNamespace(logits=logits, past_key_values=(first + ids.shape[1], behind))
