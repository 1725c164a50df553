#pragma once
#include <cstdint>

#include "base/result.h"
#include "convert/convert_options.h"
#include "gguf/model_files.h"

namespace foretoken {

// Writes a Hugging Face folder as one of AutoAWQ's version "gemm": four bits with zeros, `group`
// columns to a scale, rounded to nearest (no activations are looked at, so that no columns are
// scaled). One matrix is in memory at a time. Returns and errors as of write_quantized_folder;
// Unsupported names a matrix whose shape does not fit.
Result<int64_t> to_awq(const ModelFiles& model, int64_t group, const ConvertOptions& options);

}  // namespace foretoken
