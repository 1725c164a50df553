#include "bench/backend.h"

#include <algorithm>

namespace foretoken::bench {
namespace {

using nlohmann::ordered_json;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// "chat/completions" of "/v1/chat/completions".
std::string tail_of(const Backend& backend) { return std::string(backend.endpoint).substr(4); }

ordered_json prompt_value(const Sample& sample) {
  return sample.ids.empty() ? ordered_json(sample.text) : ordered_json(sample.ids);
}

ordered_json streaming() { return {{"include_usage", true}}; }

Result<ordered_json> chat_messages(const Sample& sample) {
  if (!sample.messages_json.empty()) return ordered_json::parse(sample.messages_json);
  if (!sample.ids.empty()) {
    return invalid_argument(
        "this backend takes text, not token ids; name the model's folder with --tokenizer");
  }
  return ordered_json::array({{{"role", "user"}, {"content", sample.text}}});
}

Result<ordered_json> completions_body(const Sample& sample, const SharedFields& fields) {
  if (!sample.messages_json.empty()) {
    return invalid_argument(
        "chat messages need --backend openai-chat, or a --tokenizer folder with a chat template");
  }
  ordered_json body = {{"prompt", prompt_value(sample)}, {"max_tokens", sample.output_len}};
  if (fields.logprobs) body["logprobs"] = *fields.logprobs;
  body["stream"] = true;
  body["stream_options"] = streaming();
  return body;
}

Result<ordered_json> chat_body(const Sample& sample, const SharedFields& fields) {
  FT_ASSIGN_OR_RETURN(ordered_json messages, chat_messages(sample));
  ordered_json body = {{"messages", std::move(messages)},
                       {"max_completion_tokens", sample.output_len}};
  if (fields.logprobs) {
    body["logprobs"] = true;
    body["top_logprobs"] = *fields.logprobs;
  }
  body["stream"] = true;
  body["stream_options"] = streaming();
  return body;
}

Result<ordered_json> responses_body(const Sample& sample) {
  ordered_json input = sample.text;
  if (sample.text.empty()) {
    FT_ASSIGN_OR_RETURN(input, chat_messages(sample));
  }
  // A server that keeps answers would grow with the length of the benchmark.
  return ordered_json{{"input", std::move(input)},
                      {"max_output_tokens", sample.output_len},
                      {"stream", true},
                      {"store", false}};
}

Result<ordered_json> embeddings_body(const Sample& sample) {
  if (!sample.messages_json.empty()) {
    return invalid_argument("--backend openai-embeddings takes text or token ids, not messages");
  }
  // Embedding models have short contexts; without this, long prompts would be refused.
  return ordered_json{{"input", prompt_value(sample)}, {"truncate_prompt_tokens", -1}};
}

Result<ordered_json> body_of(Protocol protocol, const Sample& sample, const SharedFields& fields) {
  switch (protocol) {
    case Protocol::kCompletions:
      return completions_body(sample, fields);
    case Protocol::kChat:
      return chat_body(sample, fields);
    case Protocol::kResponses:
      return responses_body(sample);
    case Protocol::kEmbeddings:
      return embeddings_body(sample);
  }
  return internal_error("no such protocol");
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"openai", Protocol::kCompletions, "/v1/completions"},
      {"vllm", Protocol::kCompletions, "/v1/completions"},
      {"openai-chat", Protocol::kChat, "/v1/chat/completions"},
      {"openai-responses", Protocol::kResponses, "/v1/responses"},
      {"openai-embeddings", Protocol::kEmbeddings, "/v1/embeddings"},
  };
  return all;
}

const Backend* find_backend(const std::string& name) {
  const auto found = std::find_if(backends().begin(), backends().end(),
                                  [&](const Backend& backend) { return name == backend.name; });
  return found == backends().end() ? nullptr : &*found;
}

Status check_endpoint(const Backend& backend, const std::string& endpoint) {
  const bool chat = ends_with(endpoint, "chat/completions");
  const bool fits = ends_with(endpoint, tail_of(backend)) &&
                    chat == (backend.protocol == Protocol::kChat) && endpoint.front() == '/';
  if (fits) return {};
  return invalid_argument(std::string("--backend ") + backend.name + " needs an --endpoint like " +
                          backend.endpoint + ", not '" + endpoint + "'");
}

Result<std::string> request_body(Protocol protocol, const std::string& model, const Sample& sample,
                                 const SharedFields& fields) {
  FT_ASSIGN_OR_RETURN(const ordered_json own, body_of(protocol, sample, fields));
  ordered_json body = {{"model", model}};
  body.update(own);
  if (fields.ignore_eos && protocol != Protocol::kEmbeddings) body["ignore_eos"] = true;
  body.update(fields.extra);
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace foretoken::bench
