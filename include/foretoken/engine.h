#pragma once
#include <foretoken/chat_template.h>
#include <foretoken/config.h>
#include <foretoken/request.h>
#include <foretoken/status.h>

#include <array>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace foretoken {

// Where the time of steps went, in nanoseconds, summed since the engine started. "Gap": between
// steps of which the second was planned as soon as it could be, with a request at hand.
struct StepTiming {
  // The device, by its own clock.
  int64_t num_steps = 0;
  int64_t device_ns = 0;    // from the begin of a step to its end, drafts included
  int64_t draft_ns = 0;     // of these, after the result was on its way to the host
  int64_t exchange_ns = 0;  // of all steps, in collectives of rank 0 on a CPU, its waiting included
  int64_t num_gaps = 0;
  int64_t idle_ns = 0;         // of the device in gaps
  int64_t idle_median_ns = 0;  // of a gap, within 10 %
  int64_t idle_p99_ns = 0;
  // The engine thread.
  int64_t num_planned = 0;
  int64_t plan_ns = 0;  // what runs next, with lengths of drafts
  int64_t encode_ns = 0;
  int64_t submit_ns = 0;
  int64_t wait_ns = 0;  // for results
  int64_t reconcile_ns = 0;
};

// How many tokens a step computed: known ones and accepted drafts, without rejected ones.
struct StepTokens {
  static constexpr std::array<int, 13> kBounds = {1,   8,    16,   32,   64,   128,  256,
                                                  512, 1024, 2048, 4096, 8192, 16384};
  // Steps of at most kBounds[i] tokens and more than the bound before; the last: of even more.
  std::array<int64_t, kBounds.size() + 1> num_steps{};
  int64_t sum = 0;
};

// KV blocks in host memory (kv_offloading_size).
struct OffloadStats {
  int64_t num_queried_tokens = 0;  // of prompts, that the prefix cache on the device did not have
  int64_t num_hit_tokens = 0;      // of these, found in host memory
  int64_t bytes_out = 0;           // from the device to host memory, of all ranks
  int64_t bytes_in = 0;            // back
};

// Counters since the start, summed over requests, and what is so now.
struct EngineStats {
  int64_t num_steps = 0;           // of the engine, all sequences together
  int64_t num_steps_in_lanes = 0;  // of these, whose rows went in two lanes (--enable-dbo)
  int64_t num_finished_requests = 0;
  StepTiming timing;
  StepTokens step_tokens;
  RequestStats requests;
  std::vector<RequestStats> drafters;  // the same by drafter, in the order of EngineConfig
  int64_t num_running_requests = 0;    // sequences that have a slot
  int64_t num_waiting_requests = 0;    // sequences that have none, preempted ones included
  int64_t num_free_blocks = 0;
  int64_t num_total_blocks = 0;
  int64_t num_free_slots = 0;
  int64_t num_total_slots = 0;
  int sleep_level = 0;  // as of Engine::sleep; 0: it is awake
  OffloadStats offload;
  // Of several data parallel engines: each one's own, of which the above are the sums.
  std::vector<EngineStats> engines;
};

// One drafter of an engine.
struct DrafterInfo {
  std::string name;                // as requests choose it (SpeculativeParams::method)
  int num_speculative_tokens = 0;  // most drafts of a sequence and step
  bool looks_up = false;       // it finds drafts for some texts only: others may stand behind it
  bool leads = false;          // it stands before the next one in the engine's list
  int64_t kv_cache_bytes = 0;  // its share of EngineInfo::kv_cache_bytes, tap pages included
  int64_t memory_bytes = 0;    // its share of EngineInfo::drafter_bytes
};

// A part of the start-up.
struct StartPhase {
  std::string name;
  double seconds = 0;
};

// What the start-up decided, for banners and `foretoken inspect`.
// A text that a model wants before those that it embeds, by what they are for.
struct EmbeddingPrompt {
  std::string name;  // "query"
  std::string text;  // "query: "
};

struct EngineInfo {
  std::string device;
  std::string architecture;
  std::string dtype;
  std::string attention_backend;
  std::string drafter;                // names, separated by commas
  std::vector<DrafterInfo> drafters;  // in the order of EngineConfig
  std::string rejection_sample_method;
  bool has_synthetic_acceptance = false;  // texts are not the model's
  std::string step_times;  // the table that the adaptive policy reckons with, to read; or empty
  // Where it came from at start: file, cache, measured, or brief, which has small steps alone until
  // all are measured between requests; empty: no policy is adaptive.
  std::string step_times_source;
  bool batch_invariant = true;
  int64_t num_parameters = 0;
  int vocab_size = 0;
  int hidden_size = 0;
  int max_position_embeddings = 0;  // as the model was trained
  std::string bos_token;            // texts; empty: the model names none
  std::string eos_token;
  std::vector<EmbeddingPrompt> embedding_prompts;  // in the order of the model's file
  std::string embedding_prompt;  // the name of the one that goes without saying; empty: none
  // Of a model that judges texts (classification, rewards): the numbers that it gives in the place
  // of an embedding; 0: it gives embeddings. The texts of a pair follow one another with so many
  // marks between them, each of which ends the first text with its special tokens, and the ids of
  // the second one are so much higher.
  int num_labels = 0;
  int pair_marks = 0;
  int second_text_ids = 0;
  std::vector<std::string> labels;  // names of the numbers
  std::string problem_type;         // as the model's config.json has it, or empty
  // Numbers that Pooling::kTokens gives for each token: of a vector, or of labels; 0: the model has
  // none of either.
  int token_size = 0;
  bool labels_tokens = false;
  // Of a model that reads a pair as one text, with these in the places "{query}" and "{document}",
  // and gives two numbers, of yes and of no; empty: of others.
  std::string pair_template;
  int max_model_len = 0;
  int max_num_seqs = 0;
  int max_num_batched_tokens = 0;
  int max_logprobs = 0;    // most alternatives a request may ask for
  int max_new_tokens = 0;  // most tokens of any output, by generation_config.json; 0: any number
  int block_size = 0;
  int num_blocks = 0;
  int64_t weight_bytes = 0;
  int64_t kv_cache_bytes = 0;
  int64_t token_page_bytes = 0;
  int64_t block_table_bytes = 0;
  int64_t state_bytes = 0;           // of the model's recurrent layers, for max_num_seqs sequences
  int64_t num_state_snapshots = 0;   // of such states, for the prefix cache (max_state_snapshots)
  int64_t state_snapshot_bytes = 0;  // of all
  int64_t num_host_blocks = 0;       // KV blocks that host memory keeps (kv_offloading_size)
  int64_t host_block_bytes = 0;      // of one, of all ranks
  int64_t drafter_bytes = 0;         // beyond KV cache, token pages and block tables
  int64_t scratch_bytes = 0;
  double load_seconds = 0;
  int num_engines = 1;                   // data parallel; sizes and counts above are sums over them
  int first_engine = 0;                  // number of the first among those of all servers
  int ranks_per_engine = 1;              // tensor x pipeline parallel
  std::string cudagraph_mode;            // as EngineConfig, but what the attention backend allows
  int num_graphs = 0;                    // steps recorded at start
  double graph_seconds = 0;              // that this took
  std::vector<StartPhase> start_phases;  // in order; together from the call to the engine
};

// An adapter that requests may name.
struct AdapterInfo {
  std::string name;
  std::string path;
  std::string base_model_name;  // empty: that of the served model
};

// An engine that runs requests on one device. Thread-safe. Several engines can live in one process.
class Engine {
 public:
  virtual ~Engine() = default;

  // Checks the request and queues it; outputs go to `callback` until one is finished. Errors that a
  // request can cause come back here (or as a finished output with kError) and touch no other
  // request. On success `*request_id`, where given, receives the id.
  virtual Status submit(Request request, OutputCallback callback,
                        std::string* request_id = nullptr) = 0;

  // Ends a request soon with reason "abort"; unknown ids are ignored.
  virtual void abort(const std::string& request_id) = 0;

  // Runs the requests and waits for all. An output holds everything of one choice, or its error;
  // they stand in order of requests, then of choices, and every choice of a refused request has its
  // error. From inside an output callback, which it would wait for, it refuses them all.
  virtual std::vector<RequestOutput> generate(std::vector<Request> requests) = 0;

  // The same for one request, without waiting. Dropping the future does not end the request.
  virtual std::future<std::vector<RequestOutput>> generate_async(Request request) = 0;

  // Sampling parameters that the generation config asks for (temperature, top_p, top_k, min_p,
  // repetition_penalty, max_new_tokens); what it does not name has its default.
  virtual SamplingParams default_sampling_params() const = 0;

  // The prompt that the chat template makes of `messages_json`, a JSON array of {"role",
  // "content", ...}. `arguments_json`: an object with further variables (tools, documents, ...), or
  // empty; add_generation_prompt (default true unless continue_final_message) and
  // continue_final_message are understood, and the members of chat_template_kwargs are merged in.
  // Contents, calls and roles are brought into the forms that the template takes. `warnings`, where
  // given, get a sentence for each thing that the prompt lacks or has elsewhere than it was sent.
  virtual Status render_chat(const std::string& messages_json, const std::string& arguments_json,
                             std::string* prompt,
                             std::vector<std::string>* warnings = nullptr) const = 0;

  // What the chat template for requests with or without tools can do, and its source; null when the
  // model has none. It lives as long as the engine. The first call takes some milliseconds.
  virtual const ChatTemplateTraits* chat_template(bool with_tools) const = 0;

  // Text to ids and back, as the engine does it. Unsupported without a tokenizer.
  virtual Status encode(const std::string& text, bool add_special_tokens,
                        std::vector<int32_t>* ids) const = 0;
  virtual Status decode(const std::vector<int32_t>& ids, bool skip_special_tokens,
                        std::string* text) const = 0;

  // The bytes that one token stands for, which may be a part of a character. InvalidArgument for an
  // id that the vocabulary does not have.
  virtual Status token_bytes(int32_t id, std::string* bytes) const = 0;

  // Reads a PEFT folder, after which requests may name the adapter; others run on meanwhile. With
  // `replace` one of that name may be there: requests that have it keep it to their end, and
  // nothing cached under it is found again. InvalidArgument when the name is taken; NotFound
  // without the folder; Unsupported without EngineConfig::enable_lora, or for what is no plain
  // LoRA.
  virtual Status load_adapter(const LoraModule& adapter, bool replace = false);
  // Forgets an adapter; requests that have it keep it to their end. NotFound for an unknown name.
  virtual Status unload_adapter(const std::string& name);
  // In the order in which they were loaded.
  virtual std::vector<AdapterInfo> adapters() const { return {}; }

  // With EngineConfig::enable_sleep_mode: gives back the device's memory, so that others can have
  // it. Requests that are there end with "abort", or are waited for; later ones wait for wake_up.
  // Level 1 keeps weights in host memory, level 2 reads them from their files again; of both the KV
  // cache is empty afterwards, in host memory, too, and drafters know nothing of earlier texts.
  // Asleep already: at level 1 it may fall to 2. All ranks and engines do so, or none: engines that
  // have experts together wait for each other. Returns when it is so, `*bytes`, where given, being
  // those that were given back. Not from a callback. Unsupported without the field,
  // ResourceExhausted where host memory is short, Aborted where it was recalled or woken while it
  // waited for requests: it is awake then.
  virtual Status sleep(int level = 1, bool ends_requests = true, int64_t* bytes = nullptr,
                       const std::stop_token& recall = {});
  // Takes the memory again, of "weights", "kv_cache" or, without tags, of both; with both it goes
  // on. Where it is awake, a sleep() that waits for requests is recalled. ResourceExhausted where
  // others have the memory, or an error of the files: it gives back what it took, sleeps on and can
  // be woken again.
  virtual Status wake_up(const std::vector<std::string>& tags = {});

  virtual EngineStats stats() const = 0;
  bool is_sleeping() const { return stats().sleep_level > 0; }
  virtual const EngineInfo& info() const = 0;
};

// Loads the model and starts the engine's threads. On success `*engine` is set.
Status make_engine(const EngineConfig& config, std::unique_ptr<Engine>* engine);

}  // namespace foretoken
