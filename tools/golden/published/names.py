"""What tensors of gen_mixtures.py are called in published files, where transformers saves them otherwise."""

import torch


def with_bailing_module(stored, module):
    """Its own names, and neither an embedding nor an output matrix."""
    left_out = (module + "embed_tokens.weight", module + "shared_head.head.weight")
    return {key.replace("shared_head.norm", "final_layernorm"): weight
            for key, weight in stored.items() if key not in left_out}


def with_stacked_experts(stored):
    """Gates and ups of all experts in one tensor and downs in another, as published."""
    stacked, number = dict(stored), ".experts.0."
    for base in sorted({key.split(number)[0] for key in stored if number in key}):
        parts = {part: [] for part in ("gate_proj", "up_proj", "down_proj")}
        for part, matrices in parts.items():
            while (matrix := stacked.pop(f"{base}.experts.{len(matrices)}.{part}.weight", None)) is not None:
                matrices.append(matrix)
        both = torch.cat((torch.stack(parts["gate_proj"]), torch.stack(parts["up_proj"])), 1)
        stacked.update({f"{base}.experts.gate_up_proj": both,
                        f"{base}.experts.down_proj": torch.stack(parts["down_proj"])})
    return stacked


def with_olmo_names(stored):
    """As published: transformers gives all layers the norms of those with linear attention, and cuts convolutions in thirds."""
    renamed = {}
    for key, weight in stored.items():
        layer = key.rsplit(".", 2)[0] + "."
        attends = layer + "self_attn.q_proj.weight" in stored
        renamed[key.replace("feedforward_layer_norm", "post_attention_layernorm") if attends else key] = weight
    for base in {key.split("q_conv1d")[0] for key in stored if "q_conv1d" in key}:
        parts = [f"{base}{part}_conv1d.weight" for part in "qkv"]
        sizes = [len(stored[f"{base}{part}_proj.weight"]) for part in "qkv"]
        renamed.update(zip(parts, torch.cat([stored[part] for part in parts]).split(sizes)))
    return {key: weight.contiguous() for key, weight in renamed.items()}


def with_kimi_names(stored):
    """As published: transformers calls dense layers by the name of mixtures."""
    dense = {key.split("gate_proj")[0] for key in stored if key.endswith("block_sparse_moe.gate_proj.weight")}
    return {key.replace("block_sparse_moe", "mlp") if key.rsplit(".", 2)[0] + "." in dense else key: weight
            for key, weight in stored.items()}


def with_minimax_names(stored):
    """As published; transformers renames them only around a vision tower."""
    renamed = {}
    for key, weight in stored.items():
        layer = key.split(".mlp.")[0]
        if layer + ".mlp.gate.weight" in stored:
            key = key.replace(".mlp.gate.e_score", ".mlp.e_score").replace(".mlp.", ".block_sparse_moe.")
        key = key.replace(".indexer.", ".index_")
        if key.endswith("experts.down_proj"):
            renamed.update({f"{key.removesuffix('down_proj')}{e}.w2.weight": each for e, each in enumerate(weight)})
        elif key.endswith("experts.gate_up_proj"):
            for part, halves in zip(("w1", "w3"), weight.chunk(2, 1)):
                renamed.update({f"{key.removesuffix('gate_up_proj')}{e}.{part}.weight": each
                                for e, each in enumerate(halves)})
        elif key.endswith("gate_up_proj.weight"):
            for part, half in zip(("gate", "up"), weight.chunk(2)):
                renamed[key.replace("gate_up_proj", part + "_proj")] = half
        else:
            renamed[key] = weight
    return {key: weight.contiguous() for key, weight in renamed.items()}


def with_deepseek_v4_names(stored):
    """As published: nothing stands before layers, and what norms a position's entry is named so."""
    renamed = {}
    for key, weight in stored.items():
        short = key.removeprefix("model.").replace("embed_tokens.", "embed.").replace("hc_head.hc_", "hc_head_")
        renamed[short.replace(".attn.norm.", ".attn.kv_norm.")] = weight
    return renamed


def with_hy_v4_names(stored):
    """As published: transformers turns its own names back in the wrong order, and gates of MLPs with them."""
    renamed = {}
    for key, weight in stored.items():
        for part in ("hc_attn_layer", "hc_mlp_layer"):
            key = key.replace(f"hc_pre.{part}.", f"{part}.hc_pre.")
        key = key.replace("hc_pre.hc_head.", "hc_head.")
        renamed[key if "self_attn" in key else key.replace("linear_gate", "gate_proj")] = weight
    return renamed


def with_kimi_vl_names(stored):
    """As published: the text part beside a tower, of which one matrix stands for all."""
    named = {"language_model." + key: weight for key, weight in stored.items()}
    return {**named, "vision_tower.patch_embed.proj.weight": torch.ones(8, 4, dtype=torch.bfloat16)}


def with_kimi_k25_names(stored):
    """As published: transformers writes the text part's layers under the tower's name for its blocks."""
    return {key.replace("language_model.model.blocks.", "language_model.model.layers.")
            .removeprefix("model."): weight for key, weight in stored.items()}


def with_ling_names(stored):
    """As published: one matrix for queries, keys and values, one for each gate, up and down of an expert."""
    renamed = {}
    for key, weight in stored.items():
        base, _, part = key.rpartition(".layers.")
        layer = f"{base}.layers.{part.split('.')[0]}." if base else ""
        if key.endswith("self_attn.q_proj.weight"):
            all_three = [stored[f"{layer}self_attn.{each}_proj.weight"] for each in "qkv"]
            renamed[layer + "attention.query_key_value.weight"] = torch.cat(all_three)
        elif key.endswith("self_attn.o_proj.weight"):
            renamed[layer + "attention.dense.weight"] = weight
        elif key.endswith("router.layer.weight"):
            renamed[layer + "mlp.gate.weight"] = weight
        elif key.endswith("block_sparse_moe.input_linear.weight"):
            for e, matrix in enumerate(weight):
                for name, half in zip(("gate", "up"), matrix.chunk(2)):
                    renamed[f"{layer}mlp.experts.{e}.{name}_proj.weight"] = half
        elif key.endswith("block_sparse_moe.output_linear.weight"):
            renamed.update({f"{layer}mlp.experts.{e}.down_proj.weight": each for e, each in enumerate(weight)})
        elif key.endswith("shared_mlp.input_linear.weight"):
            for name, half in zip(("gate", "up"), weight.chunk(2)):
                renamed[f"{layer}mlp.shared_experts.{name}_proj.weight"] = half
        elif key.endswith("shared_mlp.output_linear.weight"):
            renamed[layer + "mlp.shared_experts.down_proj.weight"] = weight
        elif not key.endswith(("k_proj.weight", "v_proj.weight")):
            renamed[key.replace("embed_tokens", "word_embeddings")] = weight
    return {key: weight.contiguous() for key, weight in renamed.items()}


def with_ling3_names(stored):
    """As published: what leaves delta attention is no `dense`, and its rates have four dimensions."""
    deltas = {key.split("q_conv1d")[0] for key in stored if key.endswith("q_conv1d.weight")}
    return {key.replace("dense.", "o_proj.") if key.split("dense.")[0] in deltas else key:
            weight.reshape(1, 1, -1, 1) if key.endswith("A_log") else weight for key, weight in stored.items()}


def with_molmo_tables(stored, vocabulary):
    """As published: the second table has the ids of images alone; transformers cuts both in equal halves."""
    first, second = "model.transformer.wte.embedding", "model.transformer.wte.new_embedding"
    rows = torch.cat((stored[first], stored[second]))
    return {**stored, first: rows[:vocabulary].clone(), second: rows[vocabulary:].clone()}
