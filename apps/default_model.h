#pragma once
#include <string>

namespace foretoken {

// The folder of the bundled model: beside the source tree or the installation that the executable
// belongs to, or under the working directory. Empty when it is in none of them.
std::string default_model();

// The name of that folder under models/.
std::string bundled_model_name();

// The path of a file or folder of the source tree or the installation, such as
// "bench/prompts/prompts.jsonl", looked for in the same places. Empty when it is in none of them.
std::string bundled_path(const std::string& path);

}  // namespace foretoken
