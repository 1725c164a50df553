#include "engine/request/parameters/generation_config.h"

#include <filesystem>
#include <set>
#include <string_view>

#include "base/files/json_object.h"
#include "base/log.h"
#include "config/sampling_fields.h"
#include "config/sampling_ranges.h"
#include "gguf/model_texts.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kOverride = "--override-generation-config";

// One source of settings; its name starts the messages.
struct Source {
  const Json& object;
  const std::string& name;

  const Json* find(const char* field) const {
    const auto found = object.find(field);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  Status wrong(const char* field, const char* wanted) const {
    return invalid_argument(name + ": '" + field + "' is " + object[field].dump() +
                            "; it must be " + wanted);
  }
};

Status read(const Source& source, const char* field, float& value) {
  const Json* json = source.find(field);
  if (json == nullptr) return {};
  if (!json->is_number()) return source.wrong(field, "a number");
  value = json->get<float>();
  return {};
}

Status read(const Source& source, const char* field, int& value) {
  const Json* json = source.find(field);
  if (json == nullptr) return {};
  const bool fits = json->is_number_integer() && json->get<double>() >= INT32_MIN &&
                    json->get<double>() <= INT32_MAX;
  if (!fits) return source.wrong(field, "an integer of 32 bits");
  value = json->get<int>();
  return {};
}

Status read_eos(const Source& source, GenerationConfig& config) {
  const Json* json = source.find("eos_token_id");
  if (json == nullptr) return {};
  std::vector<int32_t> ids;
  for (const Json& id : json->is_array() ? *json : Json::array({*json})) {
    if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() > INT32_MAX) {
      return source.wrong("eos_token_id", "a token id or an array of them");
    }
    ids.push_back(id.get<int32_t>());
  }
  config.eos_token_ids = std::move(ids);
  return {};
}

Status read_sampling(const Source& source, GenerationConfig& config) {
  for (const SamplingField& field : sampling_fields()) {
    if (field.model_name == nullptr || source.find(field.model_name) == nullptr) continue;
    Status status;
    visit_sampling_member(field, config.sampling, [&](auto& value) {
      if constexpr (requires { read(source, field.model_name, value); }) {
        status = read(source, field.model_name, value);
      }
    });
    FT_RETURN_IF_ERROR(status);
    status = check_sampling_field(field, config.sampling, field.model_name);
    if (!status.ok()) return invalid_argument(source.name + ": " + status.message());
    if (field.name == std::string_view("max_tokens")) {
      config.max_new_tokens = config.sampling.max_tokens;
    }
  }
  return {};
}

void warn_of_unused(const Json& object) {
  std::set<std::string_view> used = {"eos_token_id"};
  std::string list;
  for (const SamplingField& field : sampling_fields()) {
    if (field.model_name == nullptr) continue;
    used.insert(field.model_name);
    list += field.model_name + std::string(", ");
  }
  list.replace(list.size() - 2, 2, " and eos_token_id have");
  for (const auto& [name, value] : object.items()) {
    if (!used.contains(name)) FT_LOG(warn, "{}: '{}' has no effect; {}", kOverride, name, list);
  }
}

}  // namespace

Result<GenerationConfig> load_generation_config(const EngineConfig& config,
                                                const ModelFiles& target) {
  GenerationConfig result;
  const bool is_auto = config.generation_config == "auto" || config.generation_config.empty();
  if (config.generation_config != "vllm") {
    const ModelFiles files = is_auto ? target : ModelFiles(config.generation_config);
    const std::string file = (files.path() / "generation_config.json").string();
    if (!is_auto || has_model_text(files, "generation_config.json")) {
      const Result<Json> json = read_model_json(files, "generation_config.json");
      if (!json.ok() && json.status().code() == StatusCode::kNotFound) {
        return not_found("--generation-config " + config.generation_config + ": " +
                         json.status().message() + ", or use auto or vllm");
      }
      if (!json.ok()) return json.status();
      const Source source{json.value(), file};
      FT_RETURN_IF_ERROR(read_sampling(source, result));
      if (!is_auto) FT_RETURN_IF_ERROR(read_eos(source, result));
    }
  }
  if (config.override_generation_config.empty()) return result;
  const std::string name = kOverride;
  FT_ASSIGN_OR_RETURN(const Json json, parse_json_object(config.override_generation_config, name));
  const Source source{json, name};
  FT_RETURN_IF_ERROR(read_sampling(source, result));
  FT_RETURN_IF_ERROR(read_eos(source, result));
  warn_of_unused(json);
  return result;
}

}  // namespace foretoken
