#include "hub/ollama_models.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/files/text_file.h"
#include "base/log.h"
#include "gguf/container/gguf_file.h"
#include "hub/repo_id.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kMediaType = "application/vnd.ollama.image.";
constexpr int64_t kMaxManifestBytes = 1 << 20;

constexpr std::pair<const char*, const char*> kParameters[] = {
    {"temperature", "temperature"},
    {"top_p", "top_p"},
    {"top_k", "top_k"},
    {"min_p", "min_p"},
    {"repeat_penalty", "repetition_penalty"}};

Json read_json_text(const fs::path& path) {
  std::error_code ignored;
  const auto size = fs::file_size(path, ignored);
  if (ignored || static_cast<int64_t>(size) > kMaxManifestBytes) return Json();
  const Result<std::string> text = read_text_file(path);
  return text.ok() ? Json::parse(text.value(), nullptr, false) : Json();
}

std::string text_field(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : "";
}

// Above the manifest at `path` the folder that has `blobs` beside `manifests`; empty: none.
fs::path folder_of_blobs(fs::path path) {
  while (path.has_relative_path()) {
    const fs::path parent = path.parent_path();
    if (path.filename() == "manifests") return parent / "blobs";
    if (parent == path) break;
    path = parent;
  }
  return {};
}

// The file of a layer; empty where its digest is none.
fs::path blob_of(const Json& layer, const fs::path& blobs) {
  constexpr std::string_view kAlgorithm = "sha256:";
  const std::string digest = text_field(layer, "digest");
  if (!digest.starts_with(kAlgorithm) || !is_hex(digest.substr(kAlgorithm.size()), 64)) return {};
  return blobs / ("sha256-" + digest.substr(kAlgorithm.size()));
}

void read_parameters(const fs::path& path, const std::string& manifest, OllamaModel* model) {
  const Json parameters = read_json_text(path);
  if (!parameters.is_object()) return;
  std::string passed_over;
  for (const auto& [name, value] : parameters.items()) {
    const char* common = nullptr;
    for (const auto& [own, to] : kParameters) {
      if (name == own) common = to;
    }
    if (common != nullptr && value.is_number()) {
      model->sampling[common] = value;
    } else {
      passed_over += (passed_over.empty() ? "" : ", ") + name;
    }
  }
  if (passed_over.empty()) return;
  FT_LOG(warn,
         "{}: of its parameters {} are passed over; requests and flags such as --max-model-len can "
         "set them",
         manifest, passed_over);
}

// Ollama's templates are Go's, and the file's own one is used.
void warn_of_template(const std::string& gguf, const std::string& manifest) {
  const auto file = GgufFile::open(gguf);
  if (!file.ok() || file.value()->find("tokenizer.chat_template") != nullptr) return;
  FT_LOG(warn,
         "{}: its template is in Ollama's own language, which is not read, and its GGUF file has "
         "no chat template; name one with --chat-template",
         manifest);
}

Result<OllamaModel> read_layers(const Json& layers, const std::string& manifest) {
  OllamaModel model;
  bool has_template = false;
  const fs::path blobs = folder_of_blobs(manifest);
  for (const Json& layer : layers) {
    const std::string type = text_field(layer, "mediaType");
    const fs::path blob = blob_of(layer, blobs);
    if (!type.starts_with(kMediaType) || blob.empty()) continue;
    const std::string_view kind = std::string_view(type).substr(kMediaType.size());
    if (kind == "adapter") {
      return unsupported(manifest +
                         ": the model has an adapter in GGUF, which is not read; give the PEFT "
                         "folder that it was converted from with --lora-modules");
    }
    if (kind == "model" && model.gguf.empty()) model.gguf = blob.string();
    if (kind == "params") read_parameters(blob, manifest, &model);
    has_template |= kind == "template";
  }
  std::error_code ignored;
  if (!fs::exists(model.gguf, ignored)) {
    return not_found(manifest + ": the model's file " +
                     (model.gguf.empty() ? "is not named" : model.gguf + " is missing") +
                     "; fetch it again with ollama pull");
  }
  if (!is_gguf(model.gguf)) {
    return unsupported(manifest + ": the model's file " + model.gguf +
                       " is no GGUF file; give the Hugging Face folder of the model");
  }
  if (has_template) warn_of_template(model.gguf, manifest);
  return model;
}

// HOST/ORG/NAME/TAG of a name; empty where it can be none.
std::string manifest_name(const std::string& name) {
  const size_t slash = name.rfind('/'), colon = name.rfind(':');
  const bool has_tag = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  const std::string path = name.substr(0, has_tag ? colon : name.size()) + "/" +
                           (has_tag ? name.substr(colon + 1) : "latest");
  if (!is_safe_path(path)) return "";
  return slash == std::string::npos ? "registry.ollama.ai/library/" + path : path;
}

}  // namespace

std::string ollama_folder(const EnvironmentLookup& lookup) {
  std::error_code ignored;
  const auto value = [&](const char* name) { return lookup(name).value_or(""); };
  const std::string home = value("HOME");
  for (const fs::path& folder : {fs::path(value("OLLAMA_MODELS")),
                                 home.empty() ? fs::path() : fs::path(home) / ".ollama" / "models",
                                 fs::path("/usr/share/ollama/.ollama/models")}) {
    if (!folder.empty() && fs::is_directory(folder / "manifests", ignored)) return folder.string();
  }
  return "";
}

Result<std::optional<OllamaModel>> find_ollama_model(const std::string& model,
                                                     const std::string& folder) {
  std::error_code ignored;
  std::string manifest = model;
  if (!fs::is_regular_file(manifest, ignored)) {
    if (fs::exists(manifest, ignored)) return std::optional<OllamaModel>();
    const std::string name = folder.empty() ? "" : manifest_name(model);
    if (name.empty()) return std::optional<OllamaModel>();
    manifest = (fs::path(folder) / "manifests" / name).string();
    if (!fs::is_regular_file(manifest, ignored)) return std::optional<OllamaModel>();
  }
  const Json json = read_json_text(manifest);
  const bool is_manifest = json.is_object() && json.contains("layers") &&
                           json["layers"].is_array() && !folder_of_blobs(manifest).empty();
  if (!is_manifest) return std::optional<OllamaModel>();
  FT_ASSIGN_OR_RETURN(OllamaModel found, read_layers(json["layers"], manifest));
  return std::optional(std::move(found));
}

}  // namespace foretoken
