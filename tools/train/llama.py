"""A small Llama for training, with the weight names and the arithmetic of LlamaForCausalLM."""

import dataclasses
import json

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional


@dataclasses.dataclass
class Config:
    vocab_size: int = 3072
    hidden_size: int = 256
    intermediate_size: int = 512
    num_hidden_layers: int = 10
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    head_dim: int = 32
    max_position_embeddings: int = 2048
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5
    dropout: float = 0.0

    def to_hugging_face(self, dtype="bfloat16"):
        fields = dataclasses.asdict(self)
        del fields["dropout"]
        return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **fields,
                "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False,
                "hidden_act": "silu", "initializer_range": 0.02, "rope_scaling": None,
                "tie_word_embeddings": True, "use_cache": True, "bos_token_id": 0,
                "eos_token_id": [0, 3], "dtype": dtype, "torch_dtype": dtype}

    @staticmethod
    def from_hugging_face(path):
        return Config.from_values(json.loads(path.read_text()))

    @staticmethod
    def from_values(values):
        names = [field.name for field in dataclasses.fields(Config) if field.name in values]
        return Config(**{name: values[name] for name in names})


def rotary_table(config, device):
    exponent = torch.arange(0, config.head_dim, 2, device=device).float() / config.head_dim
    angles = torch.outer(torch.arange(config.max_position_embeddings, device=device).float(),
                         config.rope_theta ** -exponent)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class Attention(nn.Module):
    """`input_width`: of the queries', keys' and values' input, where it is not the hidden size."""

    def __init__(self, config, input_width=None):
        super().__init__()
        self.config = config
        width, head = input_width or config.hidden_size, config.head_dim
        self.q_proj = nn.Linear(width, config.num_attention_heads * head, bias=False)
        self.k_proj = nn.Linear(width, config.num_key_value_heads * head, bias=False)
        self.v_proj = nn.Linear(width, config.num_key_value_heads * head, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * head, config.hidden_size, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        split = lambda y: y.view(batch, length, -1, self.config.head_dim).transpose(1, 2)
        query, key, value = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        query, key = rotate(query, cos, sin).to(value), rotate(key, cos, sin).to(value)
        repeat = self.config.num_attention_heads // self.config.num_key_value_heads
        key, value = key.repeat_interleave(repeat, 1), value.repeat_interleave(repeat, 1)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class RmsNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * y.to(x.dtype)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = Mlp(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, cos, sin):
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), cos, sin))
        return x + self.dropout(self.mlp(self.post_attention_layernorm(x)))


class Llama(nn.Module):
    """forward(ids [batch, length]) returns logits [batch, length, vocab], embeddings tied."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.dropout = nn.Dropout(config.dropout)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                narrow = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = (2 * config.num_hidden_layers) ** -0.5 if narrow else 1.0
                nn.init.normal_(weight, std=0.02 * scale)

    def states(self, ids, taps=()):
        """The state after the final norm, and for each index in `taps` the residual stream that enters that layer."""
        cos, sin = rotary_table(self.config, ids.device)
        cos, sin = cos[:ids.shape[1]], sin[:ids.shape[1]]
        x, tapped = self.dropout(self.embed_tokens(ids)), {}
        for index, layer in enumerate(self.layers):
            if index in taps:
                tapped[index] = x
            x = layer(x, cos, sin)
        return self.norm(x), [tapped[index] for index in taps]

    def logits(self, states):
        return functional.linear(states, self.embed_tokens.weight)

    def forward(self, ids):
        return self.logits(self.states(ids)[0])

    def hugging_face_weights(self, dtype=torch.bfloat16):
        return {"model." + name: weight.detach().to("cpu", dtype).contiguous()
                for name, weight in self.state_dict().items()}

    def parameter_count(self):
        return sum(weight.numel() for weight in self.parameters())


def load(folder, device="cpu", dtype=torch.float32, kind=Llama):
    """A model of this folder's making, ready for evaluation."""
    model = kind(Config.from_hugging_face(folder / "config.json"))
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({name.removeprefix("model."): weight for name, weight in weights.items()})
    return model.to(device, dtype).eval()
