#pragma once
#include <foretoken/engine.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "http/message/exchange.h"
#include "serve/answer/serve_error.h"
#include "serve/fields/request_warnings.h"
#include "serve/flow/conversation_store.h"
#include "serve/flow/generation.h"
#include "serve/flow/generation_list.h"
#include "serve/flow/keep_alive.h"
#include "serve/flow/request_gate.h"
#include "serve/flow/response_store.h"
#include "serve/flow/work_pool.h"
#include "serve/metrics/serve_observer.h"
#include "serve/openai/openai_request.h"
#include "serve/openai/openai_response.h"
#include "serve/openai/served_adapters.h"
#include "serve/traces/request_tracer.h"

namespace foretoken {

// What whoever starts a server says about it; what the engine knows is asked of the engine.
struct ServeConfig {
  std::vector<std::string> model_names;  // the first is the name that answers have
  // Names that requests may use beside those, kAnyModel for all.
  std::vector<std::string> model_aliases;
  std::string model_folder;  // with tokenizer_config.json, for /tokenizer_info
  AnswerSettings answers;
  GateLimits limits;                   // max_num_seqs is filled in from the engine
  int num_threads = 2;                 // of the pool
  size_t max_queued_bodies = 4096;     // requests that wait for a thread of it
  size_t max_stored_responses = 1024;  // of /v1/responses, and as many conversations
  bool speculation_metrics = false;    // of each request
  bool tokenizer_info = false;         // serve /tokenizer_info
  bool runtime_adapters = false;       // clients may load and unload adapters
  bool needs_key = false;              // the server has API keys; for /openapi.json
  // Streams that are silent for so long get a comment; 0: never.
  std::chrono::milliseconds keep_alive{0};
  std::optional<TraceOptions> traces;  // none: no spans are made
  ServeObserver observer;
};

// What all handlers share. Handlers run on threads of the connections and of the pool.
class ServeContext {
 public:
  // The engine ends last, or before it with nothing running.
  ServeContext(Engine& engine_of, ServeConfig config_of);
  // Ends what runs and waits for the engine's last word about it; the server is stopped before.
  ~ServeContext();

  Engine& engine;
  const ServeConfig config;
  ServedAdapters adapters;
  const OpenAiDefaults defaults;  // of `config`, `engine` and its adapters
  RequestGate gate;
  GenerationList generations;
  KeepAlive keep_alive;
  ResponseStore responses;
  ConversationStore conversations;  // of /v1/conversations
  ResponseStore threads;  // conversations of /v1/messages, by the ids of their last messages
  WarningLog warning_log;
  const int64_t created;  // seconds since 1970 at the start
  std::atomic<int> num_cache_resets{0};
  std::stop_source sleeps_end;  // recalls calls that wait to put the engine to sleep
  // Threads of calls to sleep, which may wait for requests that need the pool, and of those to wake
  // up, for which they would wait.
  WorkPool sleeps, wakes;
  WorkPool pool;  // ends first

  // Ends the threads that call the engine, and recalls calls to sleep that wait.
  void stop_work();
  // Requests from now on find nothing that was cached before.
  void reset_prefix_cache() { num_cache_resets.fetch_add(1); }
  // The salt of a request that wishes for `salt`.
  std::string cache_salt(const std::string& salt) const;

  const std::string& model_name() const { return config.model_names.front(); }
  Generation::Parts parts() { return {engine, pool, generations, config.observer}; }
};

using Body = nlohmann::ordered_json;
// The body of an error, in the protocol of an endpoint.
using ErrorText = std::function<nlohmann::ordered_json(const ServeError&)>;
// Answers a request on a thread of the pool; an error that it returns is answered for it.
using BodyHandler =
    std::function<Status(ServeContext&, const std::shared_ptr<http::Exchange>&, Body)>;

// A handler that parses the body on the pool and calls `handle` there. A body that is no JSON
// object, a full pool and exceptions are answered in the form of `error_text`.
http::Handler on_pool(ServeContext& context, ErrorText error_text, BodyHandler handle);

void respond_json(http::Exchange& exchange, int status, const nlohmann::ordered_json& body,
                  http::Headers headers = {});
// 200, with `warnings` in the answer, a header and the log.
void respond_with_warnings(ServeContext& context, http::Exchange& exchange,
                           nlohmann::ordered_json body, const std::vector<std::string>& warnings);
// With "Retry-After" where the error has one.
void respond_error(http::Exchange& exchange, const ErrorText& error_text, const ServeError& error);

// A text request that is ready to run.
struct PreparedText {
  RequestGate::Ticket ticket;
  PromptTexts prompts;        // where they are echoed
  RequestOrigin origin = {};  // of one that nobody waits for
};

// Renders, tokenizes and counts the prompts of `request`, whose prompt_token_ids are filled in, and
// asks the gate.
ServeResult<PreparedText> prepare_text(ServeContext& context, OpenAiRequest* request);

// The ids of a request's text, or the error of one that is longer than --max-model-len and is not
// truncated.
Status encode_prompt_of(const Engine& engine, const Request& request, std::vector<int32_t>* ids);

// The ids of a text whose tokens are counted and not run. InvalidArgument where these are more than
// 64 times --max-model-len, which is told without reading it whole.
Status encode_bounded(const Engine& engine, const std::string& text, bool add_special_tokens,
                      std::vector<int32_t>* ids);

// From now on the observer is told of searches for tool calls in the answer to `request`.
// `request_type`: as in ToolParse.
void watch_tool_calls(const ServeContext& context, const char* request_type,
                      OpenAiRequest* request);

// The prefix ("chatcmpl-") and the id that the client or the server gave the request.
std::string answer_id(const std::string& prefix, const std::string& wish,
                      const http::Exchange& exchange);

// What an answer says about itself, for a request that may draft.
OpenAiLabel make_label(const ServeContext& context, std::string id, const OpenAiRequest& request);

int64_t unix_seconds();

}  // namespace foretoken
