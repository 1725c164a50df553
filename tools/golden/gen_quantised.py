#!/usr/bin/env python3
"""Writes tests/golden/quantised: small checkpoints in the layouts of AutoGPTQ (versions 1 and 2, 4
and 8 bits, with act order), AutoAWQ (gemm), compressed-tensors, ModelOpt and bitsandbytes, and as
expected.safetensors what plain numpy, and torch for floats of eight bits, make of their codes. Needs
`pip install numpy safetensors torch`.
"""

import json
import pathlib

import numpy as np
import torch
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "quantised"
ROWS, COLS, GROUP = 24, 64, 16
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def make_matrix(random, bits, symmetric, groups):
    """Codes [COLS, ROWS], scales and zeros [groups, ROWS]."""
    codes = random.integers(0, 2**bits, (COLS, ROWS))
    scales = (random.random((groups, ROWS)) * 0.02 + 0.001).astype(np.float16)
    zeros = np.full((groups, ROWS), 2**(bits - 1))
    if not symmetric:
        zeros = random.integers(1, 2**bits, (groups, ROWS))
    return codes, scales, zeros


def dequantise(codes, scales, zeros, group_of):
    values = scales.astype(np.float32)[group_of] * (codes - zeros[group_of]).astype(np.float32)
    return np.ascontiguousarray(values.T.astype(np.float32))


def pack(values, axis, bits, order=None):
    """Words of 32 bits of the values that follow along an axis, the first in the lowest bits."""
    per_word = 32 // bits
    values = np.moveaxis(values, axis, 0)
    values = values.reshape(-1, per_word, *values.shape[1:]).astype(np.uint64)
    words = np.zeros((values.shape[0], *values.shape[2:]), dtype=np.uint64)
    for place in range(per_word):
        source = order[place] if order else place
        words |= values[:, source] << np.uint64(bits * place)
    return np.ascontiguousarray(np.moveaxis(words.astype(np.uint32).view(np.int32), 0, axis))


def write(name, quantization, tensors, expected):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"quantization_config": quantization}, indent=1) + "\n")
    def as_torch(values):
        return values if isinstance(values, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(values))
    save_file({key: as_torch(value) for key, value in tensors.items()}, folder / "model.safetensors")
    save_file({"m.weight": as_torch(expected)}, folder / "expected.safetensors")


def write_gptq(name, bits, symmetric, act_order, version, group=GROUP):
    random = np.random.default_rng(len(name) + bits)
    groups = 1 if group < 0 else COLS // group
    codes, scales, zeros = make_matrix(random, bits, symmetric, groups)
    group_of = np.arange(COLS) // (COLS if group < 0 else group)
    if act_order:
        random.shuffle(group_of)
    stored = zeros - 1 if version == 1 else zeros
    config = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act_order,
              "sym": symmetric, "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}
    tensors = {"m.qweight": pack(codes, 0, bits), "m.scales": scales, "m.qzeros": pack(stored, 1, bits),
               "m.g_idx": group_of.astype(np.int32), "m.bias": np.zeros(ROWS, dtype=np.float16),
               "other.weight": np.ones((2, 4), dtype=np.float16)}
    write(name, config, tensors, dequantise(codes, scales, zeros, group_of))


def write_awq():
    random = np.random.default_rng(7)
    codes, scales, zeros = make_matrix(random, 4, False, COLS // GROUP)
    config = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm",
              "modules_to_not_convert": None}
    tensors = {"m.qweight": pack(codes, 1, 4, AWQ_ORDER), "m.scales": scales,
               "m.qzeros": pack(zeros, 1, 4, AWQ_ORDER)}
    write("awq", config, tensors, dequantise(codes, scales, zeros, np.arange(COLS) // GROUP))


def write_compressed(name, symmetric, bits=4):
    random = np.random.default_rng(4 + bits)
    codes, scales, zeros = make_matrix(random, bits, symmetric, COLS // GROUP)
    weights = {"num_bits": bits, "group_size": GROUP, "strategy": "group", "symmetric": symmetric,
               "type": "int", "actorder": None}
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
              "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights,
                                            "input_activations": None}}}
    tensors = {"m.weight_packed": pack(np.ascontiguousarray(codes.T), 1, bits),
               "m.weight_scale": np.ascontiguousarray(scales.T),
               "m.weight_shape": np.array([ROWS, COLS], dtype=np.int64)}
    if not symmetric:
        tensors["m.weight_zero_point"] = pack(np.ascontiguousarray(zeros.T), 0, bits)
    write(name, config, tensors, dequantise(codes, scales, zeros, np.arange(COLS) // GROUP))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)


def compressed_config(form, weights, inputs=None):
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights,
                                          "input_activations": inputs}}}


def e4m3_codes(random, shape):
    """Every code but those of NaN."""
    codes = random.integers(0, 254, shape)
    return torch.from_numpy((codes + (codes >= 127)).astype(np.uint8)).view(torch.float8_e4m3fn)


def repeated(scales, shape):
    """A scale for each element."""
    rows, cols = (-(-size // count) for size, count in zip(shape, scales.shape))
    return scales.repeat_interleave(rows, 0)[:shape[0]].repeat_interleave(cols, 1)[:, :shape[1]]


def write_fp8(name, config, ending, scale_shape, block=None):
    random = np.random.default_rng(len(name))
    codes = e4m3_codes(random, (ROWS, COLS))
    scales = torch.tensor(random.random(scale_shape) * 0.02 + 1e-3, dtype=torch.float32)
    if "channel" in name:
        scales = scales.bfloat16()
    each = scales.float().reshape(scale_shape if len(scale_shape) == 2 else (1, 1))
    if block:
        each = each.repeat_interleave(block[0], 0)[:ROWS].repeat_interleave(block[1], 1)[:, :COLS]
    else:
        each = repeated(each, (ROWS, COLS))
    tensors = {"m.weight": codes, "m." + ending: scales, "m.input_scale": torch.tensor(0.5)}
    write(name, config, tensors, codes.float() * each)


def e2m1_matrix(random):
    """Bytes of two codes each, the first in the lower bits, and what the codes stand for."""
    codes = random.integers(0, 16, (ROWS, COLS)).astype(np.uint8)
    return codes[:, 0::2] | codes[:, 1::2] << 4, torch.from_numpy(E2M1[codes])


def write_nvfp4(name, divides):
    random = np.random.default_rng(len(name))
    packed, values = e2m1_matrix(random)
    scales = e4m3_codes(random, (ROWS, COLS // 16)).float().abs().to(torch.float8_e4m3fn)
    factor = torch.tensor([1877.0 if divides else 1.3e-3])
    each = scales.float() / factor if divides else scales.float() * factor
    expected = values * repeated(each, (ROWS, COLS))
    if divides:
        weights = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
        write(name, compressed_config("nvfp4-pack-quantized", weights, {"num_bits": 4}),
              {"m.weight_packed": packed, "m.weight_scale": scales, "m.weight_global_scale": factor,
               "m.input_global_scale": torch.tensor([3.0])}, expected)
    else:
        write(name, {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
              {"m.weight": packed, "m.weight_scale": scales, "m.weight_scale_2": factor[0],
               "m.input_scale": torch.tensor(3.0)}, expected)


def write_mxfp4():
    random = np.random.default_rng(9)
    packed, values = e2m1_matrix(random)
    exponents = torch.from_numpy(random.integers(112, 131, (ROWS, COLS // 32)).astype(np.uint8))
    each = exponents.view(torch.float8_e8m0fnu).float()
    weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32,
               "scale_dtype": "torch.uint8"}
    write("mxfp4", compressed_config("mxfp4-pack-quantized", weights),
          {"m.weight_packed": packed, "m.weight_scale": exponents},
          values * repeated(each, (ROWS, COLS)))


def write_int8():
    random = np.random.default_rng(10)
    codes = torch.from_numpy(random.integers(-128, 128, (ROWS, COLS)).astype(np.int8))
    scales = torch.from_numpy((random.random((ROWS, 1)) * 0.02 + 1e-3).astype(np.float32)).bfloat16()
    weights = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
    write("int8", compressed_config("int-quantized", weights, {"num_bits": 8, "dynamic": True}),
          {"m.weight": codes, "m.weight_scale": scales}, codes.float() * scales.float())


def write_mixed():
    """Two groups: the matrix is of the one that config.json does not name first."""
    random = np.random.default_rng(11)
    codes, scales, _ = make_matrix(random, 8, True, COLS // 32)
    config = {"quant_method": "compressed-tensors", "format": "mixed-precision", "ignore": [],
              "config_groups": {
                  "group_0": {"format": "pack-quantized", "targets": ["re:.*mlp.*"],
                              "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}},
                  "group_1": {"format": "pack-quantized", "targets": ["m"],
                              "weights": {"num_bits": 8, "type": "int", "strategy": "group", "group_size": 32}}}}
    tensors = {"m.weight_packed": pack(np.ascontiguousarray(codes.T), 1, 8),
               "m.weight_scale": np.ascontiguousarray(scales.T),
               "m.weight_shape": np.array([ROWS, COLS], dtype=np.int64)}
    write("mixed", config, tensors,
          dequantise(codes, scales, np.full((COLS // 32, ROWS), 128), np.arange(COLS) // 32))


def write_bnb(name, nested):
    """NF4 in blocks of 64 that follow one another, the first code in the higher bits."""
    random = np.random.default_rng(12)
    codes = random.integers(0, 16, ROWS * COLS).astype(np.uint8)
    table = np.sort(random.uniform(-1, 1, 16)).astype(np.float32)
    absmax = (random.random(ROWS * COLS // 64) * 0.1 + 0.01).astype(np.float32)
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [ROWS, COLS]}
    tensors = {}
    if nested:
        inner = random.integers(0, 256, absmax.size).astype(np.uint8)
        inner_table = np.linspace(-1, 1, 256).astype(np.float32)
        outer = (random.random(-(-absmax.size // 8)) * 0.05).astype(np.float32)
        state |= {"nested_blocksize": 8, "nested_dtype": "float32", "nested_offset": 0.0625}
        absmax = inner_table[inner] * np.repeat(outer, 8)[:inner.size] + np.float32(0.0625)
        tensors = {"m.weight.nested_absmax": outer, "m.weight.nested_quant_map": inner_table}
    tensors |= {"m.weight": (codes[0::2] << 4 | codes[1::2]).reshape(-1, 1),
                "m.weight.absmax": inner if nested else absmax, "m.weight.quant_map": table,
                "m.weight.quant_state.bitsandbytes__nf4":
                    np.frombuffer(json.dumps(state).encode(), dtype=np.uint8).copy()}
    expected = (table[codes] * np.repeat(absmax, 64)).reshape(ROWS, COLS)
    write(name, {"quant_method": "bitsandbytes", "load_in_4bit": True}, tensors, expected)


def write_bnb_int8():
    random = np.random.default_rng(13)
    codes = random.integers(-127, 128, (ROWS, COLS)).astype(np.int8)
    scales = (random.random(ROWS) * 0.3 + 0.01).astype(np.float32)
    expected = codes.astype(np.float32) * scales[:, None] * np.float32(7.874015718698502e-3)
    write("bnb-int8", {"quant_method": "bitsandbytes", "load_in_8bit": True},
          {"m.weight": codes, "m.SCB": scales, "m.weight_format": np.zeros((), dtype=np.uint8)}, expected)


def write_scaled():
    write_bnb("bnb-nf4", False)
    write_bnb("bnb-nf4-nested", True)
    write_bnb_int8()
    fp8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}
    write_fp8("fp8-blocks", {**fp8, "weight_block_size": [16, 48]}, "weight_scale_inv", (2, 2), (16, 48))
    weights = {"num_bits": 8, "type": "float", "strategy": "channel"}
    write_fp8("fp8-channel", compressed_config("float-quantized", weights, {"num_bits": 8}),
              "weight_scale", (ROWS, 1))
    write_fp8("fp8-tensor", {"quant_method": "modelopt", "quant_algo": "FP8"}, "weight_scale", ())
    write_nvfp4("nvfp4-modelopt", False)
    write_nvfp4("nvfp4-compressed", True)
    write_mxfp4()
    write_int8()
    write_mixed()


def main():
    write_scaled()
    write_gptq("gptq-4", 4, False, False, 1)
    write_gptq("gptq-8", 8, False, False, 1)
    write_gptq("gptq-4-act-order", 4, True, True, 1)
    write_gptq("gptq-4-v2", 4, False, False, 2)
    write_gptq("gptq-4-rows", 4, True, False, 1, -1)
    write_awq()
    write_compressed("compressed", True)
    write_compressed("compressed-zeros", False)
    write_compressed("compressed-2", True, 2)


if __name__ == "__main__":
    main()
