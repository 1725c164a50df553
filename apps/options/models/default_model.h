#pragma once
#include <string>

namespace foretoken {

// The folder of the bundled model: under $FORETOKEN_MODELS_DIR, or under models/ of a root of
// bundled_roots.h. Empty when it is in none of them.
std::string default_model();

// The name of that folder under models/.
std::string bundled_model_name();

// The folder of a bundled model or drafter by its name, such as "foretoken-7m-draft"; empty when
// there is none.
std::string bundled_model_folder(const std::string& name);

// `model` itself, or the folder of the bundled model of that name where `model` is no path.
std::string bundled_or_given(const std::string& model);

// The path of a file or folder of the source tree or the installation, such as
// "bench/prompts/prompts.jsonl", looked for in the same places. Empty when it is in none of them.
std::string bundled_path(const std::string& path);

}  // namespace foretoken
