#pragma once
#include <foretoken/config.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The drafters of one entry of --speculative-config, as entries of one drafter each. `method` is a
// name, names with '+' between them, or a list whose elements are names or entries of their own.
// What an element does not say itself it takes from the entry around it: fields of all drafters,
// those of files where it reads files, and those of a method where it is that method. Errors begin
// with `what`.
Result<nlohmann::ordered_json> members_of(const nlohmann::ordered_json& entry,
                                          const std::string& what);

// The text of --speculative-config: an object or a list.
Result<nlohmann::ordered_json> parse_speculative_json(const std::string& text);

// The drafters of such a value, as parse_speculative_config reads them.
Result<std::vector<SpeculativeConfig>> read_speculative_json(nlohmann::ordered_json value,
                                                             const std::string& target);

// The drafters of --speculative-config: one JSON object with vLLM's field names, or a list of them,
// of which the first serves requests that name no method. Fields that hold for the whole engine
// (length policy, acceptance rule and its rates) may stand in one entry or, equal, in several.
// `target`: the target's folder or Hub id, which bundled drafters are looked up for.
Result<std::vector<SpeculativeConfig>> parse_speculative_config(const std::string& text,
                                                                const std::string& target);

}  // namespace foretoken
