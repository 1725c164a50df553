#!/usr/bin/env python3
"""Writes the files of torch.save in tests/golden/torch. Needs torch.

    python3 tools/golden/gen_torch_files.py tests/golden/torch
"""

import collections
import os
import pathlib
import sys

import torch


def tensors():
    """One of each type; a view that begins inside of its storage, one that is turned, one shared."""
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    found = collections.OrderedDict()
    found["model.embed_tokens.weight"] = base
    found["lm_head.weight"] = base
    found["rows"] = base[1:3]
    found["turned"] = base.t()
    found["column"] = base[:, 2]
    found["bf16"] = torch.arange(6).reshape(2, 3).to(torch.bfloat16)
    found["f16"] = torch.arange(5).to(torch.float16)
    found["i64"] = torch.tensor([-1, 1 << 40])
    found["bool"] = torch.tensor([True, False, True])
    found["scalar"] = torch.tensor(2.5)
    found["empty"] = torch.zeros(0, 3)
    return found


class Runs:
    """What a hostile file looks like: unpickling it would run a command."""

    def __reduce__(self):
        return os.system, ("true",)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(tensors(), folder / "plain.bin")
    torch.save(tensors(), folder / "old.bin", _use_new_zipfile_serialization=False)
    torch.save({"state_dict": dict(tensors()), "epoch": 3}, folder / "nested.bin")
    module = torch.nn.Linear(3, 2)
    with torch.no_grad():
        module.weight.copy_(torch.arange(6).reshape(2, 3))
        module.bias.copy_(torch.tensor([7.0, 8.0]))
    torch.save(module.state_dict(), folder / "module.bin")
    torch.save(dict(module.named_parameters()), folder / "parameters.bin", pickle_protocol=4)
    base = "base_model.model.model.layers.0.self_attn.q_proj."
    torch.save({base + "lora_A.weight": torch.arange(6.0).reshape(2, 3),
                base + "lora_B.weight": torch.arange(10.0).reshape(5, 2)}, folder / "adapter.bin")
    torch.save({"weight": torch.zeros(2), "hook": Runs()}, folder / "hostile.bin")


if __name__ == "__main__":
    main()
