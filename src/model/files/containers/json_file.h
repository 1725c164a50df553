#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/json_object.h"
#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

// Parses a file that holds one JSON object (base/files/python_json.h). NotFound when it cannot be
// opened.
Result<nlohmann::json> read_json_file(const std::string& path);

// The same for a file that holds one list.
Result<nlohmann::json> read_json_list(const std::string& path);

// As read_json_file, for a file of a model (gguf/model_texts.h).
Result<nlohmann::json> read_model_json(const ModelFiles& model, const std::string& name);

}  // namespace foretoken
