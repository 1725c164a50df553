#!/usr/bin/env python3
"""Writes tests/golden/gguf and tests/fuzz/corpus/gguf: the tiny models of tests/golden/architectures
as GGUF files, blocks of every quantised type with the floats that the package `gguf` makes of them,
floats with the blocks that it makes of them, the vocabulary of foretoken-7m as a GGUF file, and files
of a few KB that the fuzzer starts from. Needs `pip install gguf numpy safetensors`, and the path of
ggml's libggml-base.so as argument; `--only gpt-oss` writes that model alone and needs no library.
"""

import ctypes
import json
import pathlib
import sys

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "tests" / "golden" / "gguf"
SEEDS = ROOT / "tests" / "fuzz" / "corpus" / "gguf"
ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
TYPES = ["Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q5_K", "IQ1_S",
         "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0",
         "MXFP4", "NVFP4"]
# Upper bytes of halves in a block; of a power of two, the byte itself.
UPPER_BYTES = {"Q4_K": [1, 3], "Q5_K": [1, 3], "Q6_K": [209], "Q4_1": [1, 3], "Q5_1": [1, 3],
               "Q2_K": [81, 83], "Q3_K": [109], "TQ1_0": [53], "TQ2_0": [65], "IQ1_M": [55],
               "MXFP4": [], "NVFP4": []}


def read_bf16(path):
    """Tensors of a safetensors file, those of BF16 as float32, bytes as they are."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "U8":
            tensors[name] = np.frombuffer(data[begin:end], dtype=np.uint8).reshape(entry["shape"])
            continue
        bits = np.frombuffer(data[begin:end], dtype=np.uint16).astype(np.uint32) << 16
        tensors[name] = bits.view(np.float32).reshape(entry["shape"])
    return tensors


def gguf_name(name):
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
             "lm_head.weight": "output.weight"}
    if name in fixed:
        return fixed[name]
    _, _, layer, rest = name.split(".", 3)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{LAYER[part]}.{kind}"


def interleave(rows, num_heads):
    """Rows of the two halves of each head in turn, as converters of Llama write them."""
    half = rows.shape[0] // num_heads // 2
    return rows.reshape(num_heads, 2, half, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def add_sizes(writer, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    return head_dim


def write_model(name, architecture):
    folder = ROOT / "tests" / "golden" / "architectures" / name
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", architecture)
    head_dim = add_sizes(writer, config)
    for key, values in read_bf16(folder / "model.safetensors").items():
        if architecture == "llama" and (".q_proj." in key or ".k_proj." in key):
            values = interleave(values, values.shape[0] // head_dim)
        writer.add_tensor(gguf_name(key), np.ascontiguousarray(values))
    finish(writer)


def mxfp4_rows(blocks, scales):
    """Of a folder's blocks, whose bytes hold two neighbours, those of GGUF: a byte of the scale, then the
    first sixteen codes in the low halves of as many bytes and the others in the high ones."""
    codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
    packed = codes[..., :16] | codes[..., 16:] << 4
    return np.concatenate([scales[..., None], packed], -1).reshape(*blocks.shape[:2], -1)


def gpt_oss_tensors(folder):
    """(name, values, whether they are MXFP4)."""
    names = {**LAYER, "post_attention_layernorm": "post_attention_norm", "mlp.router": "ffn_gate_inp"}
    tensors = read_bf16(folder / "model.safetensors")
    for key, values in tensors.items():
        if not key.startswith("model.layers."):
            yield gguf_name(key), values, False
            continue
        _, _, layer, rest = key.split(".", 3)
        base = f"blk.{layer}."
        if rest == "self_attn.sinks":
            yield base + "attn_sinks.weight", values, False
        elif not rest.startswith("mlp.experts."):
            part, kind = rest.rsplit(".", 1)
            yield f"{base}{names[part]}.{kind}", values, False
        elif rest.endswith("gate_up_proj_bias"):
            yield base + "ffn_gate_exps.bias", values[:, 0::2], False
            yield base + "ffn_up_exps.bias", values[:, 1::2], False
        elif rest.endswith("down_proj_bias"):
            yield base + "ffn_down_exps.bias", values, False
        elif rest.endswith("_blocks"):
            rows = mxfp4_rows(values, tensors[key.replace("_blocks", "_scales")])
            if "gate_up" in rest:
                yield base + "ffn_gate_exps.weight", rows[:, 0::2], True
                yield base + "ffn_up_exps.weight", rows[:, 1::2], True
            else:
                yield base + "ffn_down_exps.weight", rows, True


def write_gpt_oss():
    """As llama.cpp's converter writes such models, with plain matrices in BF16."""
    folder = ROOT / "tests" / "golden" / "architectures" / "gpt_oss-mxfp4"
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(OUT / "gpt-oss.gguf", "gpt-oss")
    add_sizes(writer, config)
    writer.add_sliding_window(config["sliding_window"])
    writer.add_expert_feed_forward_length(config["intermediate_size"])
    writer.add_expert_count(config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(config["rope_scaling"]["factor"])
    writer.add_rope_scaling_orig_ctx_len(config["rope_scaling"]["original_max_position_embeddings"])
    for name, values, is_mxfp4 in gpt_oss_tensors(folder):
        values = np.ascontiguousarray(values)
        if is_mxfp4:
            writer.add_tensor(name, values, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        elif values.ndim > 1 and not name.endswith(".bias"):
            kind = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_blocks():
    """Random bytes are blocks as good as any, with scales that are no infinities."""
    random = np.random.default_rng(1)
    cases = {}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        _, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (3, size), dtype=np.uint8)
        scales = UPPER_BYTES.get(name, [1])
        blocks[:, scales] = random.integers(0, 64, (3, len(scales)), dtype=np.uint8)
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 127]
        floats = gguf.quants.dequantize(blocks, kind).astype(np.float32)
        cases[name] = {"blocks": blocks.tobytes().hex(), "floats": floats.tobytes().hex()}
    (OUT / "blocks.json").write_text(json.dumps(cases, indent=1) + "\n")


def ggml_error(library, kind, values):
    """Root mean square error of ggml's own quantiser for a type that the package cannot write."""
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.zeros((values.size // 256, size), dtype=np.uint8)
    quantize = getattr(library, f"quantize_row_{kind.name.lower().replace('_k', '_K')}_ref")
    quantize(values.ctypes.data_as(ctypes.c_void_p), blocks.ctypes.data_as(ctypes.c_void_p),
             ctypes.c_int64(values.size))
    floats = gguf.quants.dequantize(blocks, kind).reshape(-1)
    return float(np.sqrt(np.mean((floats.astype(np.float64) - values) ** 2)))


def write_encoded(ggml):
    """Floats and what becomes of them in each type; `ggml`: libggml-base.so."""
    random = np.random.default_rng(3)
    values = random.standard_normal(4096).astype(np.float32) * np.float32(0.03)
    values[1024:1056] = 0
    values[1056:1058] = [-0.1171875, -0.06591796875]  # a code that hangs on each rounding
    values[1100] = 0.5
    values[2048:2560] = np.abs(values[2048:2560])
    blocks = {}
    for name in ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4"]:
        kind = gguf.GGMLQuantizationType[name]
        blocks[name] = gguf.quants.quantize(values, kind).tobytes().hex()
    library = ctypes.CDLL(ggml)
    errors = {name: ggml_error(library, gguf.GGMLQuantizationType[name], values)
              for name in ["Q4_K", "Q6_K"]}
    case = {"floats": values.tobytes().hex(), "blocks": blocks, "errors": errors}
    (OUT / "encoded.json").write_text(json.dumps(case, indent=1) + "\n")


def write_vocabulary():
    model = ROOT / "models" / "foretoken-7m"
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokens = [""] * len(tokenizer["model"]["vocab"])
    for token, number in tokenizer["model"]["vocab"].items():
        tokens[number] = token
    types = [gguf.TokenType.NORMAL] * len(tokens)
    for added in tokenizer["added_tokens"]:
        while added["id"] >= len(tokens):
            tokens.append("")
            types.append(gguf.TokenType.UNUSED)
        tokens[added["id"]] = added["content"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    writer = gguf.GGUFWriter(OUT / "vocabulary.gguf", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(json.loads((model / "tokenizer_config.json").read_text())["chat_template"])
    finish(writer)


def add_seed_tokens(writer, kind):
    pieces = ["<s>", "<0x0A>", "\u2581", "a", "b", "ab", "\u2581a"]
    writer.add_tokenizer_model(kind)
    writer.add_token_list(pieces)
    writer.add_token_types([gguf.TokenType.CONTROL, gguf.TokenType.BYTE] + [gguf.TokenType.NORMAL] * 5)
    if kind == "llama":
        writer.add_token_scores([0.0] * 5 + [-1.0, -2.0])
        writer.add_add_space_prefix(True)
        writer.add_unk_token_id(0)
    else:
        writer.add_tokenizer_pre("llama-bpe")
        writer.add_token_merges(["a b", "\u2581 a"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{{ messages[0]['content'] }}")


def write_seed(architecture, kind, types):
    """One layer, its matrices in turn in `types`."""
    writer = gguf.GGUFWriter(SEEDS / f"{architecture}.gguf", architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(256)
    writer.add_block_count(1)
    writer.add_feed_forward_length(2)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_key_length(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    if architecture == "gpt-oss":
        writer.add_expert_count(4)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(2)
        writer.add_sliding_window(8)
        writer.add_tensor("blk.0.attn_sinks.weight", np.zeros(2, dtype=np.float32))
        writer.add_tensor("blk.0.ffn_gate_exps.bias", np.zeros((4, 2), dtype=np.float32))
    if architecture == "qwen2":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(4.0)
        writer.add_rope_scaling_orig_ctx_len(16)
        writer.add_sliding_window(8)
    add_seed_tokens(writer, kind)
    random = np.random.default_rng(2)
    rows = {"token_embd": 7, "blk.0.attn_q": 4, "blk.0.attn_k": 2, "blk.0.attn_v": 2,
            "blk.0.ffn_gate": 2, "blk.0.ffn_up": 2}
    for i, (name, count) in enumerate(rows.items()):
        kind = gguf.GGMLQuantizationType[types[i % len(types)]]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        raw = random.integers(0, 256, (count, 256 // elements * size), dtype=np.uint8)
        writer.add_tensor(f"{name}.weight", raw, raw_dtype=kind)
    writer.add_tensor("output_norm.weight", np.ones(256, dtype=np.float32))
    if architecture == "llama":
        writer.add_tensor("rope_freqs.weight", np.ones(1, dtype=np.float32))
    finish(writer)


def write_seeds():
    SEEDS.mkdir(exist_ok=True)
    write_seed("llama", "llama", ["Q8_0", "Q4_0", "F16"])
    write_seed("qwen2", "gpt2", ["Q4_K", "BF16"])
    write_seed("qwen3", "gpt2", ["Q6_K", "F32"])
    write_seed("gemma3", "llama", ["Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "MXFP4", "Q8_1"])
    write_seed("phi3", "gpt2", ["Q2_K", "Q3_K", "Q5_K", "IQ4_XS", "TQ1_0", "TQ2_0"])
    write_seed("smollm3", "gpt2", ["IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS"])
    write_seed("gemma2", "llama", ["IQ3_S", "NVFP4", "Q8_K"])
    write_seed("gpt-oss", "gpt2", ["MXFP4", "BF16"])


def main():
    OUT.mkdir(exist_ok=True)
    write_gpt_oss()
    if sys.argv[1:] == ["--only", "gpt-oss"]:
        return
    for name, architecture in ARCHITECTURES.items():
        write_model(name, architecture)
    write_blocks()
    write_encoded(sys.argv[1])
    write_vocabulary()
    write_seeds()


if __name__ == "__main__":
    main()
