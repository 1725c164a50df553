#!/usr/bin/env python3
"""Writes tests/golden/quantised: small checkpoints in the layouts of AutoGPTQ (versions 1 and 2, 4
and 8 bits, with act order), AutoAWQ (gemm) and compressed-tensors (pack-quantized), and as
expected.safetensors what plain numpy makes of their codes. Needs `pip install numpy safetensors`.
"""

import json
import pathlib

import numpy as np
from safetensors.numpy import save_file

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
    save_file(tensors, folder / "model.safetensors")
    save_file({"m.weight": expected}, folder / "expected.safetensors")


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


def write_compressed(name, symmetric):
    random = np.random.default_rng(8)
    codes, scales, zeros = make_matrix(random, 4, symmetric, COLS // GROUP)
    weights = {"num_bits": 4, "group_size": GROUP, "strategy": "group", "symmetric": symmetric,
               "type": "int", "actorder": None}
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
              "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights,
                                            "input_activations": None}}}
    tensors = {"m.weight_packed": pack(np.ascontiguousarray(codes.T), 1, 4),
               "m.weight_scale": np.ascontiguousarray(scales.T),
               "m.weight_shape": np.array([ROWS, COLS], dtype=np.int64)}
    if not symmetric:
        tensors["m.weight_zero_point"] = pack(np.ascontiguousarray(zeros.T), 0, 4)
    write(name, config, tensors, dequantise(codes, scales, zeros, np.arange(COLS) // GROUP))


def main():
    write_gptq("gptq-4", 4, False, False, 1)
    write_gptq("gptq-8", 8, False, False, 1)
    write_gptq("gptq-4-act-order", 4, True, True, 1)
    write_gptq("gptq-4-v2", 4, False, False, 2)
    write_gptq("gptq-4-rows", 4, True, False, 1, -1)
    write_awq()
    write_compressed("compressed", True)
    write_compressed("compressed-zeros", False)


if __name__ == "__main__":
    main()
