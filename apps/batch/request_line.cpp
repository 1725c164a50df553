#include "apps/options/prompt_item.h"
#include "config/sampling_ranges.h"
#include "serve/answer/chat_messages.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/sampling_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The flags' variables for the template with the line's own over them.
void read_template_arguments(JsonFields& fields, PromptItem* item) {
  json arguments =
      item->arguments_json.empty() ? json::object() : json::parse(item->arguments_json);
  if (const json* more = fields.raw("chat_template_kwargs"); more != nullptr) {
    if (!more->is_object()) return fields.wrong_type("chat_template_kwargs", "an object", *more);
    arguments.update(*more);
  }
  for (const char* name : {"tools", "documents"}) {
    const json* list = fields.raw(name);
    if (list == nullptr) continue;
    if (!list->is_array()) return fields.wrong_type(name, "an array of objects", *list);
    arguments[name] = *list;
  }
  for (const char* name : {"add_generation_prompt", "continue_final_message"}) {
    bool value = false;
    fields.read(name, &value);
    if (fields.has(name)) arguments[name] = value;
  }
  item->arguments_json = arguments.empty() ? std::string() : arguments.dump();
}

void read_prompt(JsonFields& fields, PromptItem* item) {
  const int given = fields.has("prompt") + fields.has("prompt_token_ids") + fields.has("messages");
  if (given != 1) {
    fields.fail("give exactly one of 'prompt', 'prompt_token_ids' and 'messages'");
  }
  fields.read("prompt", &item->request.prompt);
  fields.read("prompt_token_ids", &item->request.prompt_token_ids);
  if (const json* messages = fields.raw("messages"); messages != nullptr) {
    const Result<json> normal = normalise_messages(*messages);
    if (!normal.ok()) return fields.fail(normal.status().message());
    item->messages_json = normal.value().dump();
  }
  read_template_arguments(fields, item);
}

void read_name(JsonFields& fields, std::string* request_id) {
  fields.read("request_id", request_id);
  for (const char* alias : {"custom_id", "id"}) {
    if (request_id->empty()) fields.read(alias, request_id);
  }
  fields.ignore({"custom_id", "id", "category", "metadata", "model"});
}

void read_pooling(JsonFields& fields, Request* request) {
  fields.read("normalize", &request->normalize);
  std::string name;
  fields.read("pooling", &name);
  if (name.empty()) return;
  const Result<Pooling> pooling = parse_pooling(name);
  if (!pooling.ok()) return fields.fail(pooling.status().message());
  request->pooling = pooling.value();
}

// The line's sampling over the flags', as far as it can be judged before a model is there.
Status check_sampling(JsonFields& fields, const SamplingFlags& flags, const PromptItem& item) {
  SamplingParams sampling;
  if (!flags.fields.contains("max_tokens")) sampling.max_tokens = INT32_MAX;
  FT_RETURN_IF_ERROR(flags.apply(&sampling));
  read_sampling_fields(fields, &sampling);
  read_logprob_counts(fields, &sampling);
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  const Status status = check_sampling_ranges(sampling);
  return status.ok() ? status : Status(status.code(), item.origin + ": " + status.message());
}

Status read_item(const json& object, const SamplingFlags& flags, PromptItem* item) {
  JsonFields fields(object, item->origin);
  read_prompt(fields, item);
  read_request_fields(fields, &item->request);
  read_pooling(fields, &item->request);
  fields.read("prompt_name", &item->prompt_name);
  read_name(fields, &item->request.request_id);
  return check_sampling(fields, flags, *item);
}

}  // namespace

PromptItem parse_request_line(const std::string& line, const std::string& origin,
                              const PromptSources& shared) {
  PromptItem item;
  item.origin = origin;
  item.request = shared.request;
  item.arguments_json = shared.arguments_json;
  item.prompt_name = shared.prompt_name;
  Result<json> object = parse_ordered_json_object(line, origin);
  item.error = object.ok() ? read_item(object.value(), shared.sampling, &item) : object.status();
  if (!item.error.ok()) return item;
  item.line = std::move(object).value();
  for (const char* large : {"prompt", "prompt_token_ids", "messages", "documents", "tools"}) {
    item.line.erase(large);
  }
  return item;
}

}  // namespace foretoken
