#pragma once
#include <string>
#include <vector>

namespace foretoken {

// The one of `known` that `name` was probably meant to be: fewest single-character edits (swapped
// neighbours count once), at most a third of its length. Empty when none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

// "; did you mean 'temperature'?", or `otherwise` when no known name is near.
std::string nearest_name_hint(const std::string& name, const std::vector<std::string>& known,
                              const std::string& otherwise);

}  // namespace foretoken
