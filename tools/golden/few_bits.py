"""Matrices that MXFP4, or E4M3 with scales of blocks, holds, and how files have them."""

import math

import torch

FP8_BLOCK, FP8_SCALES = 128, [1.0, 1.375, 0.8125, 1.625, 1.125]
# Of codes 0 to 15 (OCP's E2M1).
FP4_VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def mxfp4_blocks(weight):
    """Of a matrix [columns, rows] that MXFP4 holds: blocks [rows, columns / 32, 16] and scales. The power of
    two of a group of zeros is 0, as converters write it."""
    groups = weight.T.reshape(weight.shape[1], -1, 32)
    top = groups.abs().amax(-1)
    scales = torch.where(top > 0, torch.floor(torch.log2(top.clamp(min=1e-30))) - 2 + 127, 0)
    values = torch.tensor(FP4_VALUES)
    scaled = torch.ldexp(groups, (127 - scales)[..., None].int())
    codes = (scaled[..., None] - values).abs().argmin(-1).to(torch.uint8)
    assert (torch.ldexp(values[codes.int()], (scales - 127)[..., None].int()) == groups).all()
    return codes[..., 0::2] | codes[..., 1::2] << 4, scales.to(torch.uint8)


def mxfp4_weight(weight):
    """Random numbers that MXFP4 holds, every code among them, as deviating as other weights; a group of zeros."""
    columns, rows = weight.shape
    values = torch.tensor(FP4_VALUES)
    codes = torch.randint(0, 16, (rows, columns // 32, 32))
    powers = torch.randint(-1, 2, (rows, columns // 32, 1)) - 2 - int(math.log2(columns) / 2)
    groups = torch.ldexp(values[codes], powers)
    groups[0, 0] = 0
    return groups.reshape(rows, columns).T.contiguous()


def quant_method(config):
    return config.get("quantization_config", {}).get("quant_method")


def holds_fp8(name):
    """Matrices of layers but routers; a module's projection of two states stays as it is, as published."""
    short = name.removesuffix(".weight").rsplit(".", 1)[-1]
    return ".layers." in name and (short.endswith("_proj") or short == "kv_a_proj_with_mqa") and short != "eh_proj"


def fp8_scales(rows, columns):
    """Of blocks of 128 x 128, with so few bits that a code times one is exact in bf16."""
    row, column = torch.arange(-(-rows // FP8_BLOCK))[:, None], torch.arange(-(-columns // FP8_BLOCK))[None]
    return torch.tensor(FP8_SCALES)[(3 * row + column) % len(FP8_SCALES)] * 2.0 ** -8


def fp8_spread(scales, rows, columns):
    return scales.repeat_interleave(FP8_BLOCK, 0).repeat_interleave(FP8_BLOCK, 1)[:rows, :columns]


def fp8_parts(weight):
    """Codes of E4M3 and scales of a matrix, which need not be one that they hold."""
    scales = fp8_scales(*weight.shape)
    return (weight / fp8_spread(scales, *weight.shape)).to(torch.float8_e4m3fn), scales


def fp8_weight(weight):
    """The nearest matrix that codes and scales hold."""
    codes, scales = fp8_parts(weight)
    return codes.float() * fp8_spread(scales, *weight.shape)


def with_mxfp4(stored):
    """Experts' matrices as blocks and scales, which transformers reads and does not write on a CPU."""
    packed = {}
    for key, weight in stored.items():
        if not key.endswith(("gate_up_proj", "down_proj")):
            packed[key] = weight
            continue
        parts = [mxfp4_blocks(matrix) for matrix in weight.float()]
        packed[f"{key}_blocks"] = torch.stack([blocks for blocks, _ in parts])
        packed[f"{key}_scales"] = torch.stack([scales for _, scales in parts])
    return packed


def with_fp8(stored):
    """Matrices of layers as codes and scales, which transformers reads on a GPU alone."""
    packed = {}
    for key, weight in stored.items():
        packed[key] = weight
        if not holds_fp8(key):
            continue
        packed[key], packed[f"{key}_scale_inv"] = fp8_parts(weight.float())
        assert (fp8_weight(weight.float()) == weight.float()).all(), key
    return packed
