#include "apps/flags/vllm_environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace foretoken {
namespace {

struct Hint {
  const char* name;
  const char* instead;
};

constexpr Hint kHints[] = {
    {"VLLM_ATTENTION_BACKEND", "use --attention-backend"},
    {"VLLM_CPU_OMP_THREADS_BIND", "use --cpu-threads"},
    {"VLLM_HOST_IP", "use --host"},
    {"VLLM_PORT", "use --port"},
    {"VLLM_USE_MODELSCOPE", "models come from folders and the Hugging Face Hub"},
    {"VLLM_TORCH_PROFILER_DIR", "use --profile FILE"},
    {"VLLM_CONFIGURE_LOGGING", "use --log-level"},
    {"VLLM_LOGGING_CONFIG_PATH", "use --log-level"},
    {"VLLM_ENGINE_ITERATION_TIMEOUT_S", "use --step-timeout-seconds"},
    {"VLLM_SERVER_DEV_MODE", "there are no endpoints for development"},
    {"LLAMA_API_KEY", "use --api-key or FORETOKEN_API_KEY, or the server is open to all"},
    {"LLAMA_ARG_API_KEY_FILE", "use --api-key-file"},
    {"LLAMA_ARG_MODEL", "use --model"},
    {"LLAMA_ARG_HF_REPO", "use --model org/name or org/name:Q4_K_M"},
    {"LLAMA_ARG_ALIAS", "use --served-model-name"},
    {"LLAMA_ARG_CTX_SIZE", "use --max-model-len"},
    {"LLAMA_ARG_N_PARALLEL", "use --max-num-seqs"},
    {"LLAMA_ARG_N_GPU_LAYERS", "use --device"},
    {"LLAMA_ARG_THREADS", "use --cpu-threads"},
    {"LLAMA_ARG_HOST", "use --host"},
    {"LLAMA_ARG_PORT", "use --port"},
    {"LLAMA_ARG_CHAT_TEMPLATE", "use --chat-template"},
    {"LLAMA_ARG_CHAT_TEMPLATE_FILE", "use --chat-template"},
    {"LLAMA_ARG_MODEL_DRAFT", "use --spec-method draft_model --spec-model"},
};

// Asked for silence that is kept anyway: nothing is sent anywhere.
constexpr const char* kKept[] = {"VLLM_API_KEY", "VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK",
                                 "VLLM_USAGE_SOURCE", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"};

Result<int64_t> whole_number(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && rest == text.data() + text.size() && value >= 0) return value;
  return invalid_argument(name + "=" + text + " is no whole number from 0 up; correct or unset it");
}

std::string warning(const std::string& name) {
  for (const Hint& hint : kHints) {
    if (name == hint.name) return name + " has no effect; " + hint.instead;
  }
  return name + " has no effect";
}

Status read_log_level(const std::string& text, std::string* level) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), ::tolower);
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
  if (name == "VLLM_CPU_KVCACHE_SPACE" && engine->device == "cpu") {
    FT_ASSIGN_OR_RETURN(const int64_t gib, whole_number(name, value));
    if (engine->kv_cache_memory_bytes == 0) engine->kv_cache_memory_bytes = gib << 30;
    return {};
  }
  if (name == "VLLM_HTTP_TIMEOUT_KEEP_ALIVE") {
    FT_ASSIGN_OR_RETURN(const int64_t seconds, whole_number(name, value));
    http->timeouts.keep_alive = std::chrono::seconds(seconds);
    return {};
  }
  *known = std::find(std::begin(kKept), std::end(kKept), name) != std::end(kKept);
  return {};
}

}  // namespace

std::map<std::string, std::string> vllm_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    const bool known = text.starts_with("VLLM_") || text.starts_with("LLAMA_ARG_") ||
                       text.starts_with("LLAMA_API_KEY=");
    if (!known || equals == std::string::npos) continue;
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

bool allows_runtime_adapters(const std::map<std::string, std::string>& variables) {
  const auto found = variables.find("VLLM_ALLOW_RUNTIME_LORA_UPDATING");
  if (found == variables.end()) return false;
  std::string lower = found->second;
  std::transform(lower.begin(), lower.end(), lower.begin(), ::tolower);
  return lower == "1" || lower == "true";
}

Status apply_vllm_variables(const std::map<std::string, std::string>& variables,
                            EngineConfig* engine, http::ServerConfig* http, std::string* log_level,
                            std::vector<std::string>* warnings) {
  for (const auto& [name, value] : variables) {
    if (value.empty()) continue;
    bool known = false;
    FT_RETURN_IF_ERROR(apply(name, value, engine, http, log_level, &known));
    if (!known) warnings->push_back(warning(name));
  }
  return {};
}

}  // namespace foretoken
