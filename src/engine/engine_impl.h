#pragma once
#include <foretoken/engine.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "attention/backend.h"
#include "attention/flex_choice.h"
#include "attention/kv_cache.h"
#include "draft/parts/drafter.h"
#include "engine/engine_texts.h"
#include "engine/local_ranks.h"
#include "engine/measure/learned_rates_cache.h"
#include "engine/measure/learned_rates_keeper.h"
#include "engine/measure/start_clock.h"
#include "engine/measure/step_bench.h"
#include "engine/measure/step_profile.h"
#include "engine/measure/step_time_cache.h"
#include "engine/offload/kv_offload.h"
#include "engine/offload/state_store.h"
#include "engine/request/adapter_registry.h"
#include "engine/request/grammar_service.h"
#include "engine/request/output_processor.h"
#include "engine/request/parameters/generation_config.h"
#include "engine/request/request_builder.h"
#include "engine/sleep_state.h"
#include "engine/start/kv_budget.h"
#include "engine/start/parallel_checks.h"
#include "engine/start_barrier.h"
#include "engine/step/clocks/step_trace.h"
#include "engine/step/engine_loop.h"
#include "engine/step/model_runner.h"
#include "engine/step/plan_feed.h"
#include "engine/step/ranks.h"
#include "engine/step/step_memory.h"
#include "model/heads/judge_head.h"
#include "model/heads/row_layers.h"
#include "model/heads/token_head.h"
#include "model/registry.h"
#include "sched/scheduler.h"
#include "spec/cost_table.h"
#include "spec/length_controller.h"

namespace foretoken {

struct DrafterParts;
struct ResolvedConfig;

// Owns the parts of an engine and connects them. See include/foretoken/engine.h for the contract.
class EngineImpl final : public EngineOverTexts<EngineTexts> {
 public:
  // kIdle: without a loop and threads, for measuring steps; it takes no requests.
  enum class Start : uint8_t { kServing, kIdle };
  // `hooks` plants faults for tests. Without links the ranks that the configuration asks for are
  // threads of this process; with those of one rank this is that rank of its group, and above rank
  // 0 takes no requests; with those of all ranks the others are threads of this process. `barrier`:
  // among engines that start at the same time.
  static Result<std::unique_ptr<EngineImpl>> create(const EngineConfig& config,
                                                    const TestHooks& hooks,
                                                    Start start = Start::kServing,
                                                    std::vector<RankLinks> links = {},
                                                    StartBarrier* barrier = nullptr);
  ~EngineImpl() override;

  Status submit(Request request, OutputCallback callback, std::string* request_id) override;
  void abort(const std::string& request_id) override;
  std::vector<RequestOutput> generate(std::vector<Request> requests) override;
  std::future<std::vector<RequestOutput>> generate_async(Request request) override;
  SamplingParams default_sampling_params() const override;
  Status load_adapter(const LoraModule& adapter, bool replace) override;
  Status unload_adapter(const std::string& name) override;
  std::vector<AdapterInfo> adapters() const override;
  Status sleep(int level, bool ends_requests, int64_t* bytes,
               const std::stop_token& recall) override;
  Status wake_up(const std::vector<std::string>& tags) override;
  EngineStats stats() const override;
  const EngineInfo& info() const override { return info_; }
  // Of an idle engine, which outlives them.
  StepBenchParts bench_parts();
  // Of a rank above 0: runs rank 0's plans until they end.
  Status run_rank();

 private:
  const EngineTexts& texts() const override { return texts_; }
  EngineImpl(RankLinks links, const ParallelConfig& parallel, StartBarrier* barrier)
      : barrier_(barrier),
        ranks_(std::move(links), layout_of_engine(parallel), parallel.enable_expert_parallel,
               parallel.decode_context_parallel_size) {}
  Status start(const EngineConfig& config, const TestHooks& hooks, Start start,
               std::vector<RankLinks> other_ranks);
  Status open_device(const EngineConfig& config);
  // What start-up has found on this machine.
  struct StartFiles {
    EngineConfig config = {};  // that names them
    std::vector<std::string> drafter_folders = {};
  };
  Result<ResolvedConfig> resolve(EngineConfig config, const ModelFiles& target,
                                 const ModelConfig& model, StartFiles* files) const;
  Status open_ranks(const EngineConfig& config, const ModelConfig& model,
                    std::vector<RankLinks> others);
  Status load(ResolvedConfig& config, const ModelFiles& target,
              const std::vector<std::string>& drafter_folders, StartClock& clock);
  Result<LoadOptions> load_options(const ResolvedConfig& config, const ModelFiles& target) const;
  void note_loading(const ResolvedConfig& config, const LoadOptions& options,
                    const std::vector<std::string>& drafter_folders);
  DrafterParts drafter_parts(Model& model, const LoadOptions& target,
                             std::vector<std::string> folders) const;
  Status load_drafters(ResolvedConfig& config, const LoadOptions& target,
                       std::vector<std::string> folders);
  Status take_memory(ResolvedConfig& config, const TestHooks& hooks);
  Status load_adapters(const EngineConfig& config);
  // Before the KV cache is sized.
  Status take_states(ResolvedConfig& config);
  Status take_snapshots(ResolvedConfig& config);
  Status size_kv_cache(EngineConfig& config);
  StepMemoryConfig step_memory_config(const EngineConfig& config, int max_model_len) const;
  int64_t bytes_beside_kv(const EngineConfig& config) const;
  int local_shares(const EngineConfig& config) const;
  Status make_memory(const EngineConfig& config);
  Status give_drafters_memory(const EngineConfig& config);
  Status share_taps();
  // Before the scheduler, which counts on it.
  Status make_kv_offload(const ResolvedConfig& config);
  std::vector<BlockPart> parts_of_blocks() const;
  KvOffloadParts offload_parts(int block_size) const;
  void make_scheduler(const ResolvedConfig& config);
  // Before the runner, which keeps the queue.
  Status start_trace(const EngineConfig& config);
  Status make_runner(const ResolvedConfig& config, const TestHooks& hooks);
  Status find_step_times(const EngineConfig& config, Start start);
  Result<bool> find_cached_step_times(const EngineConfig& config);
  Status use_step_times(const char* source);
  CostTable guessed_step_times(int64_t rows_per_step) const;
  Status measure_briefly(const EngineConfig& config);
  std::vector<Drafter*> borrowed_drafters() const;
  void make_time_bound(const EngineConfig& config);
  StepProfileConfig profile_config(const EngineConfig& config) const;
  Result<CostTable> run_profile(const EngineConfig& config, const StepProfileConfig& profile);
  Status measure_step_times(const EngineConfig& config);
  void measure_between_requests(const EngineConfig& config);
  Status give_back_touched();
  Status share_step_times();
  StepTimeCache step_time_cache(const EngineConfig& config) const;
  std::optional<size_t> uncovered_drafter(const CostTable& times) const;
  // What a step-time table tells of its engine, beside the names of the drafters.
  std::string measured_on(const EngineConfig& config) const;
  Status check_step_times(const EngineConfig& config) const;
  LearnedRatesCache learned_rates_cache(const EngineConfig& config,
                                        std::span<const std::string> drafter_folders) const;
  std::vector<LearnedDrafter> drafters_to_learn() const;
  Status find_learned_rates(const ResolvedConfig& config,
                            std::span<const std::string> drafter_folders);
  void begin_with_learned(LengthControllerConfig& policy) const;
  Status give_learned_rates();
  std::string hash_of_kept_times() const;
  Status watch_learning();
  // Makes the length policy.
  Status prepare_speculation(const ResolvedConfig& config, Start start, StartClock& clock);
  // Checks a request and takes its id; what comes next is push, prepare or forget.
  Result<GrammarService::Choices> admit(Request request, OutputCallback callback);
  // Hands choices, of one request or several, to the engine thread; false when it takes no more.
  bool push(GrammarService::Choices& choices);
  void forget(const GrammarService::Choices& choices);
  Status make_grammars(const EngineConfig& config, const TestHooks& hooks);
  // What ends outputs: the ids of the generation config, else of config.json, and the tokenizer's
  // own, as with vLLM: tuned models often name the end of a turn there alone.
  std::vector<int32_t> eos_token_ids() const;
  void prepare_sleep();
  Status check_host_room();
  Status put_away(bool keeps_weights, int64_t* bytes);
  Status give_back_everywhere(bool keeps_weights);
  Status take_everywhere(const SleepOrder& order);
  Status order_all(const SleepOrder& order);
  SleepOutcome obey(const SleepOrder& order);
  Status give_back(const SleepOrder& order);
  Status take(const SleepOrder& order);
  Status load_beside();
  Status read_weights_again();
  void abandon_device();
  void write_trace();
  RequestLimits request_limits(const ResolvedConfig& config) const;
  Status make_threads(const ResolvedConfig& config, const TestHooks& hooks);
  void fill_text_info();
  // The backend that the resolved configuration names.
  Result<const AttentionBackend*> take_attention(const ResolvedConfig& config,
                                                 const ModelFiles& target);
  void fill_info(const ResolvedConfig& config, const AttentionBackend& attention);

  // In order of construction; destroyed in reverse.
  StartBarrier* barrier_;  // only while it starts; null: it starts alone
  std::unique_ptr<Device> device_;
  Ranks ranks_;
  int64_t start_exchange_ns_ = 0;            // of the ranks before the first step
  std::unique_ptr<LocalRanks> local_ranks_;  // null: there are none
  bool ended_ = false;                       // of a rank above 0: the plans have ended
  ProfilerRanges profiler_ranges_;
  std::unique_ptr<Queue> queue_;
  OpTracer* op_tracer_ = nullptr;        // the queue, where ops are traced
  std::unique_ptr<StepTrace> trace_;     // null: none is wanted
  std::unique_ptr<FlexAttention> flex_;  // null: no expressions are given
  std::unique_ptr<Model> model_;
  std::optional<JudgeHead> judge_;                  // of what the model pools
  RowLayers dense_;                                 // the same
  std::optional<TokenHead> tokens_;                 // of the states of tokens
  std::vector<std::unique_ptr<Drafter>> drafters_;  // they borrow the target's weights
  std::vector<std::string> drafter_names_;
  std::unique_ptr<AdapterRegistry> adapters_;  // null: without, or not on rank 0
  EngineTexts texts_;
  std::unique_ptr<KvCache> kv_cache_;
  std::unique_ptr<KvCache> window_cache_;  // null without windowed layers
  std::unique_ptr<StepMemory> memory_;
  std::unique_ptr<KvOffload> kv_offload_;    // null: host memory keeps no blocks
  ImageCounts host_images_{};                // that it keeps
  std::unique_ptr<StateStore> state_store_;  // null: there are no snapshots of states
  std::unique_ptr<Scheduler> scheduler_;
  CostTable step_times_;              // once the loop runs, the engine thread's
  bool measures_later_ = false;       // those are of small steps alone
  std::unique_ptr<TimeBound> bound_;  // on the time between tokens; null: there is none
  std::unique_ptr<LengthController> policy_;
  LearnedRates learned_;  // of earlier engines; no drafters: nothing
  std::optional<LearnedRatesCache>
      learned_cache_;  // until the keeper has it; none: nothing is kept
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<LearnedRatesKeeper> keeper_;  // null: nothing is kept
  std::unique_ptr<OutputRing> ring_;
  std::unique_ptr<PlanFeed> feed_;                    // null: one rank
  std::unique_ptr<group::ShapeAgreement> agreement_;  // null: no engine shares layers with it
  std::unique_ptr<EngineLoop> loop_;
  std::unique_ptr<OutputProcessor> outputs_;
  std::unique_ptr<GrammarService> grammars_;  // null: no tokenizer, or idle
  std::unique_ptr<SleepState> sleep_;         // null: it never sleeps
  std::atomic<int> sleep_level_{0};           // 0: it is awake

  GraphConfig graphs_;
  GenerationConfig generation_;
  RequestLimits limits_;
  int64_t free_at_start_ = 0;  // bytes of the device
  int num_adapter_slots_ = 0;
  int max_blocks_ = 0;
  KvBlockCounts num_blocks_;
  EngineInfo info_;
  std::atomic<uint64_t> next_number_{0};
  std::mutex requests_mutex_;
  std::map<std::string, RequestGroup*> requests_;  // unfinished
};

}  // namespace foretoken
