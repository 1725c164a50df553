#pragma once
#include <optional>
#include <span>
#include <string>

#include "attention/backend.h"
#include "base/result.h"
#include "device/device_traits.h"

namespace foretoken {

// What layers of a model do that not every layout has.
struct LayerNeeds {
  bool run_again = false;  // layers run several times
  bool add_later = false;  // a layer adds what the one before it left
  // Layers attend to positions that others chose, whose number is no multiple of 4.
  bool follow_indexers = false;
  bool read_other_layers = false;   // layers read others' keys
  bool read_more = false;           // and more of a token than its row
  bool has_slopes = false;          // ALiBi
  bool norm_all_heads = false;      // rows of attention are normed as one
  bool mask_by_all_values = false;  // all values of a row say how its keys count
  bool mlp_sees_all = false;        // an MLP looks at all its inner columns at once
  bool round_whole_rows = false;    // products round rows to int8 by their greatest element
  bool heads_take_turns = false;    // value heads, in the order of a GGUF file
  bool scan_selectively = false;    // Mamba 1
  int norm_groups = 0;              // linear attention norms so many parts of a row by themselves
  bool compress_positions = false;  // several positions have one entry (DeepSeek V4)
  bool has_idle_experts = false;    // experts that leave rows as they are
  bool has_narrow_experts = false;  // experts between projections of rows
};

// What an engine, or a request to it, is put together from. A part that is left out is not asked
// about. Pointers are borrowed for the call.
struct Combination {
  const DeviceTraits* device = nullptr;
  const Device* opened = nullptr;  // the device itself; null: any of its type
  const AttentionBackend* attention = nullptr;
  const AttentionDemand* model = nullptr;
  std::string kv_cache_dtype = {};  // as --kv-cache-dtype names it; with a device and a dtype
  std::optional<DType> dtype = {};  // of the model
  bool latent = false;              // its KV cache keeps latents (model/config/latent_config.h)
  bool compressed = false;          // or compressed entries (model/config/compressed_config.h)
  int32_t positions_each = 1;       // of a key that an indexer compares
  int32_t block_size = 0;           // --block-size, with positions_each
  bool batch_invariant = false;     // --batch-invariant on
  bool expressions = false;         // --flex-mask or --flex-score
  bool whole_prompts = false;       // a prompt sees itself: --flex-mask with 'prompt'

  std::string architecture = {};  // as config.json names it, to be read
  std::string files = {};         // of the model that is spoken of, to be read
  LayerNeeds layers = {};
  bool windowed = false;  // the model has layers with a window of their own blocks
  // "the model" or "a draft model", where its layers keep states of sequences; empty: none does.
  std::string states_of = {};
  bool chooses_blocks = false;  // an indexer chooses the blocks that KV heads of rows attend to
  std::optional<int> num_experts = {};           // of the model's mixture; 0: it has none
  std::string quantization = {};                 // by which weights are rounded
  std::string quantised_format = {};             // --load-format of random weights with few bits
  bool rounds_activations = false;               // --activation-scheme dynamic
  std::optional<int> num_fp8_matrices = {};      // of which the model has so many
  std::string method_flag = {};                  // "--quantization", or a drafter's field
  std::string named_method = {};                 // what it says that the files are quantised by
  std::optional<std::string> files_method = {};  // what they are quantised by; empty: not at all
  std::string lora_dtype = {};                   // as --lora-dtype names it; with a dtype
  bool lora = false;                             // --enable-lora
  bool lora_modules = false;                     // --lora-modules
  std::string matrix_outside_layers = {};        // of the model, which an adapter might change

  bool drafts = false;               // --speculative-config
  std::string drafter = {};          // its method, to be read
  bool drafts_at_once = false;       // several drafts are rows of one pass
  std::string unrounded = {};        // `quantization` of a drafter whose weights none rounds
  std::string unlike_first = {};     // a field of the engine in which drafters differ
  std::string drafter_behind = {};   // behind one in a list that always drafts
  std::string list = {};             // where that list stands, to be read
  std::string idle_field = {};       // given to a drafter that has no use for it
  std::string idle_because = {};     // why, as "which has no weights"
  std::string translators = {};      // the methods that map vocabularies, where another was to
  bool step_time_table = false;      // --step-time-table
  int num_draft_ranks = 0;           // draft_tensor_parallel_size; 0: as the target
  std::optional<int> max_rows = {};  // --max-num-batched-tokens
  bool is_synthetic = false;         // the rule `synthetic` instead of `coupled`

  // What a request asks for, and what the engine has for requests.
  bool structured_outputs = false;
  bool logits_processors = false;
  bool prompt_logprobs = false;
  std::string logprobs = {};          // "logprobs is 5", of either kind
  std::string texts = {};             // fields with words: "stop strings" or "bad_words"
  std::string speculative_wish = {};  // "speculative.enabled is true"
  std::string adapter = {};           // its name
  bool loads_adapter = false;         // while the engine runs
  int priority = 0;
  std::string beside_pooling = {};   // a field of a request that pools, and is about tokens
  bool gives_logprobs = true;        // --max-logprobs above 0
  bool keeps_processor_rows = true;  // --max-processor-rows above 0
  bool has_tokenizer = true;
  bool has_priorities = true;  // --scheduling-policy priority

  int num_ranks = 1;    // of an engine: tensor and pipeline parallel
  int num_stages = 1;   // of these, pipeline parallel
  int num_engines = 1;  // data parallel
  int num_hosts = 1;
  int num_context_ranks = 1;       // tensor parallel ranks that share the KV of a sequence
  bool expert_parallel = false;    // whole experts are dealt out to ranks
  bool two_lanes = false;          // --enable-dbo
  bool only_pieces = false;        // graphs of steps are all in pieces
  bool has_launcher = false;       // mpirun, srun or torchrun started the process
  bool one_process = false;        // --distributed-executor-backend uni
  bool uses_mpi = false;           // --communicator mpi
  std::string waiting_route = {};  // by which ranks exchange, where kernels wait for other ranks

  bool parts_of_steps = false;  // parts of steps are measured instead of steps
  bool host_alone = false;      // the host is measured, without a device
  bool has_profile = false;     // --profile
  bool host_blocks = false;     // --kv-offloading-size
  bool prefix_caching = true;   // --enable-prefix-caching

  int num_tensor_ranks() const { return num_ranks / num_stages; }
};

// A row of the table that decides: what does not go together.
struct CompatRule {
  const char* parts;  // that do not, to be read
  // kInvalidArgument where two wishes contradict each other, kUnsupported where something is not
  // built.
  StatusCode code;
  bool (*is_broken)(const Combination&);
  std::string (*sentence)(const Combination&);  // what contradicts, and what to change
  Combination example;                          // breaks this rule, and none before it
};

// All of them, in the order in which they are asked.
std::span<const CompatRule> compat_rules();

// The one place that decides what goes together: OK, or the sentence of the first rule that is
// broken. It asks for traits, never for names. Any thread.
//
// A rule joins two parts: flags, fields, a model's layers or files, ranks, a device, what a request
// asks for. What is wrong by itself has its sentence where it is read: a value out of its range, a
// file that cannot be read, a size that is no multiple of another (heads or columns by ranks, the
// width of a matrix by its blocks), fields of one JSON object, flags of one command's own.
Status compat(const Combination& c);

}  // namespace foretoken
