#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/result.h"
#include "compat/drafter_traits.h"
#include "compat/fact.h"
#include "device/device_traits.h"

namespace foretoken {

// What layers of a model do that not every layout has.
struct LayerNeeds {
  // Stages that layers make at most, where not each may begin one; 0: as many as there are layers.
  int max_stages = 0;
};

// What an engine, or a request to it, is put together from: all that compat is asked about. An
// engine fills it in as it starts: from its configuration (compat/combination.h), from its model's
// (model/model_parts.h) and from a drafter's row (draft/drafter_parts.h). What is not known yet is
// null, an unknown Fact, no value or empty, and no rule goes by it. What pointers name must outlive
// the Combination and its copies; compat keeps nothing of it once it has answered.
struct Combination {
  const DeviceTraits* device = nullptr;
  const Device* opened = nullptr;  // the device itself; null: any of its type
  const AttentionBackend* attention = nullptr;
  std::optional<AttentionDemand> model = {};
  std::string kv_cache_dtype = {};  // as --kv-cache-dtype names it; with a device and a dtype
  std::optional<DType> dtype = {};  // of the model
  Fact latent = {};                 // its KV cache keeps latents (model/config/latent_config.h)
  Fact compressed = {};             // or compressed entries (model/config/compressed_config.h)
  std::optional<int> positions_each = {};  // of a key that an indexer compares
  std::optional<int> block_size = {};      // --block-size, with positions_each
  Fact batch_invariant = {};               // --batch-invariant on
  Fact expressions = {};                   // --flex-mask or --flex-score
  Fact asks_requests = {};                 // those ask what requests' own say (`request`)
  Fact whole_prompts = {};                 // a prompt sees itself: --flex-mask with 'prompt'
  Fact bidirectional = {};                 // so does every text of the model, which writes none
  Fact attends = {};                       // layers of the model attend to positions at all
  Fact keeps_states = {};                  // recurrent ones keep a state of each sequence

  std::string architecture = {};  // as config.json names it, to be read
  std::string files = {};         // of the model that is spoken of, to be read
  std::optional<LayerNeeds> layers = {};
  Fact has_windows = {};     // layers of the model see a window or a chunk alone
  Fact chooses_blocks = {};  // an indexer chooses the blocks that KV heads of rows attend to
  std::optional<int> chosen_positions = {};  // of such a block
  Fact modules_windowed = {};      // its MTP modules have layers of their own, with a window or not
  std::vector<int> kv_heads = {};  // heads of keys and values of its layers, each number once
  std::optional<int> num_heads = {};  // of queries
  std::optional<int> hidden_size = {};
  std::optional<int> num_experts = {};           // of the model's mixture; 0: it has none
  std::string load_format = {};                  // --load-format, where it says what files are
  Fact gguf = {};                                // they are a GGUF file
  std::string quantization = {};                 // by which weights are rounded
  std::string quantised_format = {};             // --load-format of random weights with few bits
  Fact rounds_activations = {};                  // --activation-scheme dynamic
  std::optional<int> num_fp8_matrices = {};      // of which the model has so many
  std::string method_flag = {};                  // "--quantization", or a drafter's field
  std::string named_method = {};                 // what it says that the files are quantised by
  std::optional<std::string> files_method = {};  // what they are quantised by; empty: not at all
  std::string lora_dtype = {};                   // as --lora-dtype names it; with a dtype
  Fact lora = {};                                // --enable-lora
  Fact lora_modules = {};                        // --lora-modules
  std::string matrix_outside_layers = {};        // of the model, which an adapter might change
  std::optional<int> added_ids = {};             // --lora-extra-vocab-size, where adapters are
  std::optional<int> own_ids = {};               // of the model's vocabulary
  Fact logits_are_plain = {};                    // neither capped nor biased nor of unit rows

  Fact drafts = {};                               // --speculative-config
  std::string drafter = {};                       // its method, to be read
  const DrafterTraits* drafter_traits = nullptr;  // of its method
  Fact drafts_by_modules = {};                    // MTP modules of the target draft
  Fact lends_elsewhere = {};                      // KV that it reads is an earlier stage's
  Fact other_vocabulary = {};                     // use_heterogeneous_vocab
  Fact draft_has_tokenizer = {};                  // beside its files
  std::string unlike_first = {};                  // a field of the engine in which drafters differ
  std::string drafter_behind = {};                // the one behind it in a list
  std::string list = {};                          // where that list stands, to be read
  std::string idle_field = {};                    // given to a drafter that has no use for it
  std::string idle_because = {};                  // why, as "which has no weights"
  Fact step_time_table = {};                      // --step-time-table
  std::optional<int> num_draft_ranks = {};        // draft_tensor_parallel_size; 0: as the target
  std::optional<int> max_rows = {};               // --max-num-batched-tokens
  Fact is_synthetic = {};                         // the rule `synthetic` instead of `coupled`
  Fact branches = {};                             // num_branches of a drafter

  // What a request asks for, and what the engine has for requests.
  Fact structured_outputs = {};
  Fact logits_processors = {};
  Fact prompt_logprobs = {};
  std::string logprobs = {};          // "logprobs is 5", of either kind
  std::string texts = {};             // what has words: "stop strings", "bad_words", "text prompts"
  Fact converts_texts = {};           // into ids or back, beside any request
  Fact chats = {};                    // messages become a prompt
  Fact fills_gaps = {};               // between two texts
  Fact model_calls_tools = {};        // where it likes: tool_choice "auto"
  std::string speculative_wish = {};  // "speculative.enabled is true"
  Fact wants_step_times = {};         // `foretoken inspect --step-times`
  std::string adapter = {};           // its name
  Fact loads_adapter = {};            // while the engine runs
  int priority = 0;
  Fact generates = {};              // it wants text
  Fact pools_tokens = {};           // it wants numbers of each token
  Fact has_token_head = {};         // which the model has
  std::string flex_wish = {};       // "flex_mask is given", or flex_score
  std::string beside_pooling = {};  // a field of a request that pools, and is about tokens
  Fact gives_logprobs = {};         // --max-logprobs above 0
  Fact keeps_processor_rows = {};   // --max-processor-rows above 0
  Fact has_tokenizer = {};
  Fact has_chat_template = {};
  Fact has_gap_tokens = {};      // its vocabulary has
  Fact finds_tool_calls = {};    // the server does, in the model's texts
  Fact reckons_with_times = {};  // it has drafters and the length policy adaptive
  Fact has_priorities = {};      // --scheduling-policy priority

  std::optional<int> num_ranks = {};    // of an engine: tensor and pipeline parallel
  std::optional<int> num_stages = {};   // of these, pipeline parallel
  std::optional<int> num_engines = {};  // data parallel
  std::optional<int> num_hosts = {};
  std::optional<int> num_context_ranks = {};  // of these, that share the KV of a sequence
  Fact expert_parallel = {};                  // whole experts are dealt out to ranks
  Fact two_lanes = {};                        // --enable-dbo
  Fact only_pieces = {};                      // graphs of steps are all in pieces
  Fact one_process = {};                      // --distributed-executor-backend uni
  Fact server_per_host = {};                  // --data-parallel-hybrid-lb
  Fact server_per_engine = {};                // --data-parallel-external-lb
  Fact no_server = {};                        // --headless
  std::optional<int> num_local_engines = {};  // of --data-parallel-size on this host, where told
  Fact uses_mpi = {};                         // --communicator mpi
  std::string waiting_route = {};  // by which ranks exchange, where kernels wait for other ranks

  Fact parts_of_steps = {};  // parts of steps are measured instead of steps
  Fact host_alone = {};      // the host is measured, without a device
  Fact has_profile = {};     // --profile
  Fact host_blocks = {};     // --kv-offloading-size
  Fact prefix_caching = {};  // --enable-prefix-caching

  // No value where the number of ranks is not known.
  std::optional<int> num_tensor_ranks() const {
    if (!num_ranks) return std::nullopt;
    return *num_ranks / num_stages.value_or(1);
  }
};

// A row of the table that decides: what does not go together.
struct CompatRule {
  std::string parts;  // that do not, to be read
  // kInvalidArgument where two wishes contradict each other, kUnsupported where something is not
  // built.
  StatusCode code;
  std::function<bool(const Combination&)> is_broken;
  std::function<std::string(const Combination&)> sentence;  // the contradiction, what to change
  Combination example;                                      // breaks this rule, none before it
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
