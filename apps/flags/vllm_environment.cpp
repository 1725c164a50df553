#include "apps/flags/vllm_environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text/ascii_text.h"
#include "config/engine_variables.h"
#include "device/device_traits.h"

namespace foretoken {
namespace {

Result<int64_t> whole_number(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && rest == text.data() + text.size() && value >= 0) return value;
  return invalid_argument(name + "=" + text + " is no whole number from 0 up; correct or unset it");
}

bool is_on(const std::string& value) { return value == "1" || lower_case(value) == "true"; }

std::string warning(const std::string& name) {
  for (const ForeignVariable& variable : foreign_variables()) {
    if (name == variable.name) return name + " has no effect; " + variable.instead;
  }
  return name + " has no effect";
}

// What Kubernetes tells each container of its services, one of which may be named "vllm":
// VLLM_SERVICE_HOST, VLLM_PORT_8000_TCP_ADDR, and an address as VLLM_PORT.
bool is_of_a_service(const std::string& name, const std::string& value) {
  constexpr std::string_view kPort = "_PORT_";
  if (name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string::npos) {
    return true;
  }
  if (name.ends_with("_PORT")) return value.starts_with("tcp://") || value.starts_with("udp://");
  const size_t port = name.find(kPort);
  if (port == std::string::npos) return false;
  const std::string_view behind = std::string_view(name).substr(port + kPort.size());
  return !behind.empty() && behind.front() >= '0' && behind.front() <= '9';
}

Status read_log_level(const std::string& text, std::string* level) {
  std::string lower = lower_case(text);
  if (lower == "critical" || lower == "fatal") lower = "error";
  if (lower == "warn") lower = "warning";
  for (const char* known : {"debug", "info", "warning", "error"}) {
    if (lower == known) {
      *level = lower;
      return {};
    }
  }
  return invalid_argument("VLLM_LOGGING_LEVEL=" + text +
                          " is unknown; use DEBUG, INFO, WARNING or ERROR");
}

Status apply(const std::string& name, const std::string& value, EngineConfig* engine,
             http::ServerConfig* http, std::string* log_level, bool* known) {
  *known = true;
  if (name == "VLLM_LOGGING_LEVEL") {
    return *log_level == "info" ? read_log_level(value, log_level) : Status();
  }
  const DeviceTraits* device = find_device_type(engine->device);
  const bool of_host = device != nullptr && device->uses_host_memory;
  if (name == "VLLM_CPU_KVCACHE_SPACE" && of_host) {
    FT_ASSIGN_OR_RETURN(const int64_t gib, whole_number(name, value));
    if (engine->kv_cache_memory_bytes == 0) engine->kv_cache_memory_bytes = gib << 30;
    return {};
  }
  if (name == "VLLM_BATCH_INVARIANT") {
    if (is_on(value) && engine->batch_invariant == "auto") engine->batch_invariant = "on";
    return {};
  }
  if (name == "VLLM_HTTP_TIMEOUT_KEEP_ALIVE") {
    FT_ASSIGN_OR_RETURN(const int64_t seconds, whole_number(name, value));
    http->timeouts.keep_alive = std::chrono::seconds(seconds);
    return {};
  }
  *known = std::ranges::find(kept_variables(), name) != kept_variables().end();
  return {};
}

}  // namespace

std::map<std::string, std::string> vllm_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    const bool known = text.starts_with("VLLM_") || text.starts_with("LLAMA_ARG_") ||
                       text.starts_with("LLAMA_API_KEY=") || text.starts_with("FORETOKEN_DEVICE=");
    if (!known || equals == std::string::npos) continue;
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

bool allows_runtime_adapters(const std::map<std::string, std::string>& variables) {
  const auto found = variables.find("VLLM_ALLOW_RUNTIME_LORA_UPDATING");
  return found != variables.end() && is_on(found->second);
}

Status apply_vllm_variables(const std::map<std::string, std::string>& variables,
                            EngineConfig* engine, http::ServerConfig* http, std::string* log_level,
                            std::vector<std::string>* warnings) {
  for (const auto& [name, value] : variables) {
    if (value.empty() || is_of_a_service(name, value)) continue;
    bool known = false;
    FT_RETURN_IF_ERROR(apply(name, value, engine, http, log_level, &known));
    if (!known) warnings->push_back(warning(name));
  }
  return {};
}

}  // namespace foretoken
