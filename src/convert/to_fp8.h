#pragma once
#include "base/result.h"
#include "convert/convert_options.h"
#include "gguf/model_files.h"

namespace foretoken {

// Writes a Hugging Face folder as one of compressed-tensors' format float-quantized: E4M3 with a
// scale for each output, the numbers that --quantization fp8 makes while loading
// (model/files/forms/rounded_tensor.h). Returns and errors as of write_quantized_folder.
Result<int64_t> to_fp8(const ModelFiles& model, const ConvertOptions& options);

}  // namespace foretoken
