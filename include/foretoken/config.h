#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace foretoken {

// From `first` to `last` sequences, both included: `num_speculative_tokens` drafts.
struct DraftSchedule {
  int first = 0;
  int last = 0;
  int num_speculative_tokens = 0;
};

// One drafter; fields and defaults follow vLLM's --speculative-config.
struct SpeculativeConfig {
  std::string
      method;  // ngram | draft_model | eagle | eagle3 | mtp, or an alias; empty: from `model`
  // It stands in a list before the next drafter of the engine, whose turn comes where this one
  // finds nothing, or is known to be better.
  bool leads = false;
  std::string model;  // folder or Hub id of the draft model or head; empty: the target's (mtp)
  std::string revision;
  std::string quantization;        // as EngineConfig's, of the drafter's own files
  int num_speculative_tokens = 0;  // K, 1..16
  int prompt_lookup_min = 0;       // 0: as prompt_lookup_max, or 5 when neither is set
  int prompt_lookup_max = 0;
  std::map<std::string, double> method_fields;  // numbers that the method alone reads, by name
  int max_model_len = 0;                        // of the drafter; 0: as its model allows
  int draft_tensor_parallel_size = 0;           // 0: as the target's; 1: whole on every rank
  std::string draft_sample_method = "greedy";   // greedy | probabilistic (the target's noise)
  bool use_heterogeneous_vocab = false;         // draft_model: another vocabulary, by common tokens
  int draft_vocab_size = 0;      // > 0: only so many of the likeliest tokens are drafted
  std::string draft_vocab_file;  // their ids, best first; empty: draft_vocab.txt of
                                 // the target, or the lowest ids
  // Engine-wide: drafters of one engine must agree.
  std::string length_policy = "adaptive";  // adaptive | fixed | off
  int num_branches = 0;  // other drafts beside those of sequences, in a step at most: 0..32
  std::vector<DraftSchedule> num_speculative_tokens_per_batch_size;  // instead of a policy
  std::string rejection_sample_method = "coupled";                   // coupled | synthetic
  std::vector<double> synthetic_acceptance_rates;  // unconditional, by position, not increasing
  double synthetic_acceptance_length = 0;          // instead of the rates: mean length, 1..K+1
};

// Ranks that share the work. One engine has tensor x pipeline parallel ranks; data parallel engines
// stand side by side behind one balancer.
struct ParallelConfig {
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  int data_parallel_size = 1;
  // Of these on this host; 0: a server alone, whose engines are on others; -1: all, or an equal
  // share of nnodes.
  int data_parallel_size_local = -1;
  std::string distributed_executor_backend;  // uni: threads of one process | mp: processes; empty:
                                             // uni where all ranks are on one host
  std::string communicator;  // of processes on CPUs: sockets | mpi; empty: mpi where mpirun
                             // started them and the plug-in is there
  // Whole experts of a mixture lie on the tensor parallel ranks, instead of columns of every
  // expert.
  bool enable_expert_parallel = false;
  // Ranks that would hold the same keys and values have every so-many-th position of a sequence
  // each. Divides tensor_parallel_size / heads of keys and values.
  int decode_context_parallel_size = 1;
  // Dual batch overlap: the sequences of a step of so many token rows (all decoding, or with a
  // prompt among them) go through the layers in two lanes, so that one computes while the other
  // exchanges.
  bool enable_dbo = false;
  int dbo_decode_token_threshold = 32;
  int dbo_prefill_token_threshold = 512;
  bool disable_custom_all_reduce = false;  // GPUs: NCCL even where they reach each other's memory
  bool headless = false;  // this host takes no requests but those of the host with the server
  // Ranks on several hosts: each host runs the same command with its own node_rank.
  int nnodes = 1;
  int node_rank = 0;
  std::string master_addr;  // of rank 0; empty: this host
  int master_port = 0;      // 0: 29500 between hosts, any free one on one host
  // The number of this host's first engine; -1: 0, or as node_rank says.
  int data_parallel_start_rank = -1;
  // The only engine of this server: data_parallel_external_lb and data_parallel_start_rank; -1: as
  // these say.
  int data_parallel_rank = -1;
  // Servers among which another balancer spreads requests: one for the engines of each host, or one
  // for each engine.
  bool data_parallel_hybrid_lb = false;
  bool data_parallel_external_lb = false;
};

// A low-rank adapter (LoRA) that an engine has from the start.
struct LoraModule {
  std::string name;             // as requests name it
  std::string path;             // PEFT folder with adapter_config.json
  std::string base_model_name;  // told beside the name; empty: the served model's
};

// Everything that shapes an engine. Names and defaults follow vLLM where it has them.
struct EngineConfig {
  std::string model;           // folder with config.json, *.safetensors, tokenizer.json; or Hub id
  std::string revision;        // of a Hub id: branch, tag or commit; empty: main
  std::string download_dir;    // cache of Hub files; empty: as HF_HUB_CACHE or HF_HOME say
  std::string device = "cpu";  // cpu | cuda
  int device_ordinal = 0;
  int cpu_threads = 0;         // 0: physical cores
  std::string dtype = "auto";  // auto | float32 | bfloat16
  std::string quantization;    // of weights that are not quantised: empty (none) | fp8
  std::string activation_scheme =
      "none";                           // of FP8 matrices: none | dynamic | static (rounded to FP8)
  std::string kv_cache_dtype = "auto";  // auto (the model's) | fp8 | int8
  std::string load_format = "auto";     // auto | safetensors | gguf | dummy | dummy-TYPE
  std::string hf_overrides;             // JSON object merged over config.json
  std::string generation_config = "auto";  // auto: the model's; vllm: none; or a folder
  std::string override_generation_config;  // JSON object merged over it
  std::string chat_template;               // a file, or the template itself; empty: the model's
  bool skip_tokenizer_init = false;        // true: prompts and outputs are token ids only
  std::string attention_backend;           // empty: the first that fits batch_invariant
  std::string batch_invariant = "auto";    // auto (on, or as attention_backend is) | on | off
  int max_model_len = 0;           // 0: as the model allows; -1: what memory allows ("auto")
  int max_num_seqs = 0;            // 0: 64 on CPU, 256 on CUDA
  int max_num_batched_tokens = 0;  // 0: 512 on CPU, 8192 on GPUs of 64 GiB, else 2048
  // Most tokens of a prompt that one step computes while other requests run, so that a long prompt
  // does not fill their steps; 0: any; -1: as many as take about the time of the rest of the step,
  // for prompts of more than max_num_batched_tokens / 4, at least 256, tokens.
  int long_prefill_token_threshold = -1;
  // Beside sequences that decode, a step has only so many prompt rows that it ends within this
  // time, as far as the step-time table and the steps of late tell, but at least 16; 0: no bound.
  int max_inter_token_latency_ms = 0;
  int block_size = 16;
  int num_gpu_blocks_override = 0;    // 0: from memory
  int64_t kv_cache_memory_bytes = 0;  // 0: what gpu_memory_utilization leaves
  double gpu_memory_utilization = 0.9;
  bool enable_prefix_caching = true;
  // Snapshots of recurrent layers' states, with which prefixes are found again in models that have
  // such layers; 0: none; -1: four for each of max_num_seqs, as far as 1 GiB (4 GiB on a GPU) or an
  // eighth of the free memory holds them.
  int max_state_snapshots = -1;
  // GiB of host memory, of all ranks of an engine together, that keep KV blocks which the prefix
  // cache gives up; 0: none.
  double kv_offloading_size = 0;
  int64_t kv_offloading_tokens = 0;              // the same, told by tokens; 0: by the size
  std::string kv_offloading_backend = "native";  // native, lmcache: the engine's own
  bool enable_sleep_mode = false;                // Engine::sleep
  int step_timeout_seconds = 300;  // a device that ends no step for so long has failed; 0: none
  bool enforce_eager = false;      // true: as cudagraph_mode NONE
  // Steps recorded as graphs: NONE | PIECEWISE (all but attention) | FULL | FULL_DECODE_ONLY |
  // FULL_AND_PIECEWISE (FULL where no prompt is computed).
  std::string cudagraph_mode = "FULL";
  std::vector<int> cudagraph_capture_sizes;  // token rows of graphs; empty: 1, 2, 4, ...
  int max_cudagraph_capture_size = 0;        // steps of more rows run without; 0: none
  int steps_in_flight = 2;                   // 1..3
  std::string scheduling_policy = "fcfs";    // fcfs | priority
  int max_logprobs = 20;        // most alternatives a request may ask for; -1: all; 0: none
  int max_processor_rows = 32;  // logits rows that pass logits processors at once; 0: none can
  uint64_t seed = 0;
  ParallelConfig parallel;
  bool enable_lora = false;  // requests may name adapters
  std::vector<LoraModule> lora_modules;
  int max_loras = 1;                // adapters that the sequences of a step may have together
  int max_lora_rank = 16;           // of any adapter
  int max_cpu_loras = 0;            // adapters that are kept in all; 0: any number
  std::string lora_dtype = "auto";  // auto | the model's own type
  // Adapters may have an embedding and an output matrix of their own (PEFT's modules_to_save); each
  // of max_loras places on the device has room for both.
  bool lora_modules_to_save = false;
  // Ids behind the model's that adapters may have rows for, with lora_modules_to_save.
  int lora_extra_vocab_size = 0;
  // The drafters; the first serves requests that name none. Empty: no speculation.
  std::vector<SpeculativeConfig> speculative;
  // Costs that the adaptive policy reckons with, as JSON: read where the file exists, otherwise
  // measured at start and written there; empty: found in step_time_cache, or measured.
  std::string step_time_table;
  // Folder in which measured tables are kept for later starts with the same device, model and
  // configuration; empty: nowhere.
  std::string step_time_cache;
  // Rates of acceptance are kept in that folder too, and a later engine begins with them. Not with
  // a step_time_table, synthetic acceptance or dummy weights.
  bool keep_acceptance_rates = true;
  // Without a table: true measures small steps at start, in a third of a second, and all between
  // requests, as soon as the engine has none; false measures all at start, as several ranks do.
  bool measure_when_idle = false;

  bool disable_log_stats = false;  // true: no lines about speculation in the log

  // Chrome trace of the engine's steps, written when it ends; empty: none.
  std::string profile;
  // NVTX ranges of host phases and ops, also where no profiler is attached (CUDA).
  bool enable_layerwise_nvtx_tracing = false;

  // Progress while weights load: bytes done and in all. Called by the loading thread.
  std::function<void(int64_t, int64_t)> on_load_progress;
  // Progress while a Hub model is fetched: file, bytes done and in all; once with 0 done when a
  // file becomes known. Called by download threads, never by two at once.
  std::function<void(const std::string&, int64_t, int64_t)> on_download_progress;
  // When set to true from elsewhere, loading stops with an Aborted status.
  const std::atomic<bool>* cancel_load = nullptr;
};

}  // namespace foretoken
