#include "config/engine_variables.h"

namespace foretoken {
namespace variable_table {

constexpr ForeignVariable kTable[] = {
    {"VLLM_ATTENTION_BACKEND", "use --attention-backend"},
    {"VLLM_CPU_OMP_THREADS_BIND", "use --cpu-threads"},
    {"VLLM_HOST_IP", "use --host"},
    {"VLLM_PORT", "use --port"},
    {"VLLM_USE_MODELSCOPE", "models come from folders and the Hugging Face Hub"},
    {"VLLM_TORCH_PROFILER_DIR", "use --profile FILE"},
    {"VLLM_CONFIGURE_LOGGING", "use --log-level"},
    {"VLLM_LOGGING_CONFIG_PATH", "use --log-level"},
    {"VLLM_ENGINE_ITERATION_TIMEOUT_S", "use --step-timeout-seconds"},
    {"VLLM_ALLOW_LONG_MAX_MODEL_LEN", "use --hf-overrides '{\"max_position_embeddings\": N}'"},
    {"VLLM_TARGET_DEVICE", "use --device"},
    {"VLLM_CACHE_ROOT", "use --download-dir and --step-time-cache"},
    {"VLLM_SERVER_DEV_MODE", "there are no endpoints for development"},
    {"FORETOKEN_DEVICE", "it is read by the Python package alone; use --device"},
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

// Some ask for silence that is kept anyway, since nothing is sent anywhere; the others are read
// where they are used.
constexpr std::string_view kKept[] = {"VLLM_API_KEY",        "VLLM_NCCL_SO_PATH",
                                      "VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK",
                                      "VLLM_USAGE_SOURCE",   "VLLM_ALLOW_RUNTIME_LORA_UPDATING"};

}  // namespace variable_table

std::span<const ForeignVariable> foreign_variables() { return variable_table::kTable; }

std::span<const std::string_view> kept_variables() { return variable_table::kKept; }

}  // namespace foretoken
