#include "serve/openapi/openapi.h"

#include <foretoken/version.h>

#include <span>
#include <string>

#include "serve/openapi/openapi_fields.h"
#include "serve/openapi/openapi_schemas.h"
#include "serve/openapi/openapi_scoring.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

struct Operation {
  const char* method;
  const char* path;
  const char* id;
  const char* summary;
  const char* body;    // a schema's name, or ""
  const char* answer;  // a schema's name; "": text
  bool streams = false;
  bool anthropic = false;
  bool open = false;            // needs no key
  const char* query = nullptr;  // schemas of its parameters in the address, by name
};

constexpr const char* kSleepQuery =
    R"json({"level": {"enum": [1, 2]}, "mode": {"enum": ["abort", "wait"]}})json";
constexpr const char* kWakeUpQuery =
    R"json({"tags": {"type": "array", "items": {"enum": ["weights", "kv_cache"]}}})json";

constexpr Operation kOperations[] = {
    {"post", "/v1/chat/completions", "createChatCompletion", "The answer to a chat",
     "ChatCompletionRequest", "ChatCompletion", true},
    {"post", "/v1/chat/completions/batch", "createChatBatch", "A choice for each of several chats",
     "ChatBatchRequest", "ChatCompletion"},
    {"post", "/v1/completions", "createCompletion", "Texts that go on with prompts",
     "CompletionRequest", "Completion", true},
    {"post", "/v1/embeddings", "createEmbedding", "Vectors of texts", "EmbeddingRequest",
     "Embeddings"},
    {"post", "/v1/responses", "createResponse", "A response, kept for later", "ResponsesRequest",
     "Response", true},
    {"post", "/v1/responses/input_tokens", "countResponseTokens", "Tokens of a response's prompt",
     "ResponsesRequest", "InputTokens"},
    {"post", "/v1/chat/completions/input_tokens", "countChatTokens", "Tokens of a chat's prompt",
     "ChatCompletionRequest", "InputTokens"},
    {"get", "/v1/responses/{id}", "getResponse", "A response that was kept", "", "Response"},
    {"get", "/v1/responses/{id}/input_items", "listInputItems", "What a response answers", "",
     "InputItems"},
    {"delete", "/v1/responses/{id}", "deleteResponse", "Forgets one, and ends it where it runs", "",
     "DeletedResponse"},
    {"post", "/v1/responses/{id}/cancel", "cancelResponse", "Ends one that runs in the background",
     "", "Response"},
    {"post", "/v1/conversations", "createConversation", "A conversation, kept for responses",
     "ConversationRequest", "Conversation"},
    {"get", "/v1/conversations/{id}", "getConversation", "One that was kept", "", "Conversation"},
    {"post", "/v1/conversations/{id}", "updateConversation", "Gives it other labels",
     "ConversationLabels", "Conversation"},
    {"delete", "/v1/conversations/{id}", "deleteConversation", "Forgets it with its items", "",
     "DeletedConversation"},
    {"post", "/v1/conversations/{id}/items", "createConversationItems", "Adds items at its end",
     "ConversationItemsRequest", "InputItems"},
    {"get", "/v1/conversations/{id}/items", "listConversationItems", "What was said in it", "",
     "InputItems"},
    {"get", "/v1/conversations/{id}/items/{item}", "getConversationItem", "An item of it", "",
     "ConversationItem"},
    {"delete", "/v1/conversations/{id}/items/{item}", "deleteConversationItem", "Forgets an item",
     "", "Conversation"},
    {"post", "/v1/messages", "createMessage", "Anthropic's messages", "MessagesRequest", "Message",
     true, true},
    {"post", "/v1/messages/count_tokens", "countTokens", "Tokens of a prompt", "CountRequest",
     "TokenCount", false, true},
    {"get", "/v1/models", "listModels", "The names of the model", "", "Models"},
    {"get", "/v1/models/{id}", "getModel", "One of them", "", "Model"},
    {"post", "/tokenize", "tokenize", "Token ids of a text or a chat", "TokenizeRequest", "Tokens"},
    {"post", "/detokenize", "detokenize", "The text of token ids", "DetokenizeRequest",
     "Detokenized"},
    {"post", "/v1/score", "createScore", "How near texts are, in pairs; also at /score",
     "ScoreRequest", "Scores"},
    {"post", "/generative_scoring", "createLabelScore",
     "How likely the first of some tokens comes behind texts", "LabelScoreRequest", "Scores"},
    {"post", "/v1/rerank", "createRanking",
     "Documents by their nearness to a query; also at /rerank, /v2/rerank", "RerankRequest",
     "Ranking"},
    {"post", "/pooling", "createPooling", "Vectors of texts in vLLM's form", "PoolingRequest",
     "Pooled"},
    {"post", "/completion", "createLlamaCompletion",
     "Texts that go on with prompts, in llama.cpp's form; also at /completions",
     "LlamaCompletionRequest", "LlamaCompletion", true},
    {"post", "/embedding", "createLlamaEmbedding",
     "Vectors of texts in llama.cpp's form; also at /embeddings", "LlamaEmbeddingRequest",
     "LlamaEmbeddings"},
    {"post", "/apply-template", "applyTemplate", "The prompt that a chat makes",
     "ChatCompletionRequest", "Prompt"},
    {"get", "/props", "getProps", "What the server is, in llama.cpp's form", "", "Props"},
    {"get", "/slots", "getSlots", "Sequences that may run at once", "", "Slots"},
    {"post", "/reset_prefix_cache", "resetPrefixCache",
     "Requests from now on find nothing that was cached before", "", ""},
    {"get", "/server_info", "getServerInfo", "What the engine runs with", "", "ServerInfo"},
    {"get", "/is_sleeping", "isSleeping", "Whether the engine sleeps", "", "Sleeping"},
    {"post", "/sleep", "sleep", "The engine gives back its memory until it is woken up", "",
     "Sleeping", false, false, false, kSleepQuery},
    {"post", "/wake_up", "wakeUp", "The engine takes memory again", "", "Sleeping", false, false,
     false, kWakeUpQuery},
    {"post", "/abort_requests", "abortRequests", "Ends requests with what they have",
     "AbortRequest", "Aborted"},
    {"get", "/load", "getLoad", "Requests that wait or run", "", "Load", false, false, true},
    {"get", "/version", "getVersion", "The version", "", "Version", false, false, true},
    {"get", "/health", "getHealth", "200 while the engine works", "", "", false, false, true},
    {"get", "/ping", "ping", "The same", "", "", false, false, true},
    {"post", "/ping", "postPing", "The same", "", "", false, false, true},
    {"get", "/ready", "getReady", "200 while requests are taken", "", "", false, false, true},
};

// Where there are adapters, or clients may load some.
constexpr Operation kAdapterOperations[] = {
    {"get", "/lora-adapters", "listAdapters", "The adapters, in llama.cpp's form", "", "Adapters"},
    {"post", "/lora-adapters", "chooseAdapters", "Sets the adapter of requests that name no model",
     "AdapterScales", "AdaptersChosen"},
};
// Where clients may.
constexpr Operation kRuntimeOperations[] = {
    {"post", "/v1/load_lora_adapter", "loadAdapter",
     "Reads an adapter (LoRA), whose name is a model's from then on", "LoadAdapterRequest", ""},
    {"post", "/v1/unload_lora_adapter", "unloadAdapter", "Forgets an adapter",
     "UnloadAdapterRequest", ""},
};

json reference(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

json content_of(const char* type, json schema) { return {{type, {{"schema", std::move(schema)}}}}; }

json answer_of(const Operation& operation) {
  json answer = {{"description", operation.summary}};
  if (*operation.answer == '\0') {
    answer["content"] = content_of("text/plain", {{"type", "string"}});
    return answer;
  }
  answer["content"] = content_of("application/json", reference(operation.answer));
  if (operation.streams) {
    answer["content"]["text/event-stream"] = {{"schema", reference("StreamEvent")}};
  }
  return answer;
}

constexpr const char* kNoKey = "The API key is missing or wrong";

json error_answer(const char* description, const char* schema) {
  return {{"description", description},
          {"content", content_of("application/json", reference(schema))}};
}

json errors_of(const Operation& operation, bool needs_key) {
  const char* schema = operation.anthropic ? "AnthropicError" : "Error";
  const auto error = [&](const char* text) { return error_answer(text, schema); };
  json errors = json::object();
  const bool has_body = *operation.body != '\0';
  const bool has_id = std::string(operation.path).find('{') != std::string::npos;
  if (has_body || has_id || operation.query != nullptr) {
    errors["400"] = error("The request is wrong; the message says what to change");
  }
  if (needs_key && !operation.open) errors["401"] = error(kNoKey);
  if (has_body || has_id) errors["404"] = error("There is no such model, response or conversation");
  if (has_body) {
    errors["413"] = error("The body is too long");
    errors["429"] = error("The server is full; Retry-After says when to come back");
    errors["501"] = error("The request asks for something this server does not have");
    errors["504"] = error("The request took longer than its timeout_seconds");
  }
  if (operation.query != nullptr) {
    errors["501"] = error("The engine does not sleep, or not with what it runs with");
  }
  errors["500"] = error("A defect, or a device that failed");
  errors["503"] = error("The server is busy, shuts down, or its engine has failed");
  if (*operation.answer == '\0') {
    errors["503"]["content"]["text/plain"] = {{"schema", {{"type", "string"}}}};
  }
  return errors;
}

json operation_json(const Operation& operation, bool needs_key) {
  json all = {{"operationId", operation.id}, {"summary", operation.summary}};
  for (const char* name : {"id", "item"}) {
    if (std::string(operation.path).find("{" + std::string(name)) == std::string::npos) continue;
    all["parameters"].push_back({{"name", name},
                                 {"in", "path"},
                                 {"required", true},
                                 {"schema", {{"type", "string"}, {"minLength", 1}}}});
  }
  if (operation.query != nullptr) {
    const json query = json::parse(operation.query);
    for (const auto& [name, schema] : query.items()) {
      all["parameters"].push_back({{"name", name}, {"in", "query"}, {"schema", schema}});
    }
  }
  if (*operation.body != '\0') {
    all["requestBody"] = {{"required", true},
                          {"content", content_of("application/json", reference(operation.body))}};
  }
  all["responses"] = {{"200", answer_of(operation)}};
  all["responses"].update(errors_of(operation, needs_key));
  if (needs_key && operation.open) all["security"] = json::array();
  return all;
}

json schemas(const OpenApiFacts& facts) {
  json all = {{"ChatCompletionRequest", openapi_body(kChatBody, facts)},
              {"CompletionRequest", openapi_body(kCompletionBody, facts)},
              {"EmbeddingRequest", openapi_body(kEmbeddingBody, facts)},
              {"ResponsesRequest", openapi_body(kResponsesBody, facts)},
              {"MessagesRequest", openapi_body(kMessagesBody, facts)},
              {"CountRequest", openapi_body(kCountBody, facts)},
              {"TokenizeChat", openapi_body(kTokenizeBody, facts)}};
  // A chat but for its messages, which are a list of theirs.
  json batch = all["ChatCompletionRequest"];
  json& messages = batch["properties"]["messages"];
  messages = {{"type", "array"}, {"minItems", 1}, {"items", json(messages)}};
  batch["properties"]["n"] = {{"enum", {1, nullptr}}};
  batch["properties"]["stream"] = {{"enum", {false, nullptr}}};
  for (const char* name : {"tools", "tool_choice", "stream_options"}) {
    batch["properties"].erase(name);
  }
  all["ChatBatchRequest"] = std::move(batch);
  all["TokenizeRequest"] = {
      {"anyOf",
       {reference("TokenizeText"), reference("TokenizeContent"), reference("TokenizeChat")}}};
  all.update(openapi_parts(facts));
  all.update(openapi_more_parts(facts));
  return all;
}

}  // namespace

json openapi_document(const OpenApiFacts& facts) {
  json paths = json::object();
  const auto add = [&](std::span<const Operation> operations) {
    for (const Operation& operation : operations) {
      paths[operation.path][operation.method] = operation_json(operation, facts.needs_key);
    }
  };
  add(kOperations);
  if (facts.has_adapters) add(kAdapterOperations);
  if (facts.loads_adapters) add(kRuntimeOperations);
  paths["/props"]["post"] = {
      {"operationId", "setProps"},
      {"summary", "Of llama.cpp's form; the flags of 'foretoken serve' set the properties"},
      {"responses", {{"501", error_answer("It says so", "Error")}}}};
  if (facts.needs_key) {
    paths["/props"]["post"]["responses"]["401"] = error_answer(kNoKey, "Error");
  }
  if (facts.tokenizer_info) {
    constexpr Operation kTokenizer = {
        "get", "/tokenizer_info", "getTokenizerInfo", "The tokenizer's configuration",
        "",    "Version"};
    json& get = paths[kTokenizer.path]["get"] = operation_json(kTokenizer, facts.needs_key);
    get["responses"]["200"]["content"] = content_of("application/json", {{"type", "object"}});
    get["responses"]["404"] = {{"description", "The server has no tokenizer"}};
  }
  if (facts.fills_gaps) {
    constexpr Operation kInfill = {"post",
                                   "/infill",
                                   "createInfill",
                                   "What stands between two texts",
                                   "InfillRequest",
                                   "LlamaCompletion",
                                   true};
    paths[kInfill.path]["post"] = operation_json(kInfill, facts.needs_key);
  }
  json document = {{"openapi", "3.1.0"},
                   {"info",
                    {{"title", "Foretoken"},
                     {"version", kVersion},
                     {"description", "Text generation with OpenAI's and Anthropic's APIs"}}},
                   {"paths", std::move(paths)},
                   {"components", {{"schemas", schemas(facts)}}}};
  if (facts.needs_key) {
    document["components"]["securitySchemes"] = {{"key", {{"type", "http"}, {"scheme", "bearer"}}}};
    document["security"] = {{{"key", json::array()}}};
  }
  return document;
}

}  // namespace foretoken
