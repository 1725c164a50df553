#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

// Where the codes of quantised matrices lie in safetensors files. A matrix has n rows and k
// columns; codes of the first four are unsigned, but some of Quark's, and fill words of 32 bits
// from the lowest bit on.
enum class PackLayout : uint8_t {
  kGptq,        // AutoGPTQ, GPTQModel: words of codes that follow along k, [k / 8, n] for 4 bits
  kAwq,         // AutoAWQ "gemm": words of 8 interleaved rows, [k, n / 8]
  kQuark,       // AMD's Quark: those words as X.weight
  kCompressed,  // compressed-tensors "pack-quantized": [n, k / 8]
  kScaled,      // floats of eight or four bits, or integers of eight
                // (model/files/forms/scaled_tensor.h, model/files/forms/bnb_tensor.h)
};

// Floats of six bits that Quark writes, whose tensors do not tell which they are.
enum class SixBits : uint8_t { kNone, kE3m2, kE2m3 };

// What quantization_config of a config.json says. Which matrices are quantised, and which of them
// as floats and which as integers, is what their tensors tell: lists of modules are not needed.
struct Quantization {
  std::string method;  // quant_method, as vLLM names it; empty: of ModelOpt's older files
  PackLayout layout = PackLayout::kGptq;
  int32_t bits = 4;                   // 4 or 8; of kGptq 2 to 8, of kCompressed 2 too
  int64_t group = 128;                // columns that share a scale; -1: all
  bool stores_zero_less_one = false;  // GPTQ's first format: a stored zero stands for one more
  bool is_signed = false;             // of kQuark: codes and zeros are -8 to 7
  // Of words, whether every matrix has zeros of its own, or the group of each column.
  bool needs_zeros = false;
  bool needs_groups = false;
  // Bits and groups may differ from matrix to matrix: the shapes of each tell them.
  bool differs = false;
  // Of scaled codes: rows and columns that share a scale; 0: shapes alone tell.
  int64_t block_rows = 0;
  int64_t block_cols = 0;
  int64_t nvfp4_group = 16;    // columns that share a scale of E4M3, of codes of four bits
  bool nvfp4_differs = false;  // so many or twice as many, as the shapes of each matrix tell
  bool is_fp8 = false;         // all weights that are quantised are E4M3
  bool is_float = false;       // none are integers
  // BitNet's codes of two bits, and whether weights are codes divided by their scale instead of
  // multiplied.
  bool is_ternary = false;
  bool divides = false;
  SixBits six_bits = SixBits::kNone;
  bool is_online = false;       // BitNet's weights are plain, and made ternary while they are read
  bool rounds_to_int8 = false;  // rows that layers multiply are rounded, as BitNet is trained
  bool rounds_activations = false;  // where the file's tool multiplies; here they are not
};

// None where the config names none. Unsupported names a method, layout or number of bits that is
// not read, and the remedy; `where` begins the messages.
Result<std::optional<Quantization>> read_quantization(const nlohmann::json& config,
                                                      const std::string& where);

// config.json of a model, with the quantization_config of its text part, the compression_config of
// early compressed-tensors, or what older tools wrote into a file of its own where it has none:
// AutoGPTQ's quantize_config.json, AutoAWQ's quant_config.json, ModelOpt's hf_quant_config.json.
Result<nlohmann::json> read_config_json(const ModelFiles& model);

}  // namespace foretoken
