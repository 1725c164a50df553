#!/usr/bin/env python3
"""Writes tests/golden/quantised/mlx: matrices that MLX quantised in each of its modes, and as
expected.safetensors what its own dequantising makes of them in floats. Needs
`pip install "mlx[cpu]" numpy safetensors`.
"""

import json
import pathlib

import mlx.core as mx
import numpy as np
from safetensors.numpy import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "quantised" / "mlx"
ROWS, COLS = 6, 128
# name, mode, bits, columns of a group, type of scales, matrices of a stack
CASES = [
    ("a2", "affine", 2, 64, mx.bfloat16, 0),
    ("a3", "affine", 3, 64, mx.float16, 0),
    ("a4", "affine", 4, 64, mx.bfloat16, 0),
    ("a4_32", "affine", 4, 32, mx.float16, 0),
    ("a4_floats", "affine", 4, 128, mx.float32, 0),
    ("a5", "affine", 5, 64, mx.float16, 0),
    ("a6", "affine", 6, 64, mx.bfloat16, 0),
    ("a8", "affine", 8, 64, mx.bfloat16, 0),
    ("a8_stack", "affine", 8, 32, mx.float16, 2),
    ("mxfp4", "mxfp4", 4, 32, mx.bfloat16, 0),
    ("mxfp8", "mxfp8", 8, 32, mx.bfloat16, 0),
    ("nvfp4", "nvfp4", 4, 16, mx.bfloat16, 2),
]


def main():
    mx.random.seed(7)
    tensors, expected = {}, {}
    quantization = {"group_size": 64, "bits": 4, "mode": "affine"}
    for name, mode, bits, group, dtype, stack in CASES:
        shape = (stack, ROWS, COLS) if stack else (ROWS, COLS)
        weight = (mx.random.normal(shape) * 0.05).astype(dtype)
        codes, scales, *biases = mx.quantize(weight, group_size=group, bits=bits, mode=mode)
        tensors[f"{name}.weight"] = codes
        tensors[f"{name}.scales"] = scales
        floats = [biases[0].astype(mx.float32)] if biases else []
        if biases:
            tensors[f"{name}.biases"] = biases[0]
        of_floats = scales.astype(mx.float32) if biases else scales
        wide = {} if biases else {"dtype": mx.float32}
        expected[f"{name}.weight"] = np.array(
            mx.dequantize(codes, of_floats, *floats, group_size=group, bits=bits, mode=mode, **wide))
        if (group, bits) != (64, 4):
            quantization[name] = {"group_size": group, "bits": bits, "mode": mode}
    OUT.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(OUT / "model.safetensors"), tensors, metadata={"format": "mlx"})
    save_file(expected, OUT / "expected.safetensors")
    config = {"quantization": quantization, "quantization_config": quantization}
    (OUT / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    main()
