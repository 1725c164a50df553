#!/usr/bin/env python3
"""Writes tests/golden/quantised/hqq-*, torchao-*, modelopt-* and fp8-e5m2: matrices that the packages hqq, torchao and
nvidia-modelopt packed, and as expected.safetensors what they, and for AWQ's scales of columns and torchao's four bits
plain floats, make of them. Needs `pip install hqq torchao nvidia-modelopt torch safetensors`.
"""

import json
import pathlib

import torch
from hqq.core.quantize import BaseQuantizeConfig, HQQLinear
from modelopt.torch.export.quant_utils import pack_int4_in_uint8
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors.torch import save_file
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import (Float8WeightOnlyConfig, Int4Tensor, Int8WeightOnlyConfig, IntxWeightOnlyConfig,
                                  PerGroup, quantize_)

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "quantised"
ROWS, COLS = 24, 64


def write(name, quantization, tensors, expected, metadata=None):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"quantization_config": quantization}, indent=1) + "\n")
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors",
              metadata=metadata)
    save_file({"m.weight": expected.float().contiguous()}, folder / "expected.safetensors")


def linear():
    torch.manual_seed(11)
    return torch.nn.Linear(COLS, ROWS, bias=False)


def write_hqq(name, bits, group, axis, dtype):
    settings = BaseQuantizeConfig(nbits=bits, group_size=group, axis=axis)
    made = HQQLinear(linear(), settings, compute_dtype=dtype, device="cpu", del_orig=False)
    config = {"quant_method": "hqq", "skip_modules": ["lm_head"], "quant_config": {
        "weight_quant_params": {"nbits": bits, "group_size": group, "axis": axis}}}
    write(name, config, {"m." + key: value for key, value in made.state_dict().items()}, made.dequantize())


def write_torchao(name, settings, dtype=torch.bfloat16):
    model = torch.nn.ModuleDict({"m": linear().to(dtype)})
    quantize_(model, settings)
    tensors, metadata = flatten_tensor_state_dict({"m.weight": model["m"].weight.data})
    config = {"quant_method": "torchao", "quant_type": {"default": {"_type": type(settings).__name__}}}
    write(name, config, tensors, model["m"].weight.dequantize().float(), metadata)
    write(name + "-bin", config, {}, model["m"].weight.dequantize().float())
    (OUT / (name + "-bin") / "model.safetensors").unlink()
    torch.save(model.state_dict(), OUT / (name + "-bin") / "pytorch_model.bin")


def write_torchao_int4():
    torch.manual_seed(12)
    codes = torch.randint(-8, 8, (ROWS, COLS), dtype=torch.int8)
    scales, zeros = (torch.rand(COLS // 32, ROWS).bfloat16() * 0.01 + 0.001 for _ in range(2))
    columns = (torch.rand(COLS) + 0.5).bfloat16()
    packed = (codes[:, 1::2] << 4) | (codes[:, ::2] & 15)
    made = Int4Tensor(packed, scales, zeros, [1, 32], torch.Size((ROWS, COLS)), columns)
    tensors, metadata = flatten_tensor_state_dict({"m.weight": made})
    wide = [each.float().t().repeat_interleave(32, 1) for each in (scales, zeros)]
    config = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}}
    write("torchao-int4", config, tensors, (codes.float() * wide[0] + wide[1]) * columns.float(), metadata)


def write_modelopt_int4():
    torch.manual_seed(13)
    codes = torch.randint(-8, 8, (ROWS, COLS)).float()
    scales = (torch.rand(ROWS, COLS // 16) * 0.01 + 0.001).half()
    columns = (torch.rand(COLS) + 0.5).bfloat16()
    wide = codes * scales.float().repeat_interleave(16, 1)
    tensors = {"m.weight": pack_int4_in_uint8(wide, scales.float(), 16), "m.weight_scale": scales,
               "m.weight_scale_2": torch.tensor(0.25), "m.input_scale": torch.tensor(0.5),
               "m.pre_quant_scale": columns}
    config = {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ", "group_size": 16, "has_zero_point": False,
              "pre_quant_scale": True}
    write("modelopt-int4-awq", config, tensors, wide * columns.float())


def write_modelopt_nvfp4():
    columns = (torch.rand(COLS, generator=torch.Generator().manual_seed(14)) + 0.5).bfloat16()
    made, scales, factor = NVFP4QTensor.quantize(linear().weight.data.float(), 16)
    codes = made._quantized_data
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    values = torch.stack([table[(codes & 15).long()], table[(codes >> 4).long()]], -1).reshape(ROWS, COLS)
    wide = values * (scales.float() * factor.float()).repeat_interleave(16, 1)
    close = torch.allclose(wide, made.dequantize(torch.float32, scale=scales, double_scale=factor, block_sizes={-1: 16}))
    assert close, "the formula is not modelopt's"
    tensors = {"m.weight": codes, "m.weight_scale": scales, "m.weight_scale_2": factor, "m.pre_quant_scale": columns}
    config = {"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ", "group_size": 16}
    write("modelopt-nvfp4-awq", config, tensors, wide * columns.float())


def write_e5m2():
    torch.manual_seed(15)
    codes = torch.randint(0, 256, (ROWS, COLS)).to(torch.uint8)
    codes[(codes & 0x7c) == 0x7c] ^= 0x40  # neither infinities nor NaN
    floats = codes.view(torch.float8_e5m2)
    scales = torch.rand(ROWS, 1) * 0.02 + 1e-3
    write("fp8-e5m2", {"quant_method": "fp8", "fmt": "e5m2"}, {"m.weight": floats, "m.weight_scale": scales},
          floats.float() * scales)


if __name__ == "__main__":
    write_hqq("hqq-4", 4, 16, 1, torch.bfloat16)
    write_hqq("hqq-3-columns", 3, 16, 0, torch.float16)
    write_hqq("hqq-2", 2, 16, 1, torch.float16)
    write_hqq("hqq-8", 8, 32, 1, torch.float32)
    write_torchao("torchao-int8", Int8WeightOnlyConfig(version=2), torch.float32)
    write_torchao("torchao-float8", Float8WeightOnlyConfig(version=2), torch.float32)
    write_torchao("torchao-intx", IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32), version=2),
                  torch.float32)
    write_torchao_int4()
    write_modelopt_int4()
    write_modelopt_nvfp4()
    write_e5m2()
