#pragma once
#include <foretoken/config.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// One drafter from an object with vLLM's field names and three of this engine's own (length_policy,
// draft_vocab_size, draft_vocab_file). `what` starts each message; `target` is the folder or Hub id
// of the target. Every field of vLLM's SpeculativeConfig is read, or is an error that says why not;
// so is a field that contradicts another one. What only the model can tell is left to the engine.
// A number of drafts that is missing is told in `missing` where that is OK, so that the faults of
// other drafters go before it.
Result<SpeculativeConfig> read_speculative_fields(const nlohmann::ordered_json& object,
                                                  const std::string& what,
                                                  const std::string& target, Status* missing);

}  // namespace foretoken
