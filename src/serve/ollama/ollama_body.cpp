#include "serve/ollama/ollama_body.h"

#include <algorithm>
#include <utility>

#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Whether a value asks for nothing: null, "", [] or {}.
bool is_nothing(const json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_structured() && value.empty());
}

// Whether the field is there and asks for something.
bool asks(const json& body, const char* name) {
  const auto found = body.find(name);
  return found != body.end() && !is_nothing(*found);
}

// "keep_alive": 0, "0", "0s", ...: the model is given up.
bool is_zero_duration(const json& body) {
  const auto found = body.find("keep_alive");
  if (found == body.end()) return false;
  if (found->is_number()) return *found == 0;
  if (!found->is_string()) return false;
  const std::string& text = found->get_ref<const std::string&>();
  return text.starts_with('0') && text.find_first_of("123456789") == std::string::npos;
}

// What is true of every request: the context is the server's.
void read_context(int max_model_len, OllamaBody* read) {
  for (const char* name : {"truncate", "shift", "keep_alive"}) read->openai.erase(name);
  const auto options = read->openai.find("options");
  if (options == read->openai.end() || !options->is_object()) return;
  const auto length = options->find("num_ctx");
  if (length == options->end()) return;
  if (length->is_number() && *length > max_model_len) {
    read->warnings.push_back("'options': 'num_ctx' is more than the context of " +
                             std::to_string(max_model_len) +
                             " tokens that the server was started with (--max-model-len)");
  }
  options->erase(length);
}

Result<bool> truncates(const json& body) {
  bool truncate = true;
  JsonFields fields(body, "");
  fields.read("truncate", &truncate);
  FT_RETURN_IF_ERROR(fields.status());
  return truncate;
}

void read_common(const json& body, int max_model_len, OllamaBody* read) {
  read->openai = body;
  for (const char* name : {"format", "images", "system", "template", "context", "suffix"}) {
    if (!asks(body, name)) read->openai.erase(name);
  }
  if (const auto model = body.find("model"); model != body.end() && model->is_string()) {
    read->model = model->get<std::string>();
  }
  const auto stream = body.find("stream");
  if (stream == body.end() || stream->is_null()) read->openai["stream"] = true;
  read->keeps_model = !is_zero_duration(body);
  read_context(max_model_len, read);
}

// A message in OpenAI's words.
Status turn_message(size_t index, json* message) {
  if (!message->is_object()) return {};
  if (asks(*message, "images")) {
    return unsupported("message " + std::to_string(index) +
                       ": images are not read here, texts alone; leave 'images' out");
  }
  message->erase("images");
  if (const auto thinking = message->find("thinking"); thinking != message->end()) {
    if (!is_nothing(*thinking)) (*message)["reasoning_content"] = *thinking;
    message->erase("thinking");
  }
  if (const auto name = message->find("tool_name"); name != message->end()) {
    if (!is_nothing(*name)) (*message)["name"] = *name;
    message->erase("tool_name");
  }
  return {};
}

// A completion has as many log-probabilities as the body asks for alternatives, and, as with
// Ollama, any length.
void finish_completion(json* openai) {
  for (const char* name : {"think", "system", "raw"}) openai->erase(name);
  const json wanted = openai->value("logprobs", json());
  const json top = openai->value("top_logprobs", json(0));
  openai->erase("logprobs");
  openai->erase("top_logprobs");
  if (wanted == true) (*openai)["logprobs"] = top;
  const json options = openai->value("options", json());
  const bool has_length = options.is_object() && options.contains("num_predict");
  if (!has_length) (*openai)["max_tokens"] = -1;
}

void finish_chat(json* openai) {
  json messages = json::array();
  if (openai->contains("system")) {
    messages.push_back({{"role", "system"}, {"content", (*openai)["system"]}});
  }
  messages.push_back({{"role", "user"}, {"content", (*openai)["prompt"]}});
  for (const char* name : {"system", "prompt", "raw"}) openai->erase(name);
  (*openai)["messages"] = std::move(messages);
}

Status refuse_foreign(const json& body) {
  JsonFields fields(body, "");
  fields.refuse({{"images", "texts alone are read here"},
                 {"template", "send \"raw\": true with the whole prompt"},
                 {"context", "send the conversation as 'messages' to /api/chat"}});
  return fields.status();
}

}  // namespace

Result<OllamaBody> read_ollama_chat(const json& body, int max_model_len) {
  OllamaBody read;
  read_common(body, max_model_len, &read);
  if (!asks(body, "messages")) {
    read.is_empty = true;
    return read;
  }
  json& messages = read.openai["messages"];
  for (size_t i = 0; messages.is_array() && i < messages.size(); ++i) {
    FT_RETURN_IF_ERROR(turn_message(i, &messages[i]));
  }
  FT_ASSIGN_OR_RETURN(read.drops_oldest, truncates(body));
  return read;
}

Result<OllamaBody> read_ollama_generate(const json& body, bool has_template, int max_model_len) {
  OllamaBody read;
  FT_RETURN_IF_ERROR(refuse_foreign(body));
  read_common(body, max_model_len, &read);
  if (!asks(body, "prompt") && !asks(body, "suffix")) {
    read.is_empty = true;
    return read;
  }
  bool raw = false;
  JsonFields fields(body, "");
  fields.read("raw", &raw);
  FT_RETURN_IF_ERROR(fields.status());
  const bool is_chat = has_template && !raw && !asks(body, "suffix");
  read.kind = is_chat ? OpenAiKind::kChat : OpenAiKind::kCompletion;
  is_chat ? finish_chat(&read.openai) : finish_completion(&read.openai);
  return read;
}

Result<OllamaBody> read_ollama_embed(const json& body, int max_model_len) {
  OllamaBody read;
  read_common(body, max_model_len, &read);
  read.kind = OpenAiKind::kEmbedding;
  for (const char* name : {"stream", "options"}) read.openai.erase(name);
  if (const auto prompt = body.find("prompt"); prompt != body.end()) {
    read.openai["input"] = *prompt;
    read.openai.erase("prompt");
  }
  // Longer texts are cut at their end unless the body says no.
  FT_ASSIGN_OR_RETURN(const bool cuts, truncates(body));
  if (cuts) read.openai["truncate_prompt_tokens"] = -1;
  read.is_empty = !asks(read.openai, "input");
  return read;
}

bool is_openais_chat(const json& body) {
  constexpr const char* kOpenAis[] = {"max_tokens",      "max_completion_tokens", "stream_options",
                                      "response_format", "tool_choice",           "n"};
  return std::ranges::any_of(kOpenAis, [&](const char* name) { return body.contains(name); });
}

std::string without_latest(const std::string& name) {
  constexpr std::string_view kLatest = ":latest";
  return name.ends_with(kLatest) ? name.substr(0, name.size() - kLatest.size()) : name;
}

}  // namespace foretoken
