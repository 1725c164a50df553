#include "compat/combination.h"

#include <algorithm>
#include <string>

#include "attention/families.h"
#include "attention/flex_choice.h"
#include "kernels/flex/flex_program.h"

namespace foretoken {
namespace {

// Null where the choice names none, or none that there is.
const AttentionBackend* chosen_backend(const AttentionChoice& choice) {
  const bool is_auto = choice.backend.empty() || choice.backend == "auto";
  return choice.has_expressions() && is_auto ? &flex_attention() : named_attention(choice.backend);
}

void add_attention(const EngineConfig& config, Combination* c) {
  const AttentionChoice choice = read_attention_choice(config.attention_backend);
  c->attention = chosen_backend(choice);
  c->batch_invariant = config.batch_invariant == "on";
  c->expressions = choice.has_expressions();
  c->kv_cache_dtype = config.kv_cache_dtype;
  if (!choice.has_expressions()) {
    c->whole_prompts = false;
    c->asks_requests = false;
    return;
  }
  const Result<FlexProgram> program = parse_flex(choice.mask, choice.score);
  if (!program.ok()) return;
  c->whole_prompts = program.value().sees_prompts;
  c->asks_requests = program.value().asks_masks || program.value().asks_scores;
}

void add_weights(const EngineConfig& config, Combination* c) {
  if (config.quantization != "none") c->quantization = config.quantization;
  if (config.load_format.starts_with("dummy-")) c->quantised_format = config.load_format;
  c->rounds_activations = config.activation_scheme != "none";
}

void add_adapters(const EngineConfig& config, Combination* c) {
  c->lora = config.enable_lora;
  c->lora_modules = !config.lora_modules.empty();
  c->lora_dtype = config.enable_lora ? config.lora_dtype : "";
  c->added_ids = added_ids_of(config);
}

void add_ranks(const EngineConfig& config, Combination* c) {
  const ParallelConfig& ranks = config.parallel;
  const int stages = std::max(ranks.pipeline_parallel_size, 1);
  c->num_ranks = ranks.tensor_parallel_size * stages;
  c->num_stages = stages;
  c->num_engines = ranks.data_parallel_size;
  c->num_hosts = ranks.nnodes;
  c->num_context_ranks = ranks.decode_context_parallel_size;
  c->expert_parallel = ranks.enable_expert_parallel;
  c->two_lanes = ranks.enable_dbo;
  c->one_process = ranks.distributed_executor_backend == "uni";
  c->server_per_host = ranks.data_parallel_hybrid_lb;
  c->server_per_engine = ranks.data_parallel_external_lb;
  c->no_server = ranks.headless;
  if (ranks.data_parallel_size_local >= 0) c->num_local_engines = ranks.data_parallel_size_local;
  c->uses_mpi = ranks.communicator == "mpi";
}

void add_drafts(const EngineConfig& config, Combination* c) {
  c->drafts = !config.speculative.empty();
  c->is_synthetic = c->drafts && config.speculative.front().rejection_sample_method == "synthetic";
  c->step_time_table = !config.step_time_table.empty();
  if (config.max_num_batched_tokens > 0) c->max_rows = config.max_num_batched_tokens;
}

}  // namespace

void add_config(const EngineConfig& config, Combination* c) {
  c->device = find_device_type(config.device);
  c->files = config.model.empty() ? "the model" : config.model;
  c->block_size = config.block_size;
  if (c->model) c->model->block_size = config.block_size;
  add_attention(config, c);
  add_weights(config, c);
  add_adapters(config, c);
  add_ranks(config, c);
  add_drafts(config, c);
  if (config.skip_tokenizer_init) c->has_tokenizer = false;
  c->has_profile = !config.profile.empty();
  c->host_blocks = config.kv_offloading_size > 0 || config.kv_offloading_tokens > 0;
  c->prefix_caching = config.enable_prefix_caching;
}

int added_ids_of(const EngineConfig& config) {
  return config.enable_lora && config.lora_modules_to_save ? config.lora_extra_vocab_size : 0;
}

Combination combination_of(const EngineConfig& config) {
  Combination c;
  add_config(config, &c);
  return c;
}

}  // namespace foretoken
