#pragma once
#include <string>

#include "base/result.h"
#include "convert/convert_options.h"
#include "convert/gptq_matrix.h"
#include "gguf/model_files.h"

namespace foretoken {

// Writes a Hugging Face folder as another one whose projections are quantised in GPTQ's layout; its
// other files are copied. Returns the bytes of model.safetensors. `options.output` is a folder that
// does not exist or is empty, and is there whole or not at all. One matrix is in memory at a time.
// Unsupported names an architecture or a shape that cannot be written so; Aborted when cancelled.
Result<int64_t> to_gptq(const ModelFiles& model, const GptqForm& form,
                        const ConvertOptions& options);

}  // namespace foretoken
