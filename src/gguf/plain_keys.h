#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "gguf/gguf_file.h"

namespace foretoken {

// Unsupported where a key of the file changes what the model of this architecture computes in a way
// that is not computed here: experts, rotary embeddings of parts of heads, other scales, parts of a
// split file, adapters. It names the key.
Status check_plain_keys(const GgufFile& file, std::string_view architecture, int64_t head_dim);

}  // namespace foretoken
