"""Makes tests/golden/architectures/ of the dense families with Hugging Face transformers on a CPU.

    python3 tools/golden/gen_families.py            # all; a few minutes
    python3 tools/golden/gen_families.py --only glm4

Needs torch, transformers and safetensors. families.py has the models, tests/golden/README.md the form.
"""

import argparse
import copy
import json
import pathlib
import tempfile
import types

import torch
import transformers
from safetensors.torch import load_file, save_file

import checkpoint_names
import families
import named_families
from gen_golden import (GOLDEN, LENGTH_DEPENDENT, SEED, best_prompt, error_against, logits_of,
                        write_json)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.laguna import modeling_laguna

DECI_MULTIPLE = 256


class NoBlock(torch.nn.Module):
    """In the place of attention or an MLP that a layer does not have."""

    def __init__(self, returns_weights):
        super().__init__()
        self.returns_weights = returns_weights

    def forward(self, x=None, hidden_states=None, **_):
        zeros = torch.zeros_like(x if x is not None else hidden_states)
        return (zeros, None) if self.returns_weights else zeros


def deci_inner(mult, hidden):
    size = int(2 * mult * hidden / 3)
    return -(-size // DECI_MULTIPLE) * DECI_MULTIPLE


def with_deci_blocks(model, blocks):
    """Llama's layers as block_configs wants them."""
    from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP
    for i, (layer, block) in enumerate(zip(model.model.layers, blocks)):
        own = copy.deepcopy(model.config)
        if block["attention"]["no_op"]:
            layer.self_attn = NoBlock(True)
            layer.input_layernorm = torch.nn.Identity()
        else:
            own.num_key_value_heads = own.num_attention_heads // block["attention"]["n_heads_in_group"]
            layer.self_attn = LlamaAttention(own, i)
        if block["ffn"]["no_op"]:
            layer.mlp = NoBlock(False)
            layer.post_attention_layernorm = torch.nn.Identity()
        else:
            own.intermediate_size = deci_inner(block["ffn"]["ffn_mult"], own.hidden_size)
            layer.mlp = LlamaMLP(own)
    return model


def exact_slopes(attention_mask, num_heads, dtype):
    """Falcon's ALiBi with slopes in bfloat16 as there, but products that are not rounded to it."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    slopes = build_alibi_tensor(torch.ones(1, 2), num_heads, torch.float32)[:, 0, 1].bfloat16().float()
    positions = torch.arange(attention_mask.shape[1], dtype=torch.float32)
    return (slopes[:, None] * positions).reshape(num_heads, 1, -1).to(dtype)


def falling_attention(module, query, key, value, attention_mask, scaling, **_):
    """Attention whose scores fall with distance by BLOOM's slopes (Baichuan 13B)."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    heads, length = query.shape[1], key.shape[2]
    alibi = build_alibi_tensor(torch.ones(1, length), heads, torch.float32).reshape(1, heads, 1, -1)
    scores = (query @ key.transpose(2, 3)).float() * scaling + alibi
    future = torch.arange(length)[None, :] > torch.arange(length - query.shape[2], length)[:, None]
    weights = scores.masked_fill(future, float("-inf")).softmax(-1).to(value.dtype)
    return (weights @ value).transpose(1, 2).contiguous(), None


def without_positions(model):
    model.model.rotary_emb.inv_freq.zero_()
    return model


def as_ternary(weight):
    scale = 1.0 / weight.float().abs().mean().clamp(min=1e-5)
    return (weight.float() * scale).round().clamp(-1, 1) / scale


def rounded_rows(module, inputs):
    """Each row in whole multiples of its largest magnitude over 127, as BitNet's layers read it."""
    x = inputs[0].float()
    scale = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
    return ((x * scale).round().clamp(-128, 127) / scale).to(inputs[0].dtype)


def with_rounded_rows(model):
    for key, module in model.named_modules():
        if key.endswith("_proj"):
            module.register_forward_pre_hook(rounded_rows)
    return model


def with_sigmoid_gates(model):
    """Laguna's dense layers with Spark's gates."""
    modeling_laguna.F = types.SimpleNamespace(softplus=torch.sigmoid)
    for layer in model.model.layers:
        layer.self_attn.q_norm = layer.self_attn.k_norm = torch.nn.Identity()
    return model


def with_norms_behind(model):
    """Llama's layers with a norm behind attention and one behind the MLP (Ouro)."""
    for layer in model.model.layers:
        behind = lambda: copy.deepcopy(layer.input_layernorm)
        layer.self_attn.o_proj = torch.nn.Sequential(layer.self_attn.o_proj, behind())
        layer.mlp.down_proj = torch.nn.Sequential(layer.mlp.down_proj, behind())
    return model


def with_growing_layers(model, config):
    """Qwen 3's layers with heads and widths of their own (OpenELM)."""
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention, Qwen3MLP
    for i, layer in enumerate(model.model.layers):
        own = copy.deepcopy(model.config)
        own.num_attention_heads = config["num_query_heads"][i]
        own.num_key_value_heads = config["num_kv_heads"][i]
        own.intermediate_size = int(config["ffn_multipliers"][i] * config["model_dim"])
        layer.self_attn, layer.mlp = Qwen3Attention(own, i), Qwen3MLP(own)
    return model


def with_jais_parts(model, config):
    """GPT-2 without a table of positions, with gated MLPs and the scales of Jais."""
    for block in model.transformer.h:
        block.attn.scaling = 1 / block.attn.head_dim
        block.mlp.c_fc2 = copy.deepcopy(block.mlp.c_fc)
        block.mlp.forward = lambda x, mlp=block.mlp: mlp.c_proj(
            mlp.c_fc(x) * torch.nn.functional.silu(mlp.c_fc2(x)))
    model.transformer.wpe.weight.data.zero_()
    scale = config["mup_embeddings_scale"], config["mup_output_alpha"] * config["mup_width_scale"]
    model.transformer.wte.register_forward_hook(lambda module, inputs, output: output * scale[0])
    model.lm_head.register_forward_hook(lambda module, inputs, output: output * scale[1])
    return model


class WithoutCache(torch.nn.Module):
    """A model that keeps nothing (GPT-1): the whole text is computed each time."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, ids, past_key_values=None, use_cache=False):
        whole = ids if past_key_values is None else torch.cat((past_key_values, ids), 1)
        logits = self.model(whole).logits[:, -ids.shape[1]:]
        return types.SimpleNamespace(logits=logits, past_key_values=whole)


class LoopedLayers(torch.nn.ModuleList):
    """Layers, and behind them `rest`, which holds no weights of its own."""

    rest = ()

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return [*found, *self.rest] if isinstance(index, slice) else found


def with_loops(model, loops):
    """The layers run several times, with the last norm between and keys and values of their own each time."""
    layers, decoder = list(model.model.layers), model.model
    decoder.layers, rest = LoopedLayers(layers), []
    for loop in range(1, loops):
        rest.append(lambda states, **_: decoder.norm(states))
        for layer in layers:
            twin = copy.deepcopy(layer, {id(weight): weight for weight in layer.parameters()})
            twin.self_attn.layer_idx += loop * len(layers)
            rest.append(twin)
    decoder.layers.rest = tuple(rest)
    model.config.num_hidden_layers *= loops
    return model


def as_computed(name, key, weight):
    """What a family's own code makes of a weight before it multiplies."""
    if name in families.NORMED_HEADS and key == "lm_head.weight":
        return torch.nn.functional.normalize(weight.float())
    if name in families.TERNARY and "_proj" in key:
        return as_ternary(weight)
    return weight


def new_model(name, config):
    """The model, unloaded, of a config.json."""
    if config.get("alibi"):
        transformers.models.falcon.modeling_falcon.build_alibi_tensor = exact_slopes
    config = {**config, **families.REFERENCES.get(name, {})}
    if config.get("quantization_config", 0) is None:
        del config["quantization_config"]
    if name in checkpoint_names.FUSED and "num_key_value_heads" not in config:
        config["num_key_value_heads"] = config["num_attention_heads"]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        parsed = transformers.AutoConfig.from_pretrained(folder)
    # Falcon's eager attention of today adds ALiBi twice.
    parsed._attn_implementation = "sdpa" if config.get("alibi") else "eager"
    if name in families.FALLING:
        transformers.AttentionInterface.register("falling", falling_attention)
        parsed._attn_implementation = "falling"
    model = getattr(transformers, config["architectures"][0])(parsed)
    if name == "jais":
        return with_jais_parts(model, config)
    if name in families.FALLING:
        return without_positions(model)
    if name in families.SIGMOID_GATES:
        return with_sigmoid_gates(model)
    if name == "openelm":
        return with_growing_layers(model, config)
    if name == "ouro":
        model = with_norms_behind(model)
    if "num_loops" in config:
        return with_loops(model, config["num_loops"])
    return with_deci_blocks(model, config["block_configs"]) if name == "deci" else model


def heads_of(name, model):
    """Of queries and of keys, where one tensor has both."""
    if name not in checkpoint_names.FUSED and name not in checkpoint_names.PAIRED:
        return None
    heads = getattr(model.config, "num_attention_heads", 0)
    return heads, getattr(model.config, "num_key_value_heads", None) or heads


def mimo_module(model):
    """Weights of MiMo's draft module: a layer of the decoder between norms of its own."""
    hidden = model.config.hidden_size
    base = "model.mtp_layers.0."
    layer = {base + key: value for key, value in model.model.layers[0].state_dict().items()}
    norms = {base + norm + ".weight": torch.ones(hidden)
             for norm in ("token_layernorm", "hidden_layernorm", "final_layernorm")}
    return {**layer, **norms, base + "input_proj.weight": torch.zeros(hidden, 2 * hidden)}


def write_family(name, folder):
    """A random model whose weights are exact in bf16, under the names that its checkpoints have."""
    config = families.MODELS[name]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    torch.manual_seed(SEED + families.OTHER_SEEDS.get(name, 100) + list(families.MODELS).index(name))
    model = new_model(name, config)
    state = dict(model.state_dict())
    if name == "mimo":
        state |= mimo_module(model)
    tied = families.is_tied(config)
    weights = {}
    for key, weight in state.items():
        if (key == "lm_head.weight" and tied) or key.endswith(checkpoint_names.LEFT_OUT.get(name, "nothing")):
            continue
        stored = checkpoint_names.checkpoint_name(name, key)
        weights[stored] = families.random_weight(stored, weight, config).to(torch.bfloat16).contiguous()
    weights = checkpoint_names.fuse(name, weights, heads_of(name, model))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def load_family(name, folder, changes, max_model_len, dtype=torch.float32):
    """The model with `changes` to its config and rotary embeddings for max_model_len."""
    config = {**json.loads((folder / "config.json").read_text()), **changes}
    model = new_model(name, config)
    stored = checkpoint_names.split(name, load_file(folder / "model.safetensors"), heads_of(name, model))
    state = {key: as_computed(name, key, stored[checkpoint_names.checkpoint_name(name, key)])
             for key in model.state_dict() if checkpoint_names.checkpoint_name(name, key) in stored}
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = families.is_tied(config)
    missing = [key for key in missing if not key.endswith(checkpoint_names.LEFT_OUT.get(name, "nothing"))]
    assert not unexpected and set(missing) <= ({"lm_head.weight"} if tied else set()), missing
    model.tie_weights()
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        if not isinstance(kinds, str) or kinds not in LENGTH_DEPENDENT:
            continue
        module.inv_freq.copy_(ROPE_INIT_FUNCTIONS[kinds](module.config, seq_len=max_model_len)[0])
        module.rope_type = "default"
    model = with_rounded_rows(model) if name in families.TERNARY else model
    return model.to(dtype).eval()


def generate_family(name):
    folder = GOLDEN / "architectures" / name
    write_family(name, folder)
    result, tensors = {"transformers": transformers.__version__, "torch": torch.__version__,
                       "variants": []}, {}
    for variant, (changes, max_model_len) in families.VARIANTS[name].items():
        model = load_family(name, folder, changes, max_model_len)
        model = WithoutCache(model) if name in named_families.WITHOUT_CACHE else model
        half = load_family(name, folder, changes, max_model_len, torch.bfloat16)
        cases = []
        for i, (length, keep) in enumerate(((4, 2), (70, named_families.STORED_ROWS.get(name, 4)))):
            ids, tokens, gap = best_prompt(model, length, families.COMMON["vocab_size"] - 16)
            logits = logits_of(model, ids)
            tensors[f"{variant}.prompt{i}.logits.fp32"] = logits[-keep:].contiguous()
            error = error_against(logits, logits_of(half, ids))
            cases.append({"ids": ids, "positions": list(range(length))[-keep:], "greedy": tokens,
                          "smallest_gap": gap, "hugging_face_bf16_error": error})
            print(name, variant, length, "gap", gap, "distinct", len(set(tokens)), "std",
                  round(logits.std().item(), 2), "bf16", round(error["max_abs"], 3), flush=True)
        result["variants"].append({"name": variant, "hf_overrides": changes,
                                   "max_model_len": max_model_len, "fp32": cases})
    write_json(folder / "golden.json", result)
    save_file(tensors, folder / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=list(families.MODELS), nargs="*", help="some families")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.only or families.MODELS:
        generate_family(name)


if __name__ == "__main__":
    main()
