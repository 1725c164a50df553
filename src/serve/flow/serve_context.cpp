#include "serve/flow/serve_context.h"

#include <foretoken/prompt_length.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <exception>
#include <new>

#include "base/log.h"
#include "serve/answer/served_drafters.h"
#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

constexpr int kTooMany = 429;
constexpr int kMaxSleepCalls = 4;  // that wait at once
constexpr size_t kMaxQueuedSleepCalls = 16;

std::vector<std::string> all_names(const ServeConfig& config) {
  std::vector<std::string> names = config.model_names;
  for (const std::string& alias : config.model_aliases) {
    if (std::find(names.begin(), names.end(), alias) == names.end()) names.push_back(alias);
  }
  return names;
}

OpenAiDefaults with_adapters(OpenAiDefaults defaults, const ServedAdapters& adapters, bool come) {
  defaults.adapters_come = come;
  defaults.default_adapter = [&adapters] { return adapters.by_default(); };
  return defaults;
}

GateLimits with_seqs(GateLimits limits, const Engine& engine) {
  limits.max_num_seqs = engine.info().max_num_seqs;
  return limits;
}

// Runs a handler so that whatever happens is answered.
void handle_body(ServeContext& context, const ErrorText& error_text, const BodyHandler& handle,
                 const std::shared_ptr<http::Exchange>& exchange) {
  try {
    Result<Body> body = parse_request_body(exchange->request().body);
    const Status status =
        body.ok() ? handle(context, exchange, std::move(body).value()) : body.status();
    if (!status.ok()) respond_error(*exchange, error_text, status);
  } catch (const std::bad_alloc&) {
    respond_error(*exchange, error_text,
                  resource_exhausted("the server is out of memory for this request"));
  } catch (const std::exception& fault) {
    FT_LOG(error, "{} {}: {}", exchange->request().method, exchange->request().path, fault.what());
    respond_error(*exchange, error_text,
                  internal_error(std::string("the request failed: ") + fault.what()));
  }
}

bool is_id_character(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

ServeContext::ServeContext(Engine& engine_of, ServeConfig config_of)
    : engine(engine_of),
      config(std::move(config_of)),
      adapters(engine),
      defaults(with_adapters(make_openai_defaults(engine, config.answers, all_names(config)),
                             adapters, config.runtime_adapters)),
      gate(with_seqs(config.limits, engine)),
      keep_alive(generations, config.keep_alive),
      responses(config.max_stored_responses),
      conversations(config.max_stored_responses),
      threads(config.max_stored_responses),
      created(unix_seconds()),
      sleeps(kMaxSleepCalls, kMaxQueuedSleepCalls),
      wakes(1, kMaxQueuedSleepCalls),
      pool(config.num_threads, config.max_queued_bodies) {}

ServeContext::~ServeContext() {
  keep_alive.stop();
  for (const auto& generation : generations.all()) generation->abort();
  stop_work();
  generations.wait_destroyed();
}

void ServeContext::stop_work() {
  sleeps_end.request_stop();
  sleeps.stop();
  wakes.stop();
  pool.stop();
}

// Entries that nobody can find any more make room for others in time.
std::string ServeContext::cache_salt(const std::string& salt) const {
  const int resets = num_cache_resets.load();
  return resets == 0 ? salt : std::to_string(resets) + ":" + salt;
}

void respond_json(http::Exchange& exchange, int status, const nlohmann::ordered_json& body,
                  http::Headers headers) {
  exchange.respond(status, "application/json", json_text(body), std::move(headers));
}

void respond_with_warnings(ServeContext& context, http::Exchange& exchange,
                           nlohmann::ordered_json body, const std::vector<std::string>& warnings) {
  context.warning_log.tell(warnings);
  put_warnings(warnings, &body);
  respond_json(exchange, 200, body, warning_headers(warnings));
}

void respond_error(http::Exchange& exchange, const ErrorText& error_text, const ServeError& error) {
  http::Headers headers;
  if (error.retry_after > 0) headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  respond_json(exchange, error.http, error_text(error), std::move(headers));
}

http::Handler on_pool(ServeContext& context, ErrorText error_text, BodyHandler handle) {
  return [&context, error_text, handle](std::shared_ptr<http::Exchange> exchange) {
    const bool taken = context.pool.try_post([&context, error_text, handle, exchange] {
      if (!exchange->gone()) handle_body(context, error_text, handle, exchange);
    });
    if (taken) return;
    const Status full = resource_exhausted("too many requests wait to be read; try again later");
    respond_error(*exchange, error_text, ServeError(kTooMany, full, 1));
  };
}

Status encode_prompt_of(const Engine& engine, const Request& request, std::vector<int32_t>* ids) {
  const auto encode = [&](const std::string& text, std::vector<int32_t>* to) {
    return engine.encode(text, request.add_special_tokens, to);
  };
  if (request.truncate_prompt_tokens) return encode(request.prompt, ids);
  return encode_prompt(request.prompt, engine.info().max_model_len, encode, ids);
}

Status encode_bounded(const Engine& engine, const std::string& text, bool add_special_tokens,
                      std::vector<int32_t>* ids) {
  constexpr int64_t kTimes = 64;
  const auto most = static_cast<int>(
      std::min<int64_t>(kTimes * std::max(engine.info().max_model_len, 1), INT_MAX / 4));
  const auto encode = [&](const std::string& part, std::vector<int32_t>* to) {
    return engine.encode(part, add_special_tokens, to);
  };
  const Status status = encode_prompt(text, most, encode, ids);
  if (!is_prompt_too_long(status)) return status;
  return invalid_argument("the text has more than " + std::to_string(most) + " tokens, " +
                          std::to_string(kTimes) +
                          " times --max-model-len, the most that is counted; send it in parts");
}

ServeResult<PreparedText> prepare_text(ServeContext& context, OpenAiRequest* request) {
  if (const Status status = render_openai_prompt(context.engine, request); !status.ok()) {
    return status;
  }
  PreparedText prepared;
  int num_sequences = 0;
  int64_t num_tokens = 0;
  for (Request& one : request->requests) {
    std::vector<int32_t>& ids = one.prompt_token_ids;
    if (ids.empty() && !one.prompt.empty()) {
      const Status status = encode_prompt_of(context.engine, one, &ids);
      if (!status.ok()) return status;
    } else if (request->echo) {
      const Status status = context.engine.decode(ids, false, &one.prompt);
      if (!status.ok()) return status;
    }
    one.cache_salt = context.cache_salt(one.cache_salt);
    if (request->echo) prepared.prompts.push_back(one.prompt);
    num_sequences += std::max(one.sampling.n, 1);
    num_tokens += static_cast<int64_t>(ids.size());
  }
  ServeResult<RequestGate::Ticket> ticket = context.gate.enter(num_sequences, num_tokens);
  if (!ticket.ok()) {
    if (context.config.observer.on_rejected) {
      context.config.observer.on_rejected(context.gate.draining() ? "draining" : "capacity");
    }
    return ticket.error();
  }
  prepared.ticket = std::move(ticket.value());
  return prepared;
}

void watch_tool_calls(const ServeContext& context, const char* request_type,
                      OpenAiRequest* request) {
  const auto& tell = context.config.observer.on_tool_parse;
  if (!tell) return;
  request->on_tool_parse = [&tell, request_type, streaming = request->stream](bool found) {
    tell({request_type, streaming, found});
  };
}

std::string answer_id(const std::string& prefix, const std::string& wish,
                      const http::Exchange& exchange) {
  constexpr size_t kLongest = 128;
  std::string id;
  for (const char c : wish.empty() ? exchange.request().id : wish) {
    if (is_id_character(static_cast<unsigned char>(c)) && id.size() < kLongest) id += c;
  }
  return id.empty() ? prefix + make_openai_id("x").substr(2) : prefix + id;
}

OpenAiLabel make_label(const ServeContext& context, std::string id, const OpenAiRequest& request) {
  const EngineInfo& info = context.engine.info();
  OpenAiLabel label = {.id = std::move(id),
                       .model = request.model.empty() ? context.model_name() : request.model,
                       .created = unix_seconds(),
                       .submitted = std::chrono::steady_clock::now()};
  label.synthetic_acceptance = info.has_synthetic_acceptance;
  if (!context.config.speculation_metrics || info.drafters.empty()) return label;
  label.num_spec_tokens =
      served_drafters(info.drafters, request.requests.front().speculative.method)
          .num_speculative_tokens;
  return label;
}

int64_t unix_seconds() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
      .count();
}

}  // namespace foretoken
