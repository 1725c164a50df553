#pragma once
#include <foretoken/config.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/server/server.h"

namespace foretoken {

// The variables of this process whose names begin with VLLM_, and llama-server's: LLAMA_ARG_... and
// LLAMA_API_KEY.
std::map<std::string, std::string> vllm_variables();

// Whether clients may load and unload adapters: VLLM_ALLOW_RUNTIME_LORA_UPDATING is 1 or true.
bool allows_runtime_adapters(const std::map<std::string, std::string>& variables);

// What they ask for, as far as nothing else was said: VLLM_LOGGING_LEVEL, VLLM_CPU_KVCACHE_SPACE
// (GiB), VLLM_BATCH_INVARIANT and VLLM_HTTP_TIMEOUT_KEEP_ALIVE (seconds). VLLM_API_KEY is read with
// the other keys. Each further one, all of llama-server's among them, becomes a sentence in
// `warnings`, but for those that Kubernetes makes for a service named "vllm". InvalidArgument for a
// value that makes no sense.
Status apply_vllm_variables(const std::map<std::string, std::string>& variables,
                            EngineConfig* engine, http::ServerConfig* http, std::string* log_level,
                            std::vector<std::string>* warnings);

}  // namespace foretoken
