#include "model/files/forms/quantization_methods.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr QuantizationMethod kMethods[] = {
    {"gptq", "2 to 8 bits in groups along k, gptq and gptq_v2, desc_act, dynamic; not Marlin"},
    {"awq", "4 bits, version gemm"},
    {"compressed-tensors",
     "pack-quantized (2, 4 and 8 bits), int-quantized, float-quantized, naive-quantized, "
     "nvfp4-pack-quantized, "
     "mxfp4-pack-quantized, mxfp8-quantized, mixed-precision, marlin-24; sparse-24-bitmask, "
     "sparse-bitmask; transforms that are all in the weights"},
    {"fp8, mxfp8", "E4M3, or E5M2 (fmt e5m2), with a scale a tensor, row or block"},
    {"fbgemm_fp8, w8a8_fp8", "E4M3 with a scale a row"},
    {"w8a8_int8, blockwise_int8", "signed bytes with a scale a row or block, as SGLang has them"},
    {"modelopt, modelopt_...",
     "quant_algo FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, NVFP4_AWQ, W4A16_NVFP4, "
     "W4A8_NVFP4_FP8, W4A16_AWQ, W4A8_AWQ, W8A16, W8A8_SQ_PER_CHANNEL, MXFP8, MXFP4, "
     "W4A8_MXFP4_FP8, MIXED_PRECISION"},
    {"mxfp4", "E2M1 with powers of two, as gpt-oss has it"},
    {"bitnet", "two bits, quantization_mode offline; or online, plain weights made ternary"},
    {"bitsandbytes", "NF4, FP4 and LLM.int8"},
    {"mlx",
     "or no name beside bits and group_size: affine of 2, 3, 4, 5, 6 and 8 bits, mxfp4, "
     "mxfp8 and nvfp4"},
    {"metal", "affine of 2, 4 and 8 bits, MLX's words with qbiases"},
    {"gemma", "2, 4 and 8 bits with a scale a row, tables too: Google's mobile checkpoints"},
    {"fp_quant", "MXFP4 and NVFP4 behind a Hadamard matrix, which is turned back; or dqweight"},
    {"hqq", "1, 2, 3, 4 and 8 bits along either axis; scales and zeros that are plain"},
    {"torchao", "Int8Tensor, Float8Tensor, IntxUnpackedToInt8Tensor and plain Int4Tensor"},
    {"quark",
     "weights of fp8_e4m3, fp8_e5m2, fp6_e3m2, fp6_e2m3, fp4 or int8; int4 and uint4 in groups, "
     "reordered"},
    {"auto-round, intel/auto-round",
     "in the layout of gptq or awq, or NVFP4 and MXFP4 in compressed-tensors', or FP8"},
};

constexpr RefusedMethod kRefusedMethods[] = {
    {"aqlm", "its weights are sums of entries of code books"},
    {"spqr", "its weights are codes of three bits with outliers in sparse rows"},
    {"vptq", "its weights are entries of code books of vectors"},
    {"quip", "its weights are entries of a code book behind random Hadamard matrices"},
    {"qtip", "its weights are states of a trellis behind random Hadamard matrices"},
    {"higgs", "its weights are entries of a grid behind Hadamard matrices, in one kernel's order"},
    {"fouroversix", "its blocks of NVFP4 choose between two scales"},
    {"eetq", "its bytes lie in the order of one GPU's kernel"},
    {"quanto", "transformers keeps no weights of it: it quantises them while it loads"},
    {"sinq", "its matrices have scales of rows and of columns"},
    {"exl2", "ExLlamaV2's rows have codes of different widths in one kernel's order"},
    {"exl3", "ExLlamaV3's weights are states of a trellis behind Hadamard matrices"},
    {"marlin", "its words lie in the order of one kernel"},
    {"squeezellm", "its weights are entries of a table for each row, with outliers beside them"},
    {"deepspeedfp", "DeepSpeed's floats of six and twelve bits lie in the order of its kernel"},
    {"bitblas", "its words lie in the order of one kernel"},
    {"gguf", "the weights are in a GGUF file, which is named by its own path"},
    {"svdquant", "its matrices have a part of low rank beside them"},
};

}  // namespace

std::span<const QuantizationMethod> quantization_methods() { return kMethods; }

std::span<const RefusedMethod> refused_methods() { return kRefusedMethods; }

const RefusedMethod* find_refused_method(std::string_view name) {
  const auto* found = std::ranges::find(kRefusedMethods, name, &RefusedMethod::name);
  return found == std::end(kRefusedMethods) ? nullptr : found;
}

}  // namespace foretoken
