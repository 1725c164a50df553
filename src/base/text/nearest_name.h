#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace foretoken {

// The one of `known` that `name` was probably meant to be: fewest single-character edits (swapped
// neighbours count once), at most `max_edits` and a third of its length. Empty when none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known,
                         size_t max_edits = SIZE_MAX);

// "; did you mean 'temperature'?", or `otherwise` when no known name is near.
std::string nearest_name_hint(const std::string& name, const std::vector<std::string>& known,
                              const std::string& otherwise, size_t max_edits = SIZE_MAX);

}  // namespace foretoken
