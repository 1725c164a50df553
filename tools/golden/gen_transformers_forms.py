#!/usr/bin/env python3
"""Writes tests/golden/quantised/gemma, metal and fp-quant: matrices in the layouts that transformers has for quant_method
gemma, metal and fp_quant, and as expected.safetensors what its own dequantising makes of them in floats; of fp_quant, whose
kernels run on Blackwell, what plain floats make. Needs `pip install "transformers>=5.10" torch safetensors`.
"""

import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers.integrations import gemma_quant, metal_quantization

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "quantised"
ROWS, COLS = 6, 64


def write(name, quantization, tensors, expected):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    # Not sorted: patterns are tried in their order.
    (folder / "config.json").write_text(json.dumps({"quantization_config": quantization}, indent=1) + "\n")
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors")
    save_file({key: value.float().contiguous() for key, value in expected.items()}, folder / "expected.safetensors")


def random_codes(module_weight):
    low, high = (-128, 128) if module_weight.dtype == torch.int8 else (0, 256)
    return torch.randint(low, high, module_weight.shape).to(module_weight.dtype)


def gemma_linear(name, bits, tensors, expected):
    linear = gemma_quant.QuantizedLinear(COLS, ROWS, num_bits=bits)
    linear.weight.data = random_codes(linear.weight)
    linear.weight_scale.data = torch.rand(ROWS, 1) * 0.02 + 1e-3
    tensors[name + ".weight"] = linear.weight.data
    tensors[name + ".weight_scale"] = linear.weight_scale.data
    tensors[name + ".input_activation_scale"] = torch.tensor(0.05)
    tensors[name + ".output_activation_scale"] = torch.tensor(0.0)
    expected[name + ".weight"] = linear._dequantize_weights()


def gemma_table(name, bits, blocks, tensors, expected):
    table = gemma_quant.QuantizedEmbedding(ROWS, COLS, torch.float32, num_bits=bits)
    table.embedding_quantized.data = random_codes(table.embedding_quantized)
    table.embedding_scale.data = torch.rand(ROWS, blocks) * 0.02 + 1e-3
    tensors[name + ".embedding_quantized"] = table.embedding_quantized.data
    tensors[name + ".embedding_scale"] = table.embedding_scale.data
    expected[name + ".weight"] = table.weight


def write_gemma():
    torch.manual_seed(21)
    tensors, expected = {"norm.weight": torch.ones(COLS), "layers.1.k_cache_scale": torch.ones(1)}, {}
    gemma_linear("layers.1.mlp.up_proj", 4, tensors, expected)
    gemma_linear("layers.15.mlp.up_proj", 2, tensors, expected)
    gemma_linear("layers.1.gate", 8, tensors, expected)
    gemma_table("table", 2, 1, tensors, expected)
    gemma_table("table_of_blocks", 4, 2, tensors, expected)
    gemma_table("table_of_bytes", 8, 2, tensors, expected)
    patterns = {r"^table$": {"num_bits": 2}, r"^table_of_blocks$": {}, r"^table_of_bytes$": {"num_bits": 8},
                r"layers\.(\d|1[0-4])\.mlp\.": {"num_bits": 4}, r"layers\.\d+\.mlp\.": {"num_bits": 2},
                r"\.gate$": {"num_bits": 8}}
    write("gemma", {"quant_method": "gemma", "num_bits": 4, "quantize_embeddings": True,
                    "module_quant_configs": patterns, "modules_to_not_convert": ["norm"]}, tensors, expected)


def write_metal():
    torch.manual_seed(22)
    tensors, expected = {}, {}
    for bits in (2, 4, 8):
        weight = torch.randn(ROWS, COLS) * 0.05
        codes, scales, biases = metal_quantization._affine_quantize_tensor(weight, 32, bits)
        tensors |= {f"m{bits}.weight": codes, f"m{bits}.scales": scales, f"m{bits}.qbiases": biases}
        expected[f"m{bits}.weight"] = metal_quantization._affine_dequantize_tensor(codes, scales, biases, 32, bits)
    write("metal", {"quant_method": "metal", "bits": 4, "group_size": 32, "modules_to_not_convert": None},
          tensors, expected)


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def hadamard(size):
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return (matrix * size**-0.5).bfloat16()


def write_fp_quant():
    torch.manual_seed(23)
    tensors, expected = {"norm.weight": torch.ones(COLS)}, {}
    for name, group, turn in (("mx", 32, hadamard(32)), ("nv", 16, hadamard(16)),
                              ("odd", 32, torch.randn(32, 32).bfloat16()), ("plain", 0, hadamard(64))):
        none = torch.zeros(0, dtype=torch.bfloat16)
        if group:
            codes = torch.randint(0, 16, (ROWS, COLS))
            if group == 16:
                scales = (torch.rand(ROWS, COLS // 16) * 100 + 1).to(torch.float8_e4m3fn)
                bytes_of_scales, factor = scales.view(torch.uint8), torch.tensor([500.0])
            else:
                bytes_of_scales, factor = torch.randint(116, 122, (ROWS, COLS // 32)).to(torch.uint8), torch.tensor([1.0])
                scales = bytes_of_scales.view(torch.float8_e8m0fnu)
            matrix = E2M1[codes] * (scales.float() / factor).repeat_interleave(group, 1)
            tensors |= {name + ".qweight": (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8),
                        name + ".scales": bytes_of_scales, name + ".weight_global_scale": factor,
                        name + ".weight": none, name + ".dqweight": none.clone()}
        else:
            matrix = (torch.randn(ROWS, COLS) * 0.05).bfloat16().float()
            tensors |= {name + ".dqweight": matrix.bfloat16(), name + ".weight": none}
        tensors |= {name + ".forward_hadamard_matrix": turn, name + ".act_global_scale": torch.tensor([7.0])}
        size = turn.shape[0]
        grouped = matrix.double().reshape(ROWS, -1, size) @ turn.double().T
        expected[name + ".weight"] = grouped.reshape(ROWS, COLS)
    write("fp-quant", {"quant_method": "fp_quant", "forward_dtype": "mxfp4", "hadamard_group_size": 32}, tensors,
          expected)


if __name__ == "__main__":
    write_gemma()
    write_metal()
    write_fp_quant()
