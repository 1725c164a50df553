#include "serve/openai/stream_options.h"

namespace foretoken {

void read_stream(JsonFields& fields, const OpenAiDefaults& defaults, OpenAiRequest* request) {
  request->include_usage = defaults.force_include_usage;
  request->continuous_usage = defaults.force_include_usage;
  request->stream_interval = defaults.stream_interval;
  fields.read("stream", &request->stream);
  fields.read("stream_interval", &request->stream_interval);
  if (request->stream_interval < 1) fields.fail("'stream_interval' must be at least 1");
  const nlohmann::ordered_json* options = fields.raw("stream_options");
  if (options == nullptr) return;
  // As in vLLM, an empty object asks for nothing.
  if (!options->is_object() || (!request->stream && !options->empty())) {
    return fields.fail("'stream_options' must be an object and needs \"stream\": true");
  }
  JsonFields inner(*options, "'stream_options'", fields.notes());
  bool at_end = false;
  bool in_each = false;
  inner.read("include_usage", &at_end);
  inner.read("continuous_usage_stats", &in_each);
  inner.ignore({"include_obfuscation"});
  inner.check_unread();
  if (!inner.status().ok()) fields.fail(inner.status().message());
  // As in vLLM, usage in each chunk is a manner of the usage at the end.
  request->include_usage |= at_end;
  request->continuous_usage |= at_end && in_each;
}

}  // namespace foretoken
