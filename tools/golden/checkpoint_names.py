"""How the tensors of families.py are named and fused in checkpoints: RENAMES and REPLACED map the names
of a state dict to those of a checkpoint, FUSED has what takes the place of q, k and v.
"""

import torch

import named_families

# Tensors that a reference has and a checkpoint has not; they are 0.
LEFT_OUT = {"internlm3": "o_proj.bias", "jais": "wpe.weight",
            "telechat": ("q_proj.bias", "k_proj.bias", "v_proj.bias", "gate_proj.bias", "up_proj.bias")}

# Names of checkpoints as published: beginnings of the state dict's names and what they become.
_OLD_LLAVA = [("model.language_model.", "language_model.model."), ("lm_head", "language_model.lm_head"),
              ("model.", "")]
_OLD_QWEN = [("model.language_model.", "model."), ("model.visual.", "visual.")]
_NEOX = [("lm_head.", "embed_out.")]
RENAMES = {"internvl_chat": [("", "language_model.")],
           "mistral3": _OLD_LLAVA, "mllama": _OLD_LLAVA, "qwen2-vl": _OLD_QWEN, "qwen2_5-vl": _OLD_QWEN, "gpt_neox": _NEOX,
           "gpt_neox-serial": _NEOX}
# The same, anywhere in a name.
REPLACED = {
    "maincoder": [("query_layernorm", "q_norm"), ("key_layernorm", "k_norm")],
    "exaone": [("model.embed_tokens", "transformer.wte"), ("model.norm.", "transformer.ln_f."),
               ("model.layers.", "transformer.h."), ("self_attn.", "attn.attention."),
               ("o_proj", "out_proj"), ("gate_proj", "c_fc_0"), ("up_proj", "c_fc_1"),
               ("down_proj", "c_proj"), ("input_layernorm", "ln_1"),
               ("post_attention_layernorm", "ln_2")],
    "internlm2": [("embed_tokens", "tok_embeddings"), ("lm_head", "output"),
                  ("self_attn.", "attention."), ("o_proj", "wo"), ("mlp.", "feed_forward."),
                  ("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2"),
                  ("input_layernorm", "attention_norm"), ("post_attention_layernorm", "ffn_norm")],
    "chatglm": [("model.embed_tokens", "transformer.embedding.word_embeddings"),
                ("model.norm.", "transformer.encoder.final_layernorm."),
                ("model.layers.", "transformer.encoder.layers."),
                ("lm_head", "transformer.output_layer"), ("self_attn.", "self_attention."),
                ("o_proj", "dense"), ("gate_up_proj", "dense_h_to_4h"),
                ("down_proj", "dense_4h_to_h")],
    "spark": [("embed_tokens", "embedding"), ("o_proj", "out_proj")],
    **named_families.REPLACED,
}
# Names of the one tensor that takes the place of q_proj, k_proj and v_proj.
FUSED = {"internlm2": "wqkv", "baichuan": "W_pack", "baichuan2": "W_pack", "baichuan-13b": "W_pack",
         "chatglm": "query_key_value", "spark": "q_k_v_proj", "qwen": "c_attn", "openelm": "qkv_proj",
         "molmo": "att_proj"}
# Names of the one tensor that takes the place of k_proj and v_proj: a head's key, then its value.
PAIRED = {"telechat": "key_value"}
# The same of gate_proj and up_proj.
FUSED_GATES = {"openelm": "proj_1", "molmo": "ff_proj"}
# Those that have the queries of a key head, it and its values, and so on.
FUSED_BY_GROUP = ("internlm2",)


def checkpoint_name(model, key):
    for old, new in RENAMES.get(model, []):
        if key.startswith(old):
            return new + key[len(old):]
    for old, new in REPLACED.get(model, []):
        key = key.replace(old, new)
    return key


def fuse_gates(model, weights):
    if model not in FUSED_GATES:
        return weights
    fused = {name.replace("gate_proj", FUSED_GATES[model]):
             torch.cat((weight, weights[name.replace("gate_proj", "up_proj")])) if "gate_proj" in name else weight
             for name, weight in weights.items()}
    return {name: weight for name, weight in fused.items() if "up_proj" not in name}


def split_gates(model, weights):
    apart = {}
    for name, weight in weights.items():
        kind = FUSED_GATES.get(model)
        if kind is None or kind not in name:
            apart[name] = weight
            continue
        for part, half in zip(("gate_proj", "up_proj"), weight.chunk(2)):
            apart[name.replace(kind, part)] = half
    return apart


def pair(model, weights, heads):
    """A checkpoint with k and v in one tensor."""
    paired = {}
    for name, weight in weights.items():
        if "k_proj" in name:
            values = weights[name.replace("k_proj", "v_proj")]
            both = torch.cat([part.reshape(heads[1], -1, *weight.shape[1:]) for part in (weight, values)], 1)
            paired[name.replace("k_proj", PAIRED[model])] = both.reshape(-1, *weight.shape[1:])
        elif "v_proj" not in name:
            paired[name] = weight
    return paired


def part_pairs(model, weights, heads):
    """The other way."""
    apart = {}
    for name, weight in weights.items():
        if PAIRED[model] not in name:
            apart[name] = weight
            continue
        for part, kind in zip(weight.reshape(heads[1], 2, -1, *weight.shape[1:]).unbind(1), ("k_proj", "v_proj")):
            apart[name.replace(PAIRED[model], kind)] = part.reshape(-1, *weight.shape[1:])
    return apart


def fuse(model, weights, heads):
    """A checkpoint with q, k and v in one tensor; heads: of queries and of keys."""
    if model in PAIRED:
        return pair(model, weights, heads)
    if model not in FUSED:
        return weights
    weights, fused = fuse_gates(model, weights), {}
    for name, weight in weights.items():
        if "q_proj" not in name:
            if "k_proj" not in name and "v_proj" not in name:
                fused[name] = weight
            continue
        parts = [weights[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
        if model in FUSED_BY_GROUP:
            groups = [part.reshape(heads[1], -1, *part.shape[1:]) for part in parts]
            parts = [torch.cat(groups, 1).reshape(-1, *weight.shape[1:])]
        fused[name.replace("q_proj", FUSED[model])] = torch.cat(parts)
    return fused


def split(model, weights, heads):
    """The other way."""
    if model in PAIRED:
        return part_pairs(model, weights, heads)
    if model not in FUSED:
        return weights
    weights, apart = split_gates(model, weights), {}
    for name, weight in weights.items():
        if FUSED[model] not in name:
            apart[name] = weight
            continue
        queries, keys = heads
        rows = weight.shape[0] // (queries + 2 * keys)
        if model in FUSED_BY_GROUP:
            groups = weight.reshape(keys, -1, *weight.shape[1:])
            parts = groups.split([queries // keys * rows, rows, rows], 1)
            parts = [part.reshape(-1, *weight.shape[1:]) for part in parts]
        else:
            parts = weight.split([queries * rows, keys * rows, keys * rows])
        for part, kind in zip(parts, ("q_proj", "k_proj", "v_proj")):
            apart[name.replace(FUSED[model], kind)] = part
    return apart
