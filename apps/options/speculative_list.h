#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// The drafters of one entry of --speculative-config, as entries of one drafter each. `method` is a
// name, names with '+' between them, or a list whose elements are names or entries of their own.
// What an element does not say itself it takes from the entry around it: fields of all drafters,
// those of files where it reads files, and those of a method where it is that method. Errors begin
// with `what`.
Result<nlohmann::ordered_json> members_of(const nlohmann::ordered_json& entry,
                                          const std::string& what);

}  // namespace foretoken
