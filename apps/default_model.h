#pragma once
#include <string>

namespace foretoken {

// The folder of the bundled model: beside the source tree or the installation that the executable
// belongs to, or under the working directory. Empty when it is in none of them.
std::string default_model();

}  // namespace foretoken
