#pragma once
#include <cstdint>

#include "base/result.h"
#include "gguf/container/gguf_file.h"
#include "gguf/hf_names.h"

namespace foretoken {

// Unsupported where a key of the file changes what the model of this architecture computes in a way
// that is not computed here: experts, other scales, adapters. It names the key.
Status check_plain_keys(const GgufFile& file, const GgufArchitecture& architecture,
                        int64_t head_dim);

}  // namespace foretoken
