"""Speculation heads for training: EAGLE-3, EAGLE and MTP modules under the weight names of published checkpoints.

An *entry* of a head combines the embedding of token i with a hidden state of token i - 1 and predicts token i + 1. Here
entry i of a row lies at index i - 1. Nothing pairs with token 0.

Heads are trained as they draft ("training-time test", Li et al. 2025): step 1 makes all entries from the target's
states; step s makes them again, each from the step s - 1 result of the entry before, and lets them see what a drafter
would see: entries made from the target's states for the accepted text, chained entries for the drafts after it.
"""

import dataclasses
import json

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from llama import Attention, Config, Mlp, RmsNorm, rotary_table, rotate

KINDS = ("eagle3", "eagle", "mtp")


def level_mask(length, levels, first, device):
    """bool [length, levels * length]: which keys each entry of the newest level sees.

    Level 1 are entries made from the text, of which those below index `first` do not exist; higher levels are chained
    ones. An entry of level n at index p follows one chain: of level t it sees index p - (n - t), of level 1 all up to
    there. Entries that do not exist see themselves.
    """
    query = torch.arange(length, device=device)[:, None]
    key = torch.arange(length, device=device)[None]
    parts = [(key <= query - levels + 1) & (key >= first)]
    parts += [key == query - levels + level for level in range(2, levels + 1)]
    parts[-1] = parts[-1] | (key == query)
    return torch.cat(parts, 1)


class LevelAttention(Attention):
    def forward(self, x, table, levels, first):
        """`levels` is a list of the keys and values of each level so far; this call's are appended."""
        batch, length, _ = x.shape
        split = lambda y: y.view(batch, length, -1, self.config.head_dim).transpose(1, 2)
        query, key, value = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        query, key = rotate(query, *table).to(value), rotate(key, *table).to(value)
        levels.append((key, value))
        repeat = self.config.num_attention_heads // self.config.num_key_value_heads
        keys, values = (torch.cat(parts, 2).repeat_interleave(repeat, 1) for parts in zip(*levels))
        if len(levels) == 1 and first == 0:
            mixed = functional.scaled_dot_product_attention(query, keys, values, is_causal=True)
        else:
            mask = level_mask(length, len(levels), first, x.device)
            mixed = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    """A Llama layer without its first norm: forward(x, residual, ...) attends from x and adds to the residual."""

    def __init__(self, config, input_width=None):
        super().__init__()
        self.self_attn = LevelAttention(config, input_width)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = Mlp(config)

    def run(self, x, residual, table, levels, first=0):
        x = residual + self.self_attn(x, table, levels, first)
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3Layer(Block):
    def __init__(self, config):
        super().__init__(config, 2 * config.hidden_size)
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.hidden_norm = RmsNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, embedding, hidden, table, levels):
        x = torch.cat((self.input_layernorm(embedding), self.hidden_norm(hidden)), -1)
        return self.run(x, hidden, table, levels)


class MtpModule(Block):
    def __init__(self, config):
        super().__init__(config)
        width, eps = config.hidden_size, config.rms_norm_eps
        self.enorm, self.hnorm, self.input_layernorm = RmsNorm(width, eps), RmsNorm(width, eps), RmsNorm(width, eps)
        self.eh_proj = nn.Linear(2 * width, width, bias=False)
        self.shared_head = nn.ModuleDict({"norm": RmsNorm(width, eps)})

    def forward(self, embedding, hidden, table, levels, first):
        x = self.eh_proj(torch.cat((self.enorm(embedding), self.hnorm(hidden)), -1))
        return self.run(self.input_layernorm(x), x, table, levels, first)


class Head(nn.Module):
    """What the three kinds share. `taps`: target layers whose inputs are read; `num_modules`: of an MTP head."""

    taps, num_modules = (), 1

    def __init__(self, config):
        super().__init__()
        self.config = dataclasses.replace(config, num_hidden_layers=1)

    def initialise(self):
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02 * (0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1))

    def first_hidden(self, final, taps):
        return final

    def draft_ids(self, choices):
        """Target's ids of indices into this head's logits."""
        return choices

    def fold(self):
        """Puts what only training needs into the weights."""

    def parameter_count(self):
        return sum(weight.numel() for weight in self.parameters())

    def published_weights(self, dtype=torch.bfloat16):
        return {name: weight.detach().to("cpu", dtype if weight.is_floating_point() else weight.dtype).contiguous()
                for name, weight in self.state_dict().items()}


class Eagle3(Head):
    """`kept`: the target's ids in the draft vocabulary, ascending."""

    def __init__(self, config, taps, kept):
        super().__init__(config)
        self.taps, width = tuple(taps), config.hidden_size
        self.fc = nn.Linear(len(taps) * width, width, bias=False)
        self.midlayer = Eagle3Layer(config)
        self.norm = RmsNorm(width, config.rms_norm_eps)
        self.lm_head = nn.Linear(width, len(kept), bias=False)
        self.register_buffer("d2t", kept - torch.arange(len(kept)))
        self.register_buffer("t2d", torch.isin(torch.arange(config.vocab_size), kept))
        self.initialise()

    def kept(self):
        return self.d2t + torch.arange(len(self.d2t), device=self.d2t.device)

    def draft_ids(self, choices):
        return choices + self.d2t[choices]

    def first_hidden(self, final, taps):
        return self.fc(torch.cat(taps, -1))

    def entries(self, module, embedding, hidden, table, levels):
        return self.midlayer(embedding, hidden, table, levels)

    def logits(self, module, out, target):
        return self.lm_head(self.norm(out))


class Eagle(Head):
    """`scales`: of the embedding and of the hidden state while training, which has no norm to bring them to one size;
    fold() puts them into fc."""

    def __init__(self, config, scales=(1.0, 1.0)):
        super().__init__(config)
        self.scales = scales
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size)
        self.layers = nn.ModuleList([Block(config)])
        self.initialise()
        nn.init.zeros_(self.fc.bias)

    def entries(self, module, embedding, hidden, table, levels):
        x = self.fc(torch.cat((embedding * self.scales[0], hidden * self.scales[1]), -1))
        return self.layers[0].run(x, x, table, levels)

    def fold(self):
        with torch.no_grad():
            for part, scale in zip(self.fc.weight.chunk(2, 1), self.scales):
                part.mul_(scale)
        self.scales = (1.0, 1.0)

    def logits(self, module, out, target):
        return target.logits(out)


class Mtp(Head):
    def __init__(self, config, target_layers, modules=1):
        super().__init__(config)
        self.num_modules, self.target_layers = modules, target_layers
        self.layers = nn.ModuleList(MtpModule(config) for _ in range(modules))
        self.initialise()

    def entries(self, module, embedding, hidden, table, levels):
        return self.layers[module](embedding, hidden, table, levels, module)

    def logits(self, module, out, target):
        return target.logits(self.layers[module].shared_head["norm"](out))

    def published_weights(self, dtype=torch.bfloat16):
        rename = lambda name: (lambda index, rest: f"model.layers.{self.target_layers + int(index)}.{rest}")(
            *name.removeprefix("layers.").split(".", 1))
        return {rename(name): weight for name, weight in super().published_weights(dtype).items()}


def later(x):
    """Each entry's neighbour before: [batch, length, ..] shifted by one along the length."""
    return functional.pad(x[:, :-1], (0, 0, 1, 0))


def unroll(head, embedding, final, taps, steps):
    """Yields (module, result [batch, length, hidden]) of each step; results of step s are real from index s - 1 on.

    embedding: of tokens 1..length; final, taps: the target's states of tokens 0..length - 1.
    """
    cos, sin = (part[:final.shape[1]] for part in rotary_table(head.config, final.device))
    hidden, caches = head.first_hidden(final, taps), [[] for _ in range(head.num_modules)]
    for step in range(steps):
        module = min(step, head.num_modules - 1)
        table = tuple(functional.pad(part[:len(part) - module], (0, 0, module, 0)) for part in (cos, sin))
        out = head.entries(module, embedding, hidden, table, caches[module])
        yield module, out
        hidden = later(out)


def load_head(folder):
    """A head from its published folder, in fp32 and ready for evaluation."""
    values = json.loads((folder / "config.json").read_text())
    config, weights = Config.from_hugging_face(folder / "config.json"), load_file(folder / "model.safetensors")
    if "eagle_config" in values:
        head = Eagle3(config, values["eagle_config"]["eagle_aux_hidden_state_layer_ids"], weights["t2d"].nonzero()[:, 0])
    elif "num_nextn_predict_layers" in values:
        head, layers = Mtp(config, config.num_hidden_layers, values["num_nextn_predict_layers"]), config.num_hidden_layers
        local = lambda index, rest: f"layers.{int(index) - layers}.{rest}"
        weights = {local(*name.removeprefix("model.layers.").split(".", 1)): weight for name, weight in weights.items()}
    else:
        head = Eagle(config)
    head.load_state_dict(weights)
    return head.float().eval()
