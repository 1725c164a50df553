#pragma once
#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "apps/options/engine_options.h"
#include "base/result.h"
#include "http/server/server.h"
#include "serve/flow/serve_context.h"

namespace foretoken {

// The flags of `foretoken serve`, named as vLLM's.
struct ServeOptions {
  EngineOptions engine;
  http::ServerConfig http;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::string allowed_origins;  // JSON lists
  std::string allowed_methods;
  std::string allowed_headers;
  ServeConfig serve;
  std::vector<std::string> served_model_names;
  std::string chat_template_kwargs;  // a JSON object
  std::string pooling = "auto";
  std::string pooler_config;     // a JSON object, as vLLM takes it
  std::string metrics = "none";  // of speculation, for each request
  bool auto_tool_choice = true;
  bool log_requests = false;
  bool access_log = true;
  bool ssl_refresh = false;
  bool port_per_engine = false;
  double shutdown_timeout = 30;
  int sse_keep_alive = 0;  // seconds
  std::string otlp_traces_endpoint;
  std::vector<std::string> detailed_traces;
  std::string config_file;

  // They write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);

  // What can be said against them before a model is loaded; fills in what several flags make
  // together. `config` is the engine's.
  Status finish(const EngineConfig& config);
  std::chrono::milliseconds drain_deadline() const;
};

}  // namespace foretoken
