#!/usr/bin/env python3
"""Writes tests/golden/quantised/gptq-2, gptq-3 and gptq-5: matrices that AutoRound packed in GPTQ's layout, and as
expected.safetensors what scale * (code - zero) is in floats. Needs `pip install auto-round torch safetensors`.
"""

import json
import pathlib

import torch
from auto_round_extension.torch.qlinear_torch_zp import QuantLinear
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "quantised"
ROWS, COLS, GROUP = 32, 64, 32


def write(bits):
    torch.manual_seed(bits)
    codes = torch.randint(0, 2**bits, (ROWS, COLS))
    zeros = torch.randint(1, 2**bits, (ROWS, COLS // GROUP))
    scales = (torch.rand(ROWS, COLS // GROUP) * 0.02 + 0.001).half().float()
    wide = scales.repeat_interleave(GROUP, 1) * (codes - zeros.repeat_interleave(GROUP, 1))
    linear = torch.nn.Linear(COLS, ROWS, bias=False)
    linear.weight.data = wide
    packed = QuantLinear(bits, GROUP, COLS, ROWS, bias=False)
    packed.device = "cpu"
    packed.pack(linear, scales, zeros.float(), device="cpu")
    folder = OUT / f"gptq-{bits}"
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {f"m.{name}": getattr(packed, name).contiguous() for name in ("qweight", "qzeros", "scales")}
    save_file(tensors, folder / "model.safetensors")
    save_file({"m.weight": wide}, folder / "expected.safetensors")
    config = {"quant_method": "auto-round", "packing_format": "auto_round:auto_gptq", "bits": bits,
              "group_size": GROUP, "sym": False}
    (folder / "config.json").write_text(json.dumps({"quantization_config": config}, indent=1) + "\n")


if __name__ == "__main__":
    for count in (2, 3, 5):
        write(count)
