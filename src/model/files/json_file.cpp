#include "model/files/json_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/python_json.h"
#include "gguf/model_texts.h"

namespace foretoken {

Result<nlohmann::json> read_json_file(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path, ignored)) {
    return not_found("cannot read " + path + "; check the path and the permissions");
  }
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  Result<nlohmann::json> json = parse_python_json_object(text.str(), path);
  if (json.ok()) return json;
  return invalid_argument(json.status().message() + "; fetch or write the file again");
}

Result<nlohmann::json> read_model_json(const ModelFiles& model, const std::string& name) {
  const std::filesystem::path path = model.path() / name;
  std::error_code ignored;
  const bool is_file = !model.is_gguf() && std::filesystem::exists(path, ignored);
  if (is_file || (!model.is_gguf() && !has_model_text(model, name))) {
    return read_json_file(path.string());
  }
  FT_ASSIGN_OR_RETURN(const auto text, read_model_text(model, name));
  if (!text) return not_found(model.text() + " says nothing of what " + name + " holds");
  return parse_json_object(*text, model.text());
}

}  // namespace foretoken
