"""A small DeepSeek for training: latent attention, mixtures of experts and a draft module (MTP), with the weight names and the
arithmetic of DeepseekV3ForCausalLM (DeepSeek-AI, 2024). Both models have the interface of llama.py and heads.py.
"""

import dataclasses

import torch
from torch import nn
from torch.nn import functional

from heads import Head, level_mask
from llama import RmsNorm, rotary_table


@dataclasses.dataclass
class Config:
    vocab_size: int = 3072
    hidden_size: int = 128
    intermediate_size: int = 256
    moe_intermediate_size: int = 64
    num_hidden_layers: int = 4
    first_k_dense_replace: int = 1
    num_attention_heads: int = 4
    q_lora_rank: int = 64
    kv_lora_rank: int = 32
    qk_nope_head_dim: int = 32
    qk_rope_head_dim: int = 16
    v_head_dim: int = 32
    n_routed_experts: int = 8
    num_experts_per_tok: int = 2
    n_shared_experts: int = 1
    n_group: int = 4
    topk_group: int = 2
    routed_scaling_factor: float = 2.0
    max_position_embeddings: int = 2048
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6

    @property
    def head_dim(self):
        """Of what is rotated, for rotary_table."""
        return self.qk_rope_head_dim

    def to_hugging_face(self):
        fields = dataclasses.asdict(self)
        return {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", **fields,
                "num_key_value_heads": self.num_attention_heads, "moe_layer_freq": 1, "norm_topk_prob": True,
                "scoring_func": "sigmoid", "topk_method": "noaux_tc", "num_nextn_predict_layers": 1, "ep_size": 1,
                "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu", "initializer_range": 0.02,
                "rope_scaling": None, "tie_word_embeddings": True, "use_cache": True, "bos_token_id": 0,
                "eos_token_id": [0, 3], "dtype": "bfloat16", "torch_dtype": "bfloat16"}


def rotate_pairs(x, cos, sin):
    """Rotates neighbours (x0, x1), (x2, x3), ..; cos and sin as rotary_table gives them, each angle twice."""
    cos, sin = cos[..., :x.shape[-1] // 2], sin[..., :x.shape[-1] // 2]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


class LatentAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, heads = config, config.num_attention_heads
        width, nope, rope = config.hidden_size, config.qk_nope_head_dim, config.qk_rope_head_dim
        linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
        self.q_a_proj = linear(width, config.q_lora_rank)
        self.q_a_layernorm = RmsNorm(config.q_lora_rank, config.rms_norm_eps)
        self.q_b_proj = linear(config.q_lora_rank, heads * (nope + rope))
        self.kv_a_proj_with_mqa = linear(width, config.kv_lora_rank + rope)
        self.kv_a_layernorm = RmsNorm(config.kv_lora_rank, config.rms_norm_eps)
        self.kv_b_proj = linear(config.kv_lora_rank, heads * (nope + config.v_head_dim))
        self.o_proj = linear(heads * config.v_head_dim, width)

    def project(self, x, table):
        """Queries, keys and values [batch, heads, length, ..] of all heads."""
        config, (batch, length, _) = self.config, x.shape
        split = lambda y: y.view(batch, length, config.num_attention_heads, -1).transpose(1, 2)
        query = split(self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))))
        latent, key_rope = self.kv_a_proj_with_mqa(x).split((config.kv_lora_rank, config.qk_rope_head_dim), -1)
        key, value = split(self.kv_b_proj(self.kv_a_layernorm(latent))).split(
            (config.qk_nope_head_dim, config.v_head_dim), -1)
        query, query_rope = query.split((config.qk_nope_head_dim, config.qk_rope_head_dim), -1)
        key_rope = rotate_pairs(key_rope[:, None], *table).expand(-1, config.num_attention_heads, -1, -1)
        join = lambda *parts: torch.cat([part.to(value) for part in parts], -1)
        return join(query, rotate_pairs(query_rope, *table)), join(key, key_rope), value

    def forward(self, x, table, levels=None, first=0):
        """`levels`: keys and values of each level so far, as in heads.py; this call's are appended."""
        query, key, value = self.project(x, table)
        mask, levels = None, [] if levels is None else levels
        levels.append((key, value))
        if len(levels) > 1 or first > 0:
            mask = level_mask(x.shape[1], len(levels), first, x.device)
            key, value = (torch.cat(parts, 2) for parts in zip(*levels))
        # Torch's quick kernels want values as wide as keys.
        value = functional.pad(value, (0, key.shape[-1] - value.shape[-1]))
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
        return self.o_proj(mixed[..., :self.config.v_head_dim].transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, config, inner):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.down_proj = nn.Linear(inner, config.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):
    """Sigmoid scores; a bias that only the choice sees keeps the experts' loads even (Wang et al., 2024)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.zeros(config.n_routed_experts, config.hidden_size))
        self.register_buffer("e_score_correction_bias", torch.zeros(config.n_routed_experts))
        self.load = None

    def forward(self, x):
        """Experts and weights [rows, top k] of rows x."""
        config = self.config
        scores = functional.linear(x.float(), self.weight.float()).sigmoid()
        choice = (scores.detach() + self.e_score_correction_bias).unflatten(-1, (config.n_group, -1))
        best = choice.topk(2, -1).values.sum(-1).topk(config.topk_group, -1).indices
        closed = torch.ones_like(choice[..., 0], dtype=torch.bool).scatter(-1, best, False)
        experts = choice.masked_fill(closed[..., None], -torch.inf).flatten(-2).topk(config.num_experts_per_tok, -1).indices
        self.load = experts.flatten().bincount(minlength=config.n_routed_experts)
        weights = scores.gather(-1, experts)
        return experts, weights / (weights.sum(-1, keepdim=True) + 1e-20) * config.routed_scaling_factor

    @torch.no_grad()
    def balance(self, speed):
        """Moves the bias towards experts that the last forward used less than the mean."""
        load = self.load.float()
        self.e_score_correction_bias += speed * (load.mean() - load).sign()


class Mixture(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner = config.moe_intermediate_size
        self.gate = Router(config)
        self.gate_up = nn.Parameter(torch.zeros(config.n_routed_experts, 2 * inner, config.hidden_size))
        self.down = nn.Parameter(torch.zeros(config.n_routed_experts, config.hidden_size, inner))
        self.shared_experts = Mlp(config, inner * config.n_shared_experts)

    def forward(self, x):
        rows = x.flatten(0, -2)
        experts, weights = self.gate(rows)
        order = experts.flatten().argsort(stable=True)
        sorted_rows = rows[order // experts.shape[1]].split(self.gate.load.tolist())
        outputs = []
        for each, gate_up, down in zip(sorted_rows, self.gate_up, self.down):
            gate, up = functional.linear(each, gate_up).chunk(2, -1)
            outputs.append(functional.linear(functional.silu(gate) * up, down))
        place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        routed = torch.cat(outputs)[place].unflatten(0, experts.shape)
        return (routed * weights[..., None].to(routed)).sum(1).view_as(x) + self.shared_experts(x)

    def published(self, state, prefix):
        """Replaces the tall matrices in `state` by one of each kind an expert."""
        tall, down = state.pop(prefix + "gate_up"), state.pop(prefix + "down")
        for expert, (gate_up, out) in enumerate(zip(tall, down)):
            name = f"{prefix}experts.{expert}."
            state[name + "gate_proj.weight"], state[name + "up_proj.weight"] = gate_up.chunk(2)
            state[name + "down_proj.weight"] = out


class Layer(nn.Module):
    def __init__(self, config, mixture):
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = LatentAttention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = Mixture(config) if mixture else Mlp(config, config.intermediate_size)

    def forward(self, x, table, levels=None, first=0):
        x = x + self.self_attn(self.input_layernorm(x), table, levels, first)
        return x + self.mlp(self.post_attention_layernorm(x))


def initialise(model, layers):
    """Normal weights, narrower where they end a branch of the residual stream."""
    for name, weight in model.named_parameters():
        if weight.dim() >= 2:
            ends = name.endswith(("o_proj.weight", "down_proj.weight", "mlp.down"))
            nn.init.normal_(weight, std=0.02 * ((2 * layers) ** -0.5 if ends else 1.0))


def published_state(model):
    """A state dict under published names, in bf16 but for the routers' biases."""
    state = dict(model.state_dict())
    for name, module in model.named_modules():
        if isinstance(module, Mixture):
            module.published(state, name + ".")
    keep = lambda name, weight: weight.float() if name.endswith("correction_bias") else weight.bfloat16()
    return {name: keep(name, weight.detach().cpu()).clone().contiguous() for name, weight in state.items()}


class DeepSeek(nn.Module):
    """forward(ids [batch, length]) returns logits [batch, length, vocab], embeddings tied."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, index >= config.first_k_dense_replace)
                                    for index in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        initialise(self, config.num_hidden_layers)

    def states(self, ids, taps=()):
        """The state after the final norm, and an empty list: heads with taps are not for this model."""
        table = tuple(part[:ids.shape[1]] for part in rotary_table(self.config, ids.device))
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, table)
        return self.norm(x), []

    def logits(self, states):
        return functional.linear(states, self.embed_tokens.weight)

    def forward(self, ids):
        return self.logits(self.states(ids)[0])

    def routers(self):
        return [module for module in self.modules() if isinstance(module, Router)]

    def parameter_count(self):
        return sum(weight.numel() for weight in self.parameters())


class DraftModule(nn.Module):
    """A layer over the projection of a token's embedding and the state before it."""

    def __init__(self, config):
        super().__init__()
        norm = lambda: RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.enorm, self.hnorm, self.layer = norm(), norm(), Layer(config, True)
        self.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.shared_head = nn.ModuleDict({"norm": norm()})

    def forward(self, embedding, hidden, table, levels, first):
        x = self.eh_proj(torch.cat((self.enorm(embedding), self.hnorm(hidden)), -1))
        return self.layer(x, table, levels, first)


class LatentMtp(Head):
    """DeepSeek's MTP module for a DeepSeek of this file; embedding and output matrix are the target's."""

    def __init__(self, config):
        super().__init__(config)
        self.config, self.target_layers = config, config.num_hidden_layers
        self.layers = nn.ModuleList([DraftModule(config)])
        initialise(self, config.num_hidden_layers)

    @torch.no_grad()
    def begin_as(self, model):
        """Takes the model's last layer and final norm, and a projection that lets state and embedding through."""
        first, eye = self.layers[0], torch.eye(self.config.hidden_size)
        first.layer.load_state_dict(model.layers[-1].state_dict())
        first.shared_head["norm"].load_state_dict(model.norm.state_dict())
        first.eh_proj.weight += torch.cat((eye, eye), 1)

    def entries(self, module, embedding, hidden, table, levels):
        return self.layers[module](embedding, hidden, table, levels, module)

    def logits(self, module, out, target):
        return target.logits(self.layers[module].shared_head["norm"](out))

    def routers(self):
        return [module for module in self.modules() if isinstance(module, Router)]

    def published_weights(self, dtype=torch.bfloat16):
        rename = lambda name: name.replace("layers.0.layer.", "layers.0.").replace(
            "layers.0.", f"model.layers.{self.target_layers}.")
        return {rename(name): weight for name, weight in published_state(self).items()}
