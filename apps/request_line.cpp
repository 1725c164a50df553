#include "json_fields.h"
#include "prompt_item.h"

namespace foretoken {
namespace {

void read_sampling(JsonFields& fields, SamplingParams* sampling) {
  fields.read("max_tokens", &sampling->max_tokens);
  fields.read("min_tokens", &sampling->min_tokens);
  fields.read("temperature", &sampling->temperature);
  fields.read("top_p", &sampling->top_p);
  fields.read("top_k", &sampling->top_k);
  fields.read("stop", &sampling->stop);
  fields.read("stop_token_ids", &sampling->stop_token_ids);
  fields.read("ignore_eos", &sampling->ignore_eos);
  fields.read("include_stop_str_in_output", &sampling->include_stop_str_in_output);
  fields.read("skip_special_tokens", &sampling->skip_special_tokens);
  if (fields.has("seed")) fields.read("seed", &sampling->seed.emplace());
}

Status read_speculative(JsonFields& fields, SpeculativeParams* speculative) {
  const nlohmann::json* object = fields.raw("speculative");
  if (object == nullptr) return {};
  if (!object->is_object()) {
    return invalid_argument("'speculative' must be an object like {\"enabled\": false}");
  }
  JsonFields inner(*object, "'speculative'");
  if (inner.has("enabled")) inner.read("enabled", &speculative->enabled.emplace());
  if (inner.has("num_speculative_tokens")) {
    inner.read("num_speculative_tokens", &speculative->num_speculative_tokens.emplace());
  }
  inner.raw("enabled");
  inner.raw("num_speculative_tokens");
  if (const std::string name = inner.first_unread(); !name.empty()) {
    inner.fail("'" + name + "' is unknown; known are enabled and num_speculative_tokens");
  }
  return inner.status();
}

void read_prompt(JsonFields& fields, PromptItem* item) {
  const int given = fields.has("prompt") + fields.has("prompt_token_ids") + fields.has("messages");
  if (given != 1) {
    fields.fail("give exactly one of 'prompt', 'prompt_token_ids' and 'messages'");
  }
  fields.read("prompt", &item->request.prompt);
  fields.read("prompt_token_ids", &item->request.prompt_token_ids);
  fields.read("add_special_tokens", &item->request.add_special_tokens);
  if (const nlohmann::json* messages = fields.raw("messages"); messages != nullptr) {
    if (!messages->is_array() || messages->empty()) {
      fields.fail("'messages' must be an array of {\"role\", \"content\"}");
    }
    for (const nlohmann::json& message : *messages) {
      if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
        fields.fail("each of 'messages' must be an object with a \"role\" string");
      }
    }
    item->messages_json = messages->dump();
  }
}

Status read_item(const nlohmann::json& object, PromptItem* item) {
  JsonFields fields(object, item->origin);
  read_prompt(fields, item);
  read_sampling(fields, &item->request.sampling);
  fields.read("cache_salt", &item->request.cache_salt);
  fields.read("request_id", &item->request.request_id);
  for (const char* alias : {"custom_id", "id"}) {
    if (item->request.request_id.empty()) fields.read(alias, &item->request.request_id);
  }
  for (const char* label : {"custom_id", "id", "category", "metadata", "model"}) fields.raw(label);
  if (const Status status = read_speculative(fields, &item->request.speculative); !status.ok()) {
    fields.fail(status.message());
  }
  if (const std::string name = fields.first_unread(); !name.empty()) {
    fields.fail("field '" + name + "' is unknown or not supported yet; remove it");
  }
  return fields.status();
}

}  // namespace

PromptItem parse_request_line(const std::string& line, const std::string& origin,
                              const SamplingParams& sampling) {
  PromptItem item;
  item.origin = origin;
  item.request.sampling = sampling;
  const Result<nlohmann::json> object = parse_json_object(line, origin);
  item.error = object.ok() ? read_item(object.value(), &item) : object.status();
  return item;
}

}  // namespace foretoken
