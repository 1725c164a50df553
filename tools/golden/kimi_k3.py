"""Kimi K3's text part as its report and published code describe it, in plain torch: transformers has no class for it.

Names of parameters are those of published checkpoints. Positions run one after the other through delta attention.
"""

import types

import torch
from torch.nn import functional as F

import mixtures
import recurrent

CONFIG = {
    "architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "dtype": "bfloat16",
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "kimi_linear", "vocab_size": 128, "hidden_size": 64, "intermediate_size": 64,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5, "dtype": "bfloat16", "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
        "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
        "attn_res_block_size": 3, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16, "v_head_dim": 32, "mla_use_nope": True, "mla_use_output_gate": True,
        "num_experts": 4, "num_experts_per_token": 2, "num_shared_experts": 1, "moe_intermediate_size": 64,
        "moe_renormalize": True, "moe_router_activation_func": "sigmoid", "moe_layer_freq": 1,
        "num_expert_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "use_grouped_topk": True,
        "routed_scaling_factor": 1.5, "routed_expert_hidden_size": 32, "latent_moe_use_norm": True,
        "first_k_dense_replace": 2, "num_nextn_predict_layers": 0,
        "linear_attn_config": {"kda_layers": [1, 2, 4], "full_attn_layers": [3], "head_dim": 16, "num_heads": 4,
                               "short_conv_kernel_size": 4, "use_full_rank_gate": True, "gate_lower_bound": -5.0},
    },
}


def is_expert(name):
    return ".experts." in name


def random_weight(name, weight, config):
    """Experts' matrices are such as MXFP4 holds."""
    if is_expert(name):
        return mixtures.mxfp4_weight(weight.T).T.contiguous()
    return recurrent.random_weight(name, weight, {**config["text_config"], "tie_word_embeddings": False})


def as_stored(stored):
    """Rates have more numbers than heads, as published files have."""
    return {name: torch.cat((weight, weight.new_full((4,), 9.0))) if name.endswith("A_log") else weight
            for name, weight in stored.items()}


class Norm(torch.nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype)


def linear(inputs, outputs):
    return torch.nn.Linear(inputs, outputs, bias=False)


class Mlp(torch.nn.Module):
    def __init__(self, config, hidden, inner, names=("gate_proj", "up_proj", "down_proj")):
        super().__init__()
        self.config, self.names = config, names
        for name, shape in zip(names, ((hidden, inner), (hidden, inner), (inner, hidden))):
            setattr(self, name, linear(*shape))

    def forward(self, x):
        gate, up, down = (getattr(self, name) for name in self.names)
        bound, limit = self.config["activation_situ_beta"], self.config["activation_situ_linear_beta"]
        gates, ups = gate(x).float(), up(x).float()
        gates = bound * torch.tanh(gates / bound) * torch.sigmoid(gates)
        return down((gates * limit * torch.tanh(ups / limit)).to(x.dtype))


class Mixture(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        hidden, latent, inner = (config[name] for name in ("hidden_size", "routed_expert_hidden_size",
                                                           "moe_intermediate_size"))
        self.gate = torch.nn.Module()
        self.gate.weight = torch.nn.Parameter(torch.empty(config["num_experts"], hidden))
        self.gate.e_score_correction_bias = torch.nn.Parameter(torch.empty(config["num_experts"]))
        self.experts = torch.nn.ModuleList(Mlp(config, latent, inner, ("w1", "w3", "w2"))
                                           for _ in range(config["num_experts"]))
        self.shared_experts = Mlp(config, hidden, config["num_shared_experts"] * inner)
        self.routed_expert_down_proj, self.routed_expert_up_proj = linear(hidden, latent), linear(latent, hidden)
        self.routed_expert_norm = Norm(latent, config["rms_norm_eps"])

    def forward(self, x):
        scores = torch.sigmoid(F.linear(x.float(), self.gate.weight.float()))
        chosen = (scores + self.gate.e_score_correction_bias).topk(self.config["num_experts_per_token"]).indices
        weights = scores.gather(-1, chosen)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * self.config["routed_scaling_factor"]
        every = torch.zeros_like(scores).scatter(-1, chosen, weights)
        narrow = self.routed_expert_down_proj(x)
        summed = sum(every[..., e:e + 1].to(x.dtype) * expert(narrow) for e, expert in enumerate(self.experts))
        return self.routed_expert_up_proj(self.routed_expert_norm(summed)) + self.shared_experts(x)


class Latent(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.rank = config["num_attention_heads"], config["kv_lora_rank"]
        self.nope, self.rope, self.value = (config[name] for name in ("qk_nope_head_dim", "qk_rope_head_dim",
                                                                      "v_head_dim"))
        hidden, values = config["hidden_size"], self.heads * self.value
        self.q_a_proj, self.q_a_layernorm = linear(hidden, config["q_lora_rank"]), Norm(config["q_lora_rank"], 1e-6)
        self.q_b_proj = linear(config["q_lora_rank"], self.heads * (self.nope + self.rope))
        self.kv_a_proj_with_mqa, self.kv_a_layernorm = linear(hidden, self.rank + self.rope), Norm(self.rank, 1e-6)
        self.kv_b_proj = linear(self.rank, self.heads * (self.nope + self.value))
        self.g_proj, self.o_proj = linear(hidden, values), linear(values, hidden)

    def forward(self, x, past):
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))).unflatten(-1, (self.heads, -1))
        low, shared = self.kv_a_proj_with_mqa(x).split((self.rank, self.rope), -1)
        keys, values = self.kv_b_proj(self.kv_a_layernorm(low)).unflatten(-1, (self.heads, -1)).split(
            (self.nope, self.value), -1)
        keys = torch.cat((keys, shared[:, None].expand(-1, self.heads, -1)), -1)
        if past is not None:
            keys, values = torch.cat((past[0], keys)), torch.cat((past[1], values))
        scores = torch.einsum("qhd,khd->hqk", q, keys) * (self.nope + self.rope) ** -0.5
        behind = torch.ones(scores.shape[1:]).triu(len(keys) - len(q) + 1).bool()
        shares = scores.masked_fill(behind, float("-inf")).softmax(-1, dtype=torch.float32).to(x.dtype)
        attended = torch.einsum("hqk,khd->qhd", shares, values).flatten(1)
        return self.o_proj(attended * torch.sigmoid(self.g_proj(x))), (keys, values)


class Delta(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        own = config["linear_attn_config"]
        self.heads, self.dim, self.width = own["num_heads"], own["head_dim"], own["short_conv_kernel_size"]
        self.bound, hidden, size = own["gate_lower_bound"], config["hidden_size"], self.heads * self.dim
        for part in "qkv":
            setattr(self, f"{part}_proj", linear(hidden, size))
            conv = torch.nn.Module()
            conv.weight = torch.nn.Parameter(torch.empty(size, self.width))
            setattr(self, f"{part}_conv1d", conv)
        self.A_log, self.dt_bias = torch.nn.Parameter(torch.empty(self.heads)), torch.nn.Parameter(torch.empty(size))
        self.f_a_proj, self.f_b_proj = linear(hidden, self.dim), linear(self.dim, size)
        self.b_proj, self.g_proj, self.o_proj = linear(hidden, self.heads), linear(hidden, size), linear(size, hidden)
        self.o_norm = Norm(self.dim, config["rms_norm_eps"])

    def convolved(self, part, x, before):
        rows = torch.cat((before, getattr(self, f"{part}_proj")(x)))
        taps = getattr(self, f"{part}_conv1d").weight
        sums = sum(rows[i:i + len(x)] * taps[:, i] for i in range(self.width))
        return F.silu(sums).unflatten(-1, (self.heads, -1)), rows[len(x):]

    def forward(self, x, past):
        size = self.heads * self.dim
        before, state = past or ({part: x.new_zeros(self.width - 1, size) for part in "qkv"},
                                 torch.zeros(self.heads, self.dim, self.dim))
        convolved = {part: self.convolved(part, x, before[part]) for part in "qkv"}
        q, k, v = (convolved[part][0].float() for part in "qkv")
        q, k = (y / torch.sqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        low = (self.f_b_proj(self.f_a_proj(x)).float() + self.dt_bias).unflatten(-1, (self.heads, -1))
        decay = torch.exp(self.bound * torch.sigmoid(torch.exp(self.A_log)[:, None] * low))
        scale, rows = torch.sigmoid(self.b_proj(x).float()), []
        for t in range(len(x)):
            state = state * decay[t][..., None]
            held = (state * k[t][..., None]).sum(-2)
            state = state + k[t][..., None] * ((v[t] - held) * scale[t][:, None])[:, None]
            rows.append((state * q[t][..., None]).sum(-2) * self.dim ** -0.5)
        gates = torch.sigmoid(self.g_proj(x).float()).unflatten(-1, (self.heads, -1))
        left = (self.o_norm(torch.stack(rows)) * gates).to(x.dtype).flatten(1)
        return self.o_proj(left), ({part: convolved[part][1] for part in "qkv"}, state)


def mean_over_depth(rows, norm, query):
    """Of what the residual was behind earlier blocks, and is now."""
    values = torch.stack(rows, 1)
    shares = F.linear(norm(values).float(), query.weight.float()).softmax(1)
    return (shares * values.float()).sum(1).to(values.dtype)


class Layer(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        attends = index + 1 in config["linear_attn_config"]["full_attn_layers"]
        self.begins = index % config["attn_res_block_size"] == 0
        self.self_attn = Latent(config) if attends else Delta(config)
        if index < config["first_k_dense_replace"]:
            self.mlp = Mlp(config, hidden, config["intermediate_size"])
        else:
            self.block_sparse_moe = Mixture(config)
        for name in ("input_layernorm", "post_attention_layernorm", "self_attention_res_norm", "mlp_res_norm"):
            setattr(self, name, Norm(hidden, eps))
        self.self_attention_res_proj, self.mlp_res_proj = linear(hidden, 1), linear(hidden, 1)

    def forward(self, residual, blocks, past):
        x = residual
        if blocks:
            x = mean_over_depth([*blocks, residual], self.self_attention_res_norm, self.self_attention_res_proj)
        if self.begins:
            blocks, residual = [*blocks, residual], 0
        added, past = self.self_attn(self.input_layernorm(x), past)
        residual = residual + added
        x = mean_over_depth([*blocks, residual], self.mlp_res_norm, self.mlp_res_proj)
        part = self.mlp if hasattr(self, "mlp") else self.block_sparse_moe
        return residual + part(self.post_attention_layernorm(x)), blocks, past


def new_model(config):
    return KimiK3(config)


class KimiK3(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        text = config["text_config"]
        hidden, eps = text["hidden_size"], text["rms_norm_eps"]
        body = torch.nn.Module()
        body.embed_tokens = torch.nn.Embedding(text["vocab_size"], hidden)
        body.layers = torch.nn.ModuleList(Layer(text, i) for i in range(text["num_hidden_layers"]))
        body.norm, body.output_attn_res_norm = Norm(hidden, eps), Norm(hidden, eps)
        body.output_attn_res_proj = linear(hidden, 1)
        self.language_model = torch.nn.Module()
        self.language_model.model, self.language_model.lm_head = body, linear(hidden, text["vocab_size"])

    def forward(self, ids, past_key_values=None, use_cache=False):
        body = self.language_model.model
        x, blocks = body.embed_tokens(ids[0]), []
        pasts = past_key_values or [None] * len(body.layers)
        behind = []
        for layer, past in zip(body.layers, pasts):
            x, blocks, past = layer(x, blocks, past)
            behind.append(past)
        x = mean_over_depth([*blocks, x], body.output_attn_res_norm, body.output_attn_res_proj)
        logits = self.language_model.lm_head(body.norm(x))[None]
        return types.SimpleNamespace(logits=logits, past_key_values=behind)
