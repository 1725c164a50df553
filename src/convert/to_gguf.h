#pragma once
#include "base/result.h"
#include "convert/convert_options.h"
#include "gguf/gguf_recipe.h"
#include "gguf/model_files.h"

namespace foretoken {

// Writes a Hugging Face folder, or a GGUF file (convert/requantize.h), as one GGUF file:
// configuration, tokenizer, chat template and
// tensors, a few MiB of them in memory at a time. Returns the file's bytes. Unsupported names an
// architecture, a tokenizer or a shape that cannot be written so; Aborted when cancelled. The file
// is there whole or not at all.
Result<int64_t> to_gguf(const ModelFiles& model, const GgufRecipe& recipe,
                        const ConvertOptions& options);

}  // namespace foretoken
