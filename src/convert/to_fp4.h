#pragma once
#include <cstdint>

#include "base/result.h"
#include "convert/convert_options.h"
#include "gguf/model_files.h"

namespace foretoken {

// Floats of four bits (E2M1) in groups of a row.
enum class Fp4Form : uint8_t {
  kNvfp4,          // groups of 16 with a scale of E4M3, and one float for the matrices of a layer
  kModelOptNvfp4,  // the same as ModelOpt's W4A16_NVFP4
  kMxfp4,  // groups of 32 with a power of two, the one below the largest number over 4 (OCP 2023)
};

// Writes a Hugging Face folder as one of compressed-tensors' format nvfp4-pack-quantized or
// mxfp4-pack-quantized, or of ModelOpt's, rounded to nearest. Returns and errors as of
// write_quantized_folder.
Result<int64_t> to_fp4(const ModelFiles& model, Fp4Form form, const ConvertOptions& options);

}  // namespace foretoken
