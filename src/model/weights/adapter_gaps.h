#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "model/weights/lora_adapter.h"

namespace foretoken {

// What an adapter's files lack though it loads, as a sentence for its user: matrices that
// adapter_config.json targets of these modules of a model (keys of module_key.h), where the adapter
// has such matrices in other layers; or any effect, all of its products being zero. Empty: nothing.
// Errors as of PeftConfig::targets.
Result<std::string> adapter_gap(const LoraAdapter& adapter, std::span<const std::string> modules);

}  // namespace foretoken
