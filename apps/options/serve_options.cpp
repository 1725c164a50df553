#include "apps/options/serve_options.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/flags/flag_table.h"
#include "apps/options/prompt_item.h"
#include "apps/options/sampling_options.h"
#include "base/comma_list.h"
#include "base/files/json_object.h"
#include "chat/calls/chat_parser.h"
#include "chat/calls/parser_table.h"
#include "engine/start/parallel_checks.h"
#include "otlp/trace_settings.h"
#include "serve/fields/pooler_config.h"

namespace foretoken {
namespace {

void add_address_flags(CLI::App& app, ServeOptions& options) {
  http::ServerConfig& http = options.http;
  const char* group = "Server";
  app.add_option("--host", http.host, "Name or address to listen on (default: all addresses)")
      ->group(group);
  app.add_option("--port", http.port, "Port; 0: any free one")
      ->group(group)
      ->capture_default_str()
      ->check(within(0, 65535));
  app.add_flag(
         "--data-parallel-multi-port-external-lb,!--no-data-parallel-multi-port-external-lb",
         options.port_per_engine,
         "A port for each data parallel engine of this host, from --port on: what comes to it "
         "goes to that engine")
      ->group(group);
  app.add_option("--uds", http.uds, "Unix socket to listen on instead of host and port")
      ->group(group)
      ->type_name(kFileType);
  app.add_option("--api-key", options.api_keys,
                 "Key that requests must bring (Authorization: Bearer KEY, or x-api-key); several "
                 "are possible (default: FORETOKEN_API_KEY or VLLM_API_KEY; none: open to all)")
      ->group(group);
  app.add_option("--api-key-file", options.api_key_file, "File of more keys, one a line")
      ->group(group)
      ->type_name(kFileType);
  app.add_option("--root-path", http.root_path, "Prefix that a proxy leaves on paths: /llm")
      ->group(group);
  app.add_option("--http-threads", http.num_threads, "Event loops of the server")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--shutdown-timeout", options.shutdown_timeout,
                 "Seconds that running requests have to end after SIGTERM or SIGINT; a second "
                 "signal ends at once")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86400.0));
}

void add_tls_flags(CLI::App& app, ServeOptions& options) {
  const char* group = "Server";
  http::TlsConfig& tls = options.http.tls;
  app.add_option("--ssl-certfile", tls.certfile, "Certificate chain in PEM format: speak TLS")
      ->group(group)
      ->type_name(kFileType);
  app.add_option("--ssl-keyfile", tls.keyfile, "Its key (default: in --ssl-certfile)")
      ->group(group)
      ->type_name(kFileType);
  app.add_option("--ssl-keyfile-password", tls.keyfile_password, "Password of the key")
      ->group(group);
  app.add_option("--ssl-ca-certs", tls.ca_certs, "Who signs the clients' certificates")
      ->group(group)
      ->type_name(kFileType);
  app.add_option("--ssl-cert-reqs", tls.cert_reqs,
                 "A client's certificate: 0 not asked for, 1 optional, 2 required")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::Range(0, 2));
  app.add_flag("--enable-ssl-refresh,!--no-enable-ssl-refresh", options.ssl_refresh,
               "Read these files again when they change, for connections from then on")
      ->group(group);
}

void add_cors_flags(CLI::App& app, ServeOptions& options) {
  const char* group = "Server";
  const auto list = [&](const char* flag, std::string& value, const char* help) {
    app.add_option(flag, value, help)->group(group)->type_name("JSON");
  };
  list("--allowed-origins", options.allowed_origins,
       "Origins of pages that may call, as a JSON list (default: [\"*\"])");
  list("--allowed-methods", options.allowed_methods, "Methods they may use (default: [\"*\"])");
  list("--allowed-headers", options.allowed_headers, "Headers they may send (default: [\"*\"])");
  app.add_flag("--allow-credentials", options.http.cors.allow_credentials,
               "They may send credentials")
      ->group(group);
}

void add_http_limit_flags(CLI::App& app, http::ServerConfig& http) {
  const char* group = "Limits";
  app.add_option("--max-body-bytes", http.max_body_bytes, "Longest body of a request")
      ->group(group)
      ->transform(human_integer())
      ->type_name("N[k|m|g|K|M|G]")
      ->default_str(std::to_string(http.max_body_bytes));
  app.add_option("--h11-max-incomplete-event-size", http.max_header_bytes,
                 "Most bytes of a request line and its headers")
      ->group(group)
      ->capture_default_str()
      ->check(at_least(1024));
  app.add_option("--h11-max-header-count", http.max_header_count, "Most headers of a request")
      ->group(group)
      ->capture_default_str()
      ->check(at_least(1));
  app.add_option("--max-connections", http.max_connections, "Most open connections")
      ->group(group)
      ->capture_default_str()
      ->check(at_least(1));
}

void add_request_limit_flags(CLI::App& app, ServeConfig& serve) {
  const char* group = "Limits";
  GateLimits& limits = serve.limits;
  app.add_option("--max-num-queued-reqs", limits.max_num_queued_requests,
                 "Most sequences that wait for a place in a step; further requests are answered "
                 "429 (default: any)")
      ->group(group)
      ->check(at_least(0));
  app.add_option("--max-num-queued-tokens", limits.max_num_queued_tokens,
                 "Most prompt tokens of requests without a first token, likewise (default: any)")
      ->group(group)
      ->check(at_least(0))
      ->transform(human_integer())
      ->type_name("N[k|m|g|K|M|G]");
  app.add_option("--max-num-active-seqs", limits.max_num_active_seqs,
                 "Most sequences that run or wait, likewise (default: any)")
      ->group(group)
      ->check(at_least(0));
  app.add_flag("--strict-fields", serve.answers.strict_fields,
               "Refuse requests with fields that are unknown or have no effect here, which are "
               "passed over with a warning otherwise")
      ->group(group);
  app.add_option("--queue-timeout-seconds", serve.answers.queue_timeout_seconds,
                 "A request that waits longer for its first step is answered 503 (default: never)")
      ->group(group)
      ->check(CLI::NonNegativeNumber);
  app.add_option("--request-timeout-seconds", serve.answers.timeout_seconds,
                 "A request that takes longer ends with an error (default: never)")
      ->group(group)
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-stored-responses", serve.max_stored_responses,
                 "Responses of /v1/responses that are kept")
      ->group(group)
      ->capture_default_str()
      ->check(at_least(1));
}

// Names of parsers, and the two words that stand for "by the template" and "none of them".
std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.insert(names.begin(), {"auto", "none"});
  return names;
}

// What the model is called and how its texts are read.
void add_model_text_flags(CLI::App& app, ServeOptions& options) {
  const char* group = "Answers";
  AnswerSettings& answers = options.serve.answers;
  answers.tool_parser = "auto";
  answers.reasoning_parser = "auto";
  app.add_option(
         "--served-model-name", options.served_model_names,
         "Names of the model; the first is the one in answers (default: --model); '*' beside them "
         "or alone: requests may call it anything, as with llama-server")
      ->group(group);
  app.add_flag("--enable-auto-tool-choice,!--no-enable-auto-tool-choice", options.auto_tool_choice,
               "Find tool calls in texts where a request leaves the choice to the model (default: "
               "on)")
      ->group(group);
  app.add_option("--tool-call-parser", answers.tool_parser,
                 "How the model writes tool calls: auto (by its chat template), none, or " +
                     comma_list(tool_parser_names()))
      ->group(group)
      ->capture_default_str()
      ->type_name(choices_type(with_auto(tool_parser_names())));
  app.add_option("--reasoning-parser", answers.reasoning_parser,
                 "How the model marks its reasoning: auto (by its chat template), none, or " +
                     comma_list(reasoning_parser_names()))
      ->group(group)
      ->capture_default_str()
      ->type_name(choices_type(with_auto(reasoning_parser_names())));
  app.add_option("--default-chat-template-kwargs", options.chat_template_kwargs,
                 "chat_template_kwargs of requests that do not say them: {\"enable_thinking\": "
                 "false}")
      ->group(group)
      ->type_name("JSON");
}

void add_answer_flags(CLI::App& app, ServeOptions& options) {
  const char* group = "Answers";
  AnswerSettings& answers = options.serve.answers;
  app.add_option("--stream-interval", answers.stream_interval,
                 "Tokens that an event of a stream waits for, after the first")
      ->group(group)
      ->capture_default_str()
      ->check(at_least(1));
  app.add_option("--sse-keep-alive-interval", options.sse_keep_alive,
                 "Seconds of silence after which a stream has a comment, for proxies that end "
                 "silent connections; 0: never")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  app.add_flag("--strict-schemas", answers.strict_schemas,
               "Refuse JSON schemas of which a part cannot be enforced (default: the rest is "
               "enforced, with a warning)")
      ->group(group);
  app.add_flag("--enable-force-include-usage,!--no-enable-force-include-usage",
               answers.force_include_usage,
               "Every chunk of a stream has its usage so far, and a last one the whole")
      ->group(group);
  app.add_flag("--return-tokens-as-token-ids,!--no-return-tokens-as-token-ids",
               answers.tokens_as_token_ids, "Log-probabilities name tokens token_id:ID")
      ->group(group);
  app.add_option("--pooling", options.pooling,
                 "Embeddings: last, mean, cls or auto, as the model's folder says")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "last", "mean", "cls"}));
  app.add_option("--pooler-config,--override-pooler-config", options.pooler_config,
                 "The same in vLLM's form: {\"pooling_type\": \"MEAN\", \"normalize\": true}")
      ->group(group)
      ->type_name("JSON");
  add_speculation_metrics_flag(app, options.metrics);
}

void add_log_flags(CLI::App& app, ServeOptions& options) {
  const char* group = "Server";
  app.add_flag("--enable-log-requests,!--no-enable-log-requests,!--disable-log-requests",
               options.log_requests, "Log each request of the engine (default: off)")
      ->group(group);
  app.add_flag("!--disable-uvicorn-access-log,!--no-access-log", options.access_log,
               "Log no line for each answer")
      ->group(group);
  app.add_flag("--enable-request-id-headers,!--no-enable-request-id-headers",
               options.http.request_id_headers, "Answers carry X-Request-Id")
      ->group(group);
  app.add_flag("--enable-tokenizer-info-endpoint,!--no-enable-tokenizer-info-endpoint",
               options.serve.tokenizer_info, "Serve /tokenizer_info")
      ->group(group);
}

void add_trace_flags(CLI::App& app, ServeOptions& options) {
  const char* group = "Server";
  app.add_option("--otlp-traces-endpoint", options.otlp_traces_endpoint,
                 "Collector that gets a span of each request, by OTLP over HTTP: "
                 "http://localhost:4318/v1/traces (default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT; "
                 "none: there are no spans)")
      ->group(group)
      ->type_name("URL");
  app.add_option("--collect-detailed-traces", options.detailed_traces,
                 "With model, worker or all: spans of a request's parts, too")
      ->group(group)
      ->delimiter(',')
      ->check(CLI::IsMember({"model", "worker", "all", "None", "none"}));
}

Status read_traces(const ServeOptions& options, std::optional<TraceOptions>* traces) {
  FT_ASSIGN_OR_RETURN(std::optional<otlp::TraceSettings> settings,
                      otlp::read_trace_settings(options.otlp_traces_endpoint, process_environment));
  const bool detailed = std::ranges::any_of(options.detailed_traces, [](const std::string& name) {
    return name != "None" && name != "none";
  });
  if (settings) {
    *traces = TraceOptions{std::move(*settings), detailed};
  } else if (detailed) {
    return invalid_argument(
        "--collect-detailed-traces has no collector to send to; add --otlp-traces-endpoint");
  }
  return {};
}

Status read_list(const char* flag, const std::string& text, std::vector<std::string>* list) {
  if (text.empty()) return {};
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json value, parse_ordered_json(text, flag));
  const auto is_text = [](const nlohmann::ordered_json& item) { return item.is_string(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) {
    return invalid_argument(std::string(flag) + " must be a JSON list like [\"*\"], not " + text);
  }
  *list = value.get<std::vector<std::string>>();
  return {};
}

Status read_template_arguments(const std::string& text, std::string* arguments) {
  if (text.empty()) return {};
  constexpr const char* kFlag = "--default-chat-template-kwargs";
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json value, parse_ordered_json(text, kFlag));
  if (!value.is_object()) {
    return invalid_argument(std::string(kFlag) +
                            " must be a JSON object like {\"enable_thinking\": false}, not " +
                            text);
  }
  *arguments = value.dump();
  return {};
}

// "model" of requests: what was named, or the folder's path and name.
void name_model(const EngineConfig& config, const std::vector<std::string>& names,
                ServeConfig* serve) {
  const std::filesystem::path folder = std::filesystem::weakly_canonical(config.model);
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) serve->model_folder = folder.string();
  serve->model_names = names;
  const bool any = std::erase(serve->model_names, kAnyModel) > 0;
  if (serve->model_names.empty()) {
    // A folder's path says more about the machine than clients should know.
    serve->model_names = {serve->model_folder.empty() ? config.model : folder.filename().string()};
    serve->model_aliases = {config.model};
  }
  if (any) serve->model_aliases.push_back(kAnyModel);
}

}  // namespace

void ServeOptions::add_to(CLI::App& app) {
  add_address_flags(app, *this);
  add_tls_flags(app, *this);
  add_cors_flags(app, *this);
  add_log_flags(app, *this);
  add_trace_flags(app, *this);
  add_http_limit_flags(app, http);
  add_request_limit_flags(app, serve);
  add_model_text_flags(app, *this);
  add_answer_flags(app, *this);
  add_speculative_flag(app, serve.answers.speculative);
  // For the help; main takes it out before.
  app.add_option("--config", config_file, "YAML file of flags: \"max-model-len: 4096\" a line")
      ->type_name("FILE");
  engine.add_to(app);
  engine.config.keep_acceptance_rates = true;
}

Status ServeOptions::finish(const EngineConfig& config) {
  serve.answers.tool_parser = known_tool_parser(serve.answers.tool_parser);
  serve.answers.reasoning_parser = known_reasoning_parser(serve.answers.reasoning_parser);
  FT_RETURN_IF_ERROR(check_parser_names(serve.answers.tool_parser, serve.answers.reasoning_parser));
  FT_ASSIGN_OR_RETURN(serve.speculation_metrics, wants_speculation_metrics(metrics));
  FT_RETURN_IF_ERROR(read_list("--allowed-origins", allowed_origins, &http.cors.allowed_origins));
  FT_RETURN_IF_ERROR(read_list("--allowed-methods", allowed_methods, &http.cors.allowed_methods));
  FT_RETURN_IF_ERROR(read_list("--allowed-headers", allowed_headers, &http.cors.allowed_headers));
  FT_RETURN_IF_ERROR(
      read_template_arguments(chat_template_kwargs, &serve.answers.template_arguments));
  FT_ASSIGN_OR_RETURN(http.api_keys, http::ApiKeys::read(api_keys, api_key_file));
  FT_ASSIGN_OR_RETURN(serve.answers.pooling, parse_pooling(pooling));
  FT_ASSIGN_OR_RETURN(const PoolerConfig pooler,
                      read_pooler_config(pooler_config, "--pooler-config"));
  if (pooling == "auto") {
    serve.answers.pooling = pooler.pooling.value_or(serve.answers.pooling);
  }
  serve.answers.normalize = pooler.normalize.value_or(true);
  FT_RETURN_IF_ERROR(read_traces(*this, &serve.traces));
  serve.needs_key = !http.api_keys.empty();
  serve.keep_alive = std::chrono::seconds(sse_keep_alive);
  if (!auto_tool_choice || serve.answers.tool_parser == "none") serve.answers.tool_parser.clear();
  if (serve.answers.reasoning_parser == "none") serve.answers.reasoning_parser.clear();
  serve.answers.refuse_unparsed_tools = true;
  name_model(config, served_model_names, &serve);
  return {};
}

std::chrono::milliseconds ServeOptions::drain_deadline() const {
  return std::chrono::milliseconds(static_cast<int64_t>(shutdown_timeout * 1000));
}

}  // namespace foretoken
