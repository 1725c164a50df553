#include "serve/fields/sampling_fields.h"

#include <algorithm>
#include <charconv>

#include "config/sampling_fields.h"
#include "serve/fields/lax_values.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

void read_seed(JsonFields& fields, const char* name, std::optional<uint64_t>* seed) {
  const json* value = fields.raw(name);
  if (value == nullptr) return;
  *seed = JsonFields::count_of(*value);
  if (*seed) return;
  const std::optional<json> number = lax_integer(*value);
  if (!number || !number->is_number_integer()) {
    return fields.wrong_type(name, "an integer of 64 bits (leave it out for noise of its own)",
                             *value);
  }
  // Negative ones are seeds like others; -1 stands for none, as in vLLM.
  if (*number != -1) *seed = static_cast<uint64_t>(number->get<int64_t>());
}

// {"token id": bias}, as OpenAI has it; vLLM cuts values to their range, too.
void read_biases(JsonFields& fields, const SamplingField& field,
                 std::vector<std::pair<int32_t, float>>* biases) {
  const json* value = fields.raw(field.name);
  if (value == nullptr) return;
  constexpr const char* kWanted = "an object of token ids and numbers like {\"42\": -100}";
  if (!value->is_object()) return fields.wrong_type(field.name, kWanted, *value);
  biases->clear();
  for (const auto& [key, number] : value->items()) {
    int32_t id = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = parsed.ec == std::errc() && parsed.ptr == key.data() + key.size();
    const std::optional<double> given = lax_number(number);
    if (!is_id || !given) {
      return fields.wrong_type(field.name, kWanted, json{{key, number}});
    }
    biases->emplace_back(id,
                         static_cast<float>(std::clamp(*given, field.range.low, field.range.high)));
  }
}

void read_speculative(JsonFields& fields, SpeculativeParams* speculative) {
  const json* object = fields.raw("speculative");
  if (object == nullptr) return;
  if (!object->is_object()) {
    return fields.wrong_type("speculative", "an object like {\"enabled\": false}", *object);
  }
  const Status status = read_speculative_params(*object, "'speculative'", speculative);
  if (!status.ok()) fields.fail(status.message());
}

// The member of a field; each type has its way in JSON.
template <class T>
void read_member(JsonFields& fields, const SamplingField& field, T* value) {
  fields.read(field.name, value);
}

void read_member(JsonFields& fields, const SamplingField& field, std::optional<uint64_t>* seed) {
  read_seed(fields, field.name, seed);
}

void read_member(JsonFields& fields, const SamplingField& field,
                 std::vector<std::pair<int32_t, float>>* biases) {
  read_biases(fields, field, biases);
}

// False is no log-probabilities, not the number 0 of alternatives.
bool is_none(JsonFields& fields, const char* name) {
  const json* given = fields.raw(name);
  return given != nullptr && *given == false;
}

void read_fields(JsonFields& fields, bool logprobs, SamplingParams* sampling) {
  for (const SamplingField& field : sampling_fields()) {
    if ((field.group == SamplingGroup::kLogprobs) != logprobs) continue;
    if (logprobs && is_none(fields, field.name)) continue;
    visit_sampling_member(field, *sampling,
                          [&](auto& value) { read_member(fields, field, &value); });
  }
}

}  // namespace

void read_sampling_fields(JsonFields& fields, SamplingParams* sampling) {
  read_fields(fields, false, sampling);
  // Forms of clients send what was left empty.
  if (std::erase(sampling->stop, "") > 0) {
    fields.warn("'stop' has an empty text, which ends nothing; leave it out");
  }
}

void read_logprob_count(JsonFields& fields, const char* name, std::optional<int>* count) {
  if (!is_none(fields, name)) fields.read(name, count);
}

void read_logprob_counts(JsonFields& fields, SamplingParams* sampling) {
  read_fields(fields, true, sampling);
}

// A drafter, or a list of them. An empty name goes on as one in a list, so that the engine refuses
// it with the names of its drafters.
void read_drafters(JsonFields& fields, std::string* method) {
  constexpr const char* kEmptyName = "+";
  const json* list = fields.raw("method");
  if (list == nullptr) return;
  std::string all;
  if (!list->is_array()) {
    fields.read("method", &all);
  } else if (list->empty()) {
    return fields.wrong_type("method", "a name or a list of names", *list);
  } else {
    for (const json& name : *list) {
      if (!name.is_string()) return fields.wrong_type("method", "a name or a list of names", name);
      all += (&name == &list->front() ? "" : "+") + name.get<std::string>();
    }
  }
  *method = all.empty() ? kEmptyName : all;
}

Status read_speculative_params(const json& object, const std::string& what,
                               SpeculativeParams* speculative) {
  JsonFields fields(object, what);
  fields.read("enabled", &speculative->enabled);
  fields.read("num_speculative_tokens", &speculative->num_speculative_tokens);
  read_drafters(fields, &speculative->method);
  fields.refuse_unread();
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
  std::string side;
  fields.read("truncation_side", &side);
  if (side == "left") request->truncation_side = TruncationSide::kLeft;
  if (side == "right") request->truncation_side = TruncationSide::kRight;
  if (!side.empty() && request->truncation_side == TruncationSide::kAuto) {
    fields.fail("'truncation_side' must be \"left\" or \"right\", the end that is cut");
  }
  fields.read("priority", &request->priority);
  fields.read("cache_salt", &request->cache_salt);
  fields.read("flex_mask", &request->flex_mask);
  fields.read("flex_score", &request->flex_score);
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

}  // namespace foretoken
