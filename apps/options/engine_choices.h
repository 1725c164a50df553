#pragma once
#include <string>
#include <vector>

namespace foretoken {

// The names that the registries of this build hold, for flags that take one of them.
std::vector<std::string> attention_backend_names();
std::vector<std::string> drafter_names();

// Models that --model takes by name on this machine: the bundled ones, and those that the Hub's
// cache folder holds.
std::vector<std::string> model_names();

}  // namespace foretoken
