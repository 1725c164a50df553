#include "serve/openai/foreign_fields.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "config/sampling_fields.h"
#include "config/sampling_ranges.h"
#include "serve/fields/lax_values.h"
#include "serve/openai/foreign_chat.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Samplers and services that are not here, each with the value that leaves it out.
struct Missing {
  const char* name;
  double neutral;
};
constexpr Missing kMissing[] = {{"typical_p", 1},
                                {"typ_p", 1},
                                {"mirostat", 0},
                                {"dry_multiplier", 0},
                                {"xtc_probability", 0},
                                {"dynatemp_range", 0},
                                {"tfs_z", 1},
                                {"top_n_sigma", -1},
                                {"top_a", 0},
                                {"min_keep", 0},
                                {"samplers", 0},
                                {"penalize_nl", 0},
                                {"image_data", 0},
                                {"n_indent", 0},
                                {"t_max_predict_ms", -1},
                                {"post_sampling_probs", 0},
                                {"return_progress", 0},
                                {"response_fields", 0},
                                {"reasoning_in_content", 0},
                                {"thinking_budget", -1},
                                {"reasoning_budget", -1},
                                {"num_ctx", 0},
                                {"draft_model", 0}};

// What changes no token, and what belongs to the missing.
constexpr const char* kLabels[] = {"cache_prompt",
                                   "id_slot",
                                   "slot_id",
                                   "n_keep",
                                   "n_discard",
                                   "keep_alive",
                                   "ttl",
                                   "dynatemp_exponent",
                                   "mirostat_tau",
                                   "mirostat_eta",
                                   "dry_base",
                                   "dry_allowed_length",
                                   "xtc_threshold",
                                   "num_keep",
                                   "dry_penalty_last_n",
                                   "dry_sequence_breakers",
                                   "backend_sampling",
                                   "n_cache_reuse",
                                   "sse_ping_interval"};
// Of Ollama's options: how the model is run.
constexpr const char* kRunOptions[] = {"num_gpu",  "num_thread", "num_batch", "main_gpu",
                                       "use_mmap", "use_mlock",  "numa",      "low_vram"};

// What is read in other ways.
constexpr const char* kOthers[] = {"repeat_last_n",     "n_predict",
                                   "options",           "think",
                                   "enable_thinking",   "reasoning_format",
                                   "grammar",           "json_schema",
                                   "n_probs",           "prediction",
                                   "timings_per_token", "separate_reasoning",
                                   "no_stop_trim",      "rid"};

bool is_neutral(const json& value, double neutral) {
  if (value == false || value.empty() || value == "") return true;
  const std::optional<double> number = lax_number(value);
  return number && (neutral < 0 ? *number <= 0 : *number == neutral);
}

std::string quoted(const char* name) { return "'" + std::string(name) + "'"; }

class ForeignFields {
 public:
  ForeignFields(JsonFields& fields, bool chat, int max_model_len)
      : fields_(fields), chat_(chat), max_model_len_(max_model_len) {}

  ForeignWishes read() {
    read_sampling(fields_);
    read_options();
    read_lengths();
    read_logit_bias();
    read_forms();
    read_probs();
    read_sglangs();
    fields_.stand_in(std::move(values_));
    return std::move(wishes_);
  }

 private:
  // Unless the body says it under vLLM's name.
  void set(const char* name, json value) {
    if (!fields_.has(name)) values_.emplace(name, std::move(value));
  }

  std::vector<const char*> length_names(const JsonFields& from) const {
    if (&from != &fields_) return {"n_predict", "num_predict"};
    if (chat_) return {"n_predict"};  // its max_completion_tokens is a field of its own
    return {"n_predict", "max_completion_tokens"};
  }

  void read_sampling(JsonFields& from) {
    for (const SamplingField& field : sampling_fields()) {
      if (field.llama_name == nullptr) continue;
      std::optional<double> number;
      from.read(field.llama_name, &number);
      if (!number) continue;
      if (!field.range.holds(*number)) {
        return from.fail(quoted(field.llama_name) + " must " + range_sentence(field.range));
      }
      set(field.name, *from.raw(field.llama_name));
    }
    for (const char* name : length_names(from)) {
      std::optional<int> length;
      from.read(name, &length);
      if (!length) continue;
      const bool counts = *length >= 1 || *length == -1 || *length == -2;
      if (!counts && fields_.has("max_tokens")) {
        return from.fail(quoted(name) + " must be at least 1, or -1: as many as fit");
      }
      set("max_tokens", *length);
    }
    for (const Missing& missing : kMissing) {
      const json* value = from.raw(missing.name);
      if (value == nullptr || is_neutral(*value, missing.neutral)) continue;
      if (find_sampling_field(missing.name) != nullptr) continue;
      from.warn(quoted(missing.name) + " is not applied here");
    }
    for (const char* name : kLabels) from.ignore({name});
    read_window(from);
  }

  // Penalties see all of the text.
  void read_window(JsonFields& from) {
    const json* window = from.raw("repeat_last_n");
    if (window == nullptr || lax_number(*window) == -1) return;
    const auto penalises = [&](const char* name, double neutral) {
      const auto ours = values_.find(name);
      const json* value = ours != values_.end() ? &*ours : fields_.raw(name);
      return value != nullptr && lax_number(*value) != neutral;
    };
    if (!penalises("repetition_penalty", 1) && !penalises("presence_penalty", 0) &&
        !penalises("frequency_penalty", 0)) {
      return;
    }
    from.warn("'repeat_last_n' is not applied here; penalties see the whole text");
  }

  void read_options() {
    const json* options = fields_.raw("options");
    if (options == nullptr) return;
    if (!options->is_object()) return fields_.wrong_type("options", "an object", *options);
    JsonFields from(*options, "'options'", fields_.notes());
    for (const SamplingField& field : sampling_fields()) {
      const bool is_option =
          field.group == SamplingGroup::kDistribution || field.name == std::string_view("stop");
      const json* value = is_option ? from.raw(field.name) : nullptr;
      if (value != nullptr) set(field.name, *value);
    }
    read_sampling(from);
    for (const char* name : kRunOptions) from.ignore({name});
    from.check_unread();
    if (!from.status().ok()) fields_.fail(from.status().message());
  }

  // -1, and -2 of llama.cpp: as many as fit.
  void read_lengths() {
    for (const char* name : {"max_tokens", "max_completion_tokens"}) {
      if (!chat_ && name == std::string("max_completion_tokens")) continue;
      const auto ours = values_.find(name);
      const json* value = ours != values_.end() ? &*ours : fields_.raw(name);
      const std::optional<json> length = value == nullptr ? std::nullopt : lax_integer(*value);
      if (!length || !(*length == -1 || *length == -2)) continue;
      values_[name] = std::max(max_model_len_, 1);
      wishes_.goes_to_the_end = true;
    }
  }

  // llama.cpp's list of [id or text, bias]; false forbids a token.
  void read_logit_bias() {
    const json* list = fields_.raw("logit_bias");
    if (list == nullptr || !list->is_array()) return;
    json object = json::object();
    for (const json& entry : *list) {
      const bool pair = entry.is_array() && entry.size() == 2 && lax_number(entry[1]);
      if (!pair || !(entry[0].is_string() || JsonFields::is_count(entry[0]))) {
        return fields_.wrong_type("logit_bias", "an object {\"42\": -100} or a list [[42, -100]]",
                                  entry);
      }
      const double bias =
          entry[1] == false ? -100 : std::clamp(lax_number(entry[1]).value(), -100.0, 100.0);
      if (entry[0].is_string()) {
        wishes_.text_biases.emplace_back(entry[0].get<std::string>(), static_cast<float>(bias));
      } else {
        object[std::to_string(entry[0].get<uint64_t>())] = bias;
      }
    }
    values_["logit_bias"] = std::move(object);
  }

  // Ollama's form of the output.
  void read_forms() {
    const json* format = fields_.raw("format");
    if (format == nullptr || *format == "") return;
    if (*format != "json" && !format->is_object()) {
      return fields_.wrong_type("format", "\"json\" or a JSON schema", *format);
    }
    if (fields_.has("response_format")) {
      return fields_.fail(
          "'format' and 'response_format' both give the form of the output; remove one of the two");
    }
    values_["response_format"] = {{"type", "json_object"}};
    if (format->is_object()) values_["response_format"]["schema"] = *format;
  }

  void read_sglangs() {
    if (const json* keeps = fields_.raw("no_stop_trim")) set("include_stop_str_in_output", *keeps);
    const json* id = fields_.raw("rid");
    if (id != nullptr && id->is_string()) set("request_id", *id);
    bool apart = true;
    if (chat_) fields_.read("separate_reasoning", &apart);
    if (!apart) set("reasoning_format", "none");
  }

  void read_probs() {
    const json* count = fields_.raw("n_probs");
    if (count == nullptr) return;
    const std::optional<uint64_t> number = JsonFields::count_of(*count);
    if (!number) return fields_.wrong_type("n_probs", "an integer from 0 up", *count);
    if (*number == 0) return;
    set("logprobs", chat_ ? json(true) : *count);
    if (chat_) set("top_logprobs", *count);
  }

  JsonFields& fields_;
  const bool chat_;
  const int max_model_len_;
  ForeignWishes wishes_;
  json values_ = json::object();
};

}  // namespace

ForeignWishes read_foreign_fields(JsonFields& fields, bool chat, int max_model_len) {
  ForeignWishes wishes = ForeignFields(fields, chat, max_model_len).read();
  if (chat) read_foreign_chat(fields);
  return wishes;
}

bool is_placeholder_model(const std::string& model) {
  // Of huggingface_hub, text-generation-inference, SGLang, mlx_lm and LM Studio.
  constexpr std::string_view kNames[] = {"dummy", "tgi", "default", "default_model", "local-model"};
  return std::ranges::find(kNames, model) != std::end(kNames);
}

const std::vector<const char*>& foreign_names() {
  static const std::vector<const char*> all = [] {
    std::vector<const char*> names(std::begin(kOthers), std::end(kOthers));
    for (const SamplingField& field : sampling_fields()) {
      if (field.llama_name != nullptr) names.push_back(field.llama_name);
    }
    for (const Missing& missing : kMissing) names.push_back(missing.name);
    names.insert(names.end(), std::begin(kLabels), std::end(kLabels));
    return names;
  }();
  return all;
}

}  // namespace foretoken
