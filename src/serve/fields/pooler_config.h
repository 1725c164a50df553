#pragma once
#include <foretoken/request.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace foretoken {

// What vLLM's pooler_config says of embeddings; unset: nothing.
struct PoolerConfig {
  std::optional<Pooling> pooling;
  std::optional<bool> normalize;
};

// Reads the JSON object that `flag` gives: "pooling_type" or "seq_pooling_type" (LAST, MEAN, CLS)
// and "normalize", "use_activation" or "activation". Logs a line for what else there is, which has
// no effect. Unsupported, with the types that there are, for another type.
Result<PoolerConfig> read_pooler_config(const std::string& text, const std::string& flag);

}  // namespace foretoken
