#pragma once
#include "base/result.h"
#include "convert/convert_options.h"
#include "gguf/container/gguf_file.h"
#include "gguf/gguf_recipe.h"

namespace foretoken {

// Writes a GGUF file as another one whose matrices have other types, of any architecture: metadata
// and what is no matrix stay as they are. Returns the file's bytes. Unsupported names a tensor of a
// type that is not read, or whose rows are no whole blocks; Aborted when cancelled. The file is
// there whole or not at all.
Result<int64_t> requantize_gguf(const GgufFile& file, const GgufRecipe& recipe,
                                const ConvertOptions& options);

}  // namespace foretoken
