#pragma once
#include "base/result.h"
#include "convert/convert_options.h"
#include "convert/int_matrix.h"
#include "gguf/model_files.h"

namespace foretoken {

// Writes a Hugging Face folder as one of compressed-tensors' format pack-quantized (W4A16, W8A16),
// rounded to nearest; whether scales are bfloat16 each matrix' own type says, not the form. One
// matrix is in memory at a time. Returns and errors as of write_quantized_folder; Unsupported
// names a matrix whose shape does not fit.
Result<int64_t> to_packed(const ModelFiles& model, const IntForm& form,
                          const ConvertOptions& options);

}  // namespace foretoken
