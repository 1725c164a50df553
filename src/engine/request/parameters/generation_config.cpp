#include "engine/request/parameters/generation_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "base/files/json_object.h"
#include "base/log.h"
#include "config/sampling_fields.h"
#include "config/sampling_ranges.h"
#include "gguf/model_texts.h"
#include "model/config/config_fields.h"
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
  // 20.0 is the number that some tools write for 20.
  const double number = json->is_number() ? json->get<double>() : 0.5;
  const bool fits = number == std::floor(number) && number >= INT32_MIN && number <= INT32_MAX;
  if (!fits) return source.wrong(field, "an integer of 32 bits");
  value = static_cast<int>(number);
  return {};
}

Status read_eos(const Source& source, GenerationConfig& config) {
  const Json* json = source.find("eos_token_id");
  if (json == nullptr) return {};
  std::optional<std::vector<int32_t>> ids = read_token_ids(*json);
  if (!ids || std::ranges::count(*ids, -1) > 0) {
    return source.wrong("eos_token_id", "a token id or an array of them");
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

// "repetition_penalty, temperature, ... and eos_token_id".
std::string sampling_names() {
  std::string list;
  for (const SamplingField& field : sampling_fields()) {
    if (field.model_name != nullptr) list += field.model_name + std::string(", ");
  }
  list.replace(list.size() - 2, 2, " and eos_token_id");
  return list;
}

void warn_of_unused(const Json& object) {
  std::set<std::string_view> used = {"eos_token_id"};
  for (const SamplingField& field : sampling_fields()) {
    if (field.model_name != nullptr) used.insert(field.model_name);
  }
  const std::string list = sampling_names() + " have";
  for (const auto& [name, value] : object.items()) {
    if (!used.contains(name)) FT_LOG(warn, "{}: '{}' has no effect; {}", kOverride, name, list);
  }
}

// Fields of transformers that change texts and have no effect here, as in vLLM, with the value that
// changes nothing; but null, false, zero and what is empty change nothing in any of them.
constexpr std::pair<const char*, double> kPassedOver[] = {
    {"bad_words_ids", 0},
    {"begin_suppress_tokens", 0},
    {"constraints", 0},
    {"diversity_penalty", 0},
    {"dola_layers", 0},
    {"encoder_no_repeat_ngram_size", 0},
    {"encoder_repetition_penalty", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"exponential_decay_length_penalty", 0},
    {"force_words_ids", 0},
    {"forced_bos_token_id", -1},
    {"forced_eos_token_id", -1},
    {"guidance_scale", 1},
    {"length_penalty", 1},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"no_repeat_ngram_size", 0},
    {"num_beam_groups", 1},
    {"num_beams", 1},
    {"penalty_alpha", 0},
    {"remove_invalid_values", 0},
    {"sequence_bias", 0},
    {"stop_strings", 0},
    {"suppress_tokens", 0},
    {"top_h", 0},
    {"typical_p", 1},
    {"watermarking_config", 0},
};

bool changes_nothing(const Json& value, double neutral) {
  if (value.is_null() || value == false || (value.is_structured() && value.empty())) return true;
  if (value.is_string()) return value.get<std::string>().empty();
  if (!value.is_number()) return false;
  // Zero is a token id of those whose neutral value is none.
  return value.get<double>() == neutral || (neutral >= 0 && value.get<double>() == 0);
}

void warn_of_passed_over(const Source& source) {
  std::string text;
  for (const auto& [name, neutral] : kPassedOver) {
    const Json* value = source.find(name);
    if (value == nullptr || changes_nothing(*value, neutral)) continue;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + value->dump().substr(0, 40);
  }
  if (text.empty()) return;
  FT_LOG(warn,
         "{}: {}: passed over, as in vLLM; requests and --override-generation-config can set {}",
         source.name, text, sampling_names());
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
      warn_of_passed_over(source);
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
