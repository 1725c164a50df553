#pragma once
#include <foretoken/config.h>

#include <string>

#include "base/result.h"

namespace foretoken {

// Writes into `config` what a JSON object of vLLM's kv_transfer_config asks for: connectors that
// keep KV blocks in host memory are kv_offloading_size, or kv_offloading_tokens where they count
// blocks. Logs a line for members of such a connector that have no effect. Unsupported, with what
// to do instead, where blocks would go to other servers or to other programs; InvalidArgument where
// `config` has a size of its own.
Status read_kv_transfer(const std::string& text, EngineConfig* config);

}  // namespace foretoken
