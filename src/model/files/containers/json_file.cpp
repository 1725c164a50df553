#include "model/files/containers/json_file.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/files/python_json.h"
#include "base/files/text_file.h"
#include "gguf/model_texts.h"

namespace foretoken {

namespace {

namespace fs = std::filesystem;

// What can be loaded from a folder that is no model itself: folders of models and GGUF files.
std::vector<std::string> models_within(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    const fs::path& path = at->path();
    if (path.extension() == ".gguf" || fs::exists(path / "config.json", ignored)) {
      found.push_back(path.string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status refuse_folder(const fs::path& folder) {
  constexpr size_t kMaxNamed = 4;
  const std::vector<std::string> models = models_within(folder);
  std::error_code ignored;
  if (fs::exists(folder / "adapter_config.json", ignored)) {
    return unsupported(folder.string() +
                       " is a LoRA adapter and no model; give the model that it belongs to, and "
                       "the adapter with --enable-lora --lora-modules NAME=" +
                       folder.string());
  }
  std::string text = folder.string() + " holds no config.json";
  if (models.empty()) {
    return not_found(text + "; give the folder of a model, a GGUF file or a Hub id (org/name)");
  }
  for (size_t i = 0; i < std::min(models.size(), kMaxNamed); ++i) {
    text += (i == 0 ? "; give one of its models: " : ", ") + models[i];
  }
  return not_found(text + (models.size() > kMaxNamed ? ", ..." : ""));
}

Result<std::string> text_of_json(const std::string& path) {
  Result<std::string> text = read_text_file(path);
  if (text.ok() || text.status().code() == StatusCode::kInvalidArgument) return text;
  return not_found("cannot read " + path + "; check the path and the permissions");
}

}  // namespace

Result<nlohmann::json> read_json_file(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const std::string text, text_of_json(path));
  Result<nlohmann::json> json = parse_python_json_object(text, path);
  if (json.ok()) return json;
  return invalid_argument(json.status().message() + "; fetch or write the file again");
}

// As the member of an object, whose parser knows the bounds of what people may bring.
Result<nlohmann::json> read_json_list(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const std::string text, text_of_json(path));
  const auto json = parse_python_json_object("{\"list\": " + text + "}", path);
  if (json.ok() && json.value().size() == 1 && json.value().at("list").is_array()) {
    return json.value().at("list");
  }
  return invalid_argument(path + ": must be a JSON list; fetch or write the file again");
}

Result<nlohmann::json> read_model_json(const ModelFiles& model, const std::string& name) {
  const std::filesystem::path path = model.path() / name;
  std::error_code ignored;
  const bool is_file = !model.is_gguf() && std::filesystem::exists(path, ignored);
  if (is_file || (!model.is_gguf() && !has_model_text(model, name))) {
    if (!is_file && name == "config.json" && fs::is_directory(model.path(), ignored)) {
      return refuse_folder(model.path());
    }
    return read_json_file(path.string());
  }
  FT_ASSIGN_OR_RETURN(const auto text, read_model_text(model, name));
  if (!text) return not_found(model.text() + " says nothing of what " + name + " holds");
  return parse_json_object(*text, model.text());
}

}  // namespace foretoken
