#!/usr/bin/env python3
"""Writes folders of tests/golden/quantised whose matrices their packages keep packed beyond codes and
scales: sparse ones of compressed-tensors 0.9.4 (bit masks, marlin-24), and AMD Quark's floats of six
bits and integers of four; expected.safetensors is what they stand for. Needs `pip install numpy
safetensors torch compressed-tensors==0.9.4 amd-quark==0.13`; of the packages the packing alone is run.
"""

import importlib.util
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "quantised"
ROWS, COLS = 64, 256


def write(name, quantization, tensors, expected):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"quantization_config": quantization}, indent=1) + "\n")
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors")
    save_file({"m.weight": expected.float().contiguous()}, folder / "expected.safetensors")


def sparse_matrix(seed, cols=COLS):
    torch.manual_seed(seed)
    dense = torch.randn(ROWS, cols)
    quads = dense.view(-1, 4)
    keep = torch.zeros_like(quads, dtype=torch.bool).scatter_(1, quads.abs().topk(2, dim=1).indices, True)
    return torch.where(keep, quads, torch.zeros(())).view(ROWS, cols)


def groups(weights, activations=None, format=None):
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations, "output_activations": None}
    return {"quant_method": "compressed-tensors", "format": format, "quantization_status": "compressed",
            "kv_cache_scheme": None, "ignore": ["lm_head"], "config_groups": {"group_0": group} if weights else {}}


def sparsity(format, structure):
    return {"format": format, "global_sparsity": 0.5, "sparsity_structure": structure, "targets": ["Linear"],
            "ignore": ["lm_head"], "registry_requires_subclass": False}


def write_masked():
    from compressed_tensors.compressors.sparse_compressors.sparse_24_bitmask import Sparse24BitMaskTensor
    from compressed_tensors.compressors.sparse_compressors.sparse_bitmask import BitmaskTensor
    dense = sparse_matrix(1).bfloat16()
    whole = groups(None, format="dense") | {"sparsity_config": sparsity("sparse-24-bitmask", "2:4")}
    write("sparse-24", whole, Sparse24BitMaskTensor.from_dense(dense).dict("m.weight"), dense)

    codes = (sparse_matrix(2) * 40).to(torch.float8_e4m3fn)
    scale = (torch.rand(ROWS, 1) * 0.01 + 0.001).bfloat16()
    fp8 = groups({"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False},
                 {"num_bits": 8, "type": "float", "strategy": "token", "symmetric": True, "dynamic": True},
                 "float-quantized") | {"sparsity_config": sparsity("sparse-24-bitmask", "2:4")}
    tensors = Sparse24BitMaskTensor.from_dense(codes).dict("m.weight") | {"m.weight_scale": scale}
    mask = Sparse24BitMaskTensor.from_dense(codes)
    kept = torch.zeros(ROWS, COLS, dtype=torch.bool)
    for i in range(COLS):
        kept[:, i] = (mask.bitmask[:, i // 8] >> (i % 8) & 1).bool()
    expected = torch.where(kept, codes.float(), torch.zeros(())) * scale.float()
    write("sparse-24-fp8", fp8, tensors, expected)

    loose = torch.where(torch.rand(24, 40) < 0.3, torch.randn(24, 40), torch.zeros(())).half()
    loose[5] = 0
    mask = groups(None, format="dense") | {"sparsity_config": sparsity("sparse-bitmask", "unstructured")}
    write("sparse-bitmask", mask, BitmaskTensor.from_dense(loose).dict("m"), loose)


def write_marlin():
    from compressed_tensors.compressors.sparse_quantized_compressors.marlin_24 import Marlin24Compressor
    from compressed_tensors.quantization import QuantizationArgs
    # Of two groups the package orders scales as of none.
    for bits, group, cols in ((4, 128, 512), (4, 128, 256), (8, -1, 256)):
        most = 2 ** (bits - 1) - 1
        codes = torch.clamp(torch.round(sparse_matrix(bits, cols) * most / 2), -most, most)
        count = cols // group if group > 0 else 1
        scales = (torch.rand(ROWS, count) * 0.02 + 0.01).half()
        dense = codes.half() * scales.repeat_interleave(cols // count, dim=1)
        args = {"num_bits": bits, "type": "int", "symmetric": True, "strategy": "group" if group > 0 else "channel",
                "group_size": group if group > 0 else None, "dynamic": False}
        state = {"m.weight": dense, "m.weight_scale": scales}
        tensors = Marlin24Compressor().compress(state, {"m": QuantizationArgs(**args)})
        expected = codes * scales.float().repeat_interleave(cols // count, dim=1)
        name = f"marlin-24-{bits}" + ("-short" if group == cols // 2 else "")
        write(name, groups(args, format="marlin-24") | {"sparsity_config": sparsity("dense", "2:4")}, tensors, expected)


def quark_module(name):
    """quark/torch/utils/pack.py needs an installation with kernels for one table alone."""
    for path in map(pathlib.Path, sys.path):
        if not (path / "quark" / "torch" / "utils" / "pack.py").exists():
            continue
        source = (path / "quark" / "torch" / "utils" / "pack.py").read_text()
        source = "\n".join(line for line in source.splitlines() if not line.startswith("from quark"))
        source = source.replace("from typing import TYPE_CHECKING, TypeVar", "from __future__ import annotations\nfrom typing import TYPE_CHECKING, TypeVar")
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, None))
        lines = source.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("from __future__"))
        lines.insert(0, lines.pop(first))
        exec("\n".join(lines), module.__dict__)
        return module
    raise SystemExit("quark is not installed")


def quark_config(weight):
    return {"quant_method": "quark", "global_quant_config": {"weight": weight, "input_tensors": None, "output_tensors": None,
                                                             "bias": None, "target_device": None},
            "exclude": ["lm_head"], "layer_quant_config": {}, "layer_type_quant_config": {}, "quant_mode": "eager_mode",
            "algo_config": None, "kv_cache_quant_config": {},
            "export": {"kv_cache_group": [], "min_kv_scale": 0.0, "pack_method": "reorder", "weight_format": "real_quantized"}}


def write_quark():
    pack = quark_module("quark_pack")
    torch.manual_seed(6)
    for name, exponent, mantissa in (("fp6_e3m2", 3, 2), ("fp6_e2m3", 2, 3)):
        bias = 2 ** (exponent - 1) - 1
        codes = torch.randint(0, 64, (ROWS, COLS))
        codes[0, :64] = torch.arange(64)
        field, part = codes >> mantissa & 2 ** exponent - 1, codes & 2 ** mantissa - 1
        value = torch.where(field == 0, part / 2 ** mantissa * 2.0 ** (1 - bias),
                            (1 + part / 2 ** mantissa) * 2.0 ** (field - bias)) * torch.where(codes >= 32, -1.0, 1.0)
        powers = torch.randint(110, 130, (ROWS, COLS // 32), dtype=torch.uint8)
        packed = pack.Pack_fp6("per_group", name, exponent, mantissa).pack(value.float(), True)
        scales = 2.0 ** (powers.float() - 127)
        weight = {"dtype": name, "qscheme": "per_group", "group_size": 32, "ch_axis": -1, "is_dynamic": False,
                  "scale_format": "e8m0", "scale_type": "float", "symmetric": None, "observer_cls": "PerBlockMXObserver"}
        write("quark-" + name.replace("_", "-"), quark_config(weight), {"m.weight": packed, "m.weight_scale": powers},
              value * scales.repeat_interleave(32, dim=1))
    for name in ("int4", "uint4"):
        low = -8 if name == "int4" else 0
        codes = torch.randint(low, low + 16, (ROWS, COLS), dtype=torch.int32)
        scales = (torch.rand(ROWS, COLS // 128) * 0.02 + 0.001).half()
        zeros = torch.zeros(ROWS, COLS // 128, dtype=torch.int32) if name == "int4" else torch.randint(0, 16, (ROWS, COLS // 128), dtype=torch.int32)
        method = pack.Pack_4_bits("per_group", name)
        tensors = {"m.weight": method.pack(codes, True), "m.weight_scale": scales.t(), "m.weight_zero_point": method.pack(zeros, True)}
        if name == "int4":
            del tensors["m.weight_zero_point"]
        weight = {"dtype": name, "qscheme": "per_group", "group_size": 128, "ch_axis": -1, "is_dynamic": False,
                  "scale_type": "float", "symmetric": name == "int4", "observer_cls": "PerGroupMinMaxObserver"}
        wide = lambda values: values.repeat_interleave(128, dim=1)
        write("quark-" + name, quark_config(weight), tensors, (codes - wide(zeros)).float() * wide(scales.float()))


if __name__ == "__main__":
    write_masked()
    write_marlin()
    write_quark()
