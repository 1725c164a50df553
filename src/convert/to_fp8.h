#pragma once
#include <cstdint>

#include "base/result.h"
#include "convert/convert_options.h"
#include "gguf/model_files.h"

namespace foretoken {

// Which elements of a matrix share a scale, and whose folder it becomes.
enum class Fp8Form : uint8_t {
  kRows,          // compressed-tensors' float-quantized: X.weight_scale [n, 1]
  kBlocks,        // DeepSeek's: X.weight_scale_inv, one for 128 x 128
  kTensor,        // vLLM's quant_method fp8: X.weight_scale, one number
  kModelOptRows,  // ModelOpt's FP8_PER_CHANNEL_PER_TOKEN: X.weight_scale [n], hf_quant_config.json
};

// Writes a Hugging Face folder as one of E4M3. Scales are the powers of two with which
// --quantization fp8 rounds rows while loading (model/files/forms/rounded_tensor.h). A matrix is
// read twice, and its codes are in memory. Returns and errors as of write_quantized_folder.
Result<int64_t> to_fp8(const ModelFiles& model, Fp8Form form, const ConvertOptions& options);

}  // namespace foretoken
