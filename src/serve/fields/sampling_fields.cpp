#include "serve/fields/sampling_fields.h"

#include <algorithm>
#include <charconv>

#include "base/sampling_ranges.h"
#include "serve/fields/lax_values.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

void read_seed(JsonFields& fields, std::optional<uint64_t>* seed) {
  const json* value = fields.raw("seed");
  if (value == nullptr) return;
  *seed = JsonFields::count_of(*value);
  if (*seed) return;
  const std::optional<json> number = lax_integer(*value);
  if (!number || !number->is_number_integer()) {
    return fields.wrong_type("seed", "an integer of 64 bits (leave it out for noise of its own)",
                             *value);
  }
  // Negative ones are seeds like others; -1 stands for none, as in vLLM.
  if (*number != -1) *seed = static_cast<uint64_t>(number->get<int64_t>());
}

// {"token id": bias}, as OpenAI has it; vLLM cuts values to [-100, 100], too.
void read_logit_bias(JsonFields& fields, std::vector<std::pair<int32_t, float>>* bias) {
  const json* value = fields.raw("logit_bias");
  if (value == nullptr) return;
  constexpr const char* kWanted = "an object of token ids and numbers like {\"42\": -100}";
  if (!value->is_object()) return fields.wrong_type("logit_bias", kWanted, *value);
  bias->clear();
  for (const auto& [key, number] : value->items()) {
    int32_t id = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = parsed.ec == std::errc() && parsed.ptr == key.data() + key.size();
    const std::optional<double> given = lax_number(number);
    if (!is_id || !given) {
      return fields.wrong_type("logit_bias", kWanted, json{{key, number}});
    }
    bias->emplace_back(id, static_cast<float>(std::clamp(*given, -100.0, 100.0)));
  }
}

void read_speculative(JsonFields& fields, SpeculativeParams* speculative) {
  const json* object = fields.raw("speculative");
  if (object == nullptr) return;
  if (!object->is_object()) {
    return fields.wrong_type("speculative", "an object like {\"enabled\": false}", *object);
  }
  const Status status =
      read_speculative_params(*object, "'speculative'", speculative, fields.notes());
  if (!status.ok()) fields.fail(status.message());
}

// As the engine has it; here it bounds what is kept for a request before the engine sees it.
constexpr int kMaxChoices = 128;

// False for NaN too.
bool within(float value, float low, float high) { return value >= low && value <= high; }

Status check_counts(const SamplingParams& sampling) {
  if (sampling.n < 1 || sampling.n > kMaxChoices) {
    return out_of_range("n", sampling.n, "be in [1, " + std::to_string(kMaxChoices) + "]");
  }
  if (sampling.max_tokens < 1) {
    return out_of_range("max_tokens", sampling.max_tokens, "be at least 1");
  }
  if (sampling.min_tokens < 0 || sampling.min_tokens > sampling.max_tokens) {
    return out_of_range("min_tokens", sampling.min_tokens, "be in [0, max_tokens]");
  }
  for (const auto& [name, count] : {std::pair{"logprobs", sampling.logprobs},
                                    std::pair{"prompt_logprobs", sampling.prompt_logprobs}}) {
    if (count.value_or(0) < -1) {
      return out_of_range(name, *count, "be -1 (all) or at least 0");
    }
  }
  return {};
}

Status check_tokens(const SamplingParams& sampling) {
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (!within(bias, -100, 100)) {
      return out_of_range("logit_bias", bias, "be in [-100, 100]");
    }
    if (id < 0) return out_of_range("logit_bias", id, "name token ids from 0 up");
  }
  if (sampling.allowed_token_ids && sampling.allowed_token_ids->empty()) {
    return invalid_argument("allowed_token_ids must not be empty; leave it out to allow all");
  }
  for (const std::string& word : sampling.bad_words) {
    if (word.empty()) return invalid_argument("bad_words must not hold an empty string");
  }
  for (const std::string& stop : sampling.stop) {
    if (stop.empty()) return invalid_argument("stop must not hold an empty string");
  }
  if (!sampling.stop.empty() && !sampling.detokenize) {
    return invalid_argument("stop strings need text; leave out stop or detokenize=false");
  }
  return {};
}

}  // namespace

void read_sampling_fields(JsonFields& fields, SamplingParams* sampling) {
  fields.read("n", &sampling->n);
  fields.read("max_tokens", &sampling->max_tokens);
  fields.read("min_tokens", &sampling->min_tokens);
  fields.read("temperature", &sampling->temperature);
  fields.read("top_p", &sampling->top_p);
  fields.read("top_k", &sampling->top_k);
  fields.read("min_p", &sampling->min_p);
  fields.read("presence_penalty", &sampling->presence_penalty);
  fields.read("frequency_penalty", &sampling->frequency_penalty);
  fields.read("repetition_penalty", &sampling->repetition_penalty);
  read_seed(fields, &sampling->seed);
  read_logit_bias(fields, &sampling->logit_bias);
  fields.read("bad_words", &sampling->bad_words);
  fields.read("allowed_token_ids", &sampling->allowed_token_ids);
  fields.read("stop", &sampling->stop);
  fields.read("stop_token_ids", &sampling->stop_token_ids);
  fields.read("include_stop_str_in_output", &sampling->include_stop_str_in_output);
  fields.read("ignore_eos", &sampling->ignore_eos);
  fields.read("detokenize", &sampling->detokenize);
  fields.read("skip_special_tokens", &sampling->skip_special_tokens);
  fields.read("spaces_between_special_tokens", &sampling->spaces_between_special_tokens);
}

void read_logprob_counts(JsonFields& fields, SamplingParams* sampling) {
  fields.read("logprobs", &sampling->logprobs);
  fields.read("prompt_logprobs", &sampling->prompt_logprobs);
}

// A drafter, or a list of them.
void read_drafters(JsonFields& fields, std::string* method) {
  const json* list = fields.raw("method");
  if (list == nullptr || !list->is_array()) return fields.read("method", method);
  std::string all;
  for (const json& name : *list) {
    if (!name.is_string()) return fields.wrong_type("method", "a name or a list of names", name);
    all += (all.empty() ? "" : "+") + name.get<std::string>();
  }
  if (all.empty()) return fields.wrong_type("method", "a name or a list of names", *list);
  *method = all;
}

Status read_speculative_params(const json& object, const std::string& what,
                               SpeculativeParams* speculative, FieldNotes notes) {
  JsonFields fields(object, what, notes);
  fields.read("enabled", &speculative->enabled);
  fields.read("num_speculative_tokens", &speculative->num_speculative_tokens);
  read_drafters(fields, &speculative->method);
  fields.check_unread();
  const int wanted = speculative->num_speculative_tokens.value_or(0);
  if (wanted < 0) {
    fields.fail("'num_speculative_tokens' must be at least 0, not " + std::to_string(wanted));
  }
  const bool off = fields.has("enabled") && !speculative->enabled.value_or(true);
  const char* idle = fields.has("method") ? "method" : "num_speculative_tokens";
  if (off && (fields.has("method") || (fields.has(idle) && wanted > 0))) {
    fields.fail("\"enabled\": false leaves nothing for '" + std::string(idle) +
                "'; remove one of the two");
  }
  return fields.status();
}

void read_request_fields(JsonFields& fields, Request* request) {
  fields.read("add_special_tokens", &request->add_special_tokens);
  fields.read("truncate_prompt_tokens", &request->truncate_prompt_tokens);
  const int wanted = request->truncate_prompt_tokens.value_or(-1);
  if (wanted < 1 && wanted != -1) {
    fields.fail("truncate_prompt_tokens must be -1 (as many as fit) or at least 1, not " +
                std::to_string(wanted));
  }
  fields.read("priority", &request->priority);
  fields.read("cache_salt", &request->cache_salt);
  read_speculative(fields, &request->speculative);
}

void read_prediction(JsonFields& fields, std::string* prediction) {
  const json* given = fields.raw("prediction");
  if (given == nullptr) return;
  constexpr const char* kWanted = "{\"type\": \"content\", \"content\": a text or text parts}";
  if (!given->is_object() || given->value("type", json()) != "content") {
    return fields.wrong_type("prediction", kWanted, *given);
  }
  const json content = given->value("content", json());
  if (content.is_string()) {
    *prediction = content.get<std::string>();
    return;
  }
  if (!content.is_array()) return fields.wrong_type("prediction", kWanted, *given);
  for (const json& part : content) {
    const bool typed = part.is_object() && part.value("type", json()) == "text";
    const json text = typed ? part.value("text", json()) : part;
    if (!text.is_string()) return fields.wrong_type("prediction", kWanted, part);
    *prediction += text.get<std::string>();
  }
}

Status check_sampling_ranges(const SamplingParams& sampling) {
  FT_RETURN_IF_ERROR(check_counts(sampling));
  FT_RETURN_IF_ERROR(check_sampling_numbers(sampling));
  return check_tokens(sampling);
}

}  // namespace foretoken
