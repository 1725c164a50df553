#include "engine/engine_impl.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "base/log.h"
#include "base/thread_limit.h"
#include "compat/combination.h"
#include "device/cuda_plugin.h"
#include "device/device_traits.h"
#include "device/memory_role_scope.h"
#include "draft/drafter_parts.h"
#include "engine/start/load_format.h"
#include "engine/start/locate_model.h"
#include "engine/start/logits_rows.h"
#include "engine/start/make_drafters.h"
#include "engine/start/own_length.h"
#include "engine/start/own_pooling.h"
#include "engine/start/resolve_config.h"
#include "engine/start/resolve_kv_cache.h"
#include "engine/start/speculative_checks.h"
#include "engine/step/rank_loop.h"
#include "group/local_link.h"
#include "model/config/rope_table.h"
#include "model/heads/dense_modules.h"
#include "model/heads/judge_head.h"
#include "model/layer/layer_spec.h"
#include "model/registry.h"

namespace foretoken {
namespace {

constexpr size_t kOutputRingSize = 8192;

// What ranks give each other is at most a row of logits, of a hidden state, or of what the heads of
// a rank have seen (AttentionArgs::states).
int64_t max_row_bytes(const ModelConfig& model) {
  const int64_t states = int64_t{model.num_heads} * attention_state_size(kMaxHeadDim);
  return std::max({int64_t{model.vocab_size}, int64_t{model.hidden_size}, states}) *
         static_cast<int64_t>(sizeof(float));
}

Status check_ranks(const EngineConfig& config, bool idle) {
  const ParallelConfig& parallel = config.parallel;
  if (parallel.tensor_parallel_size < 1 || parallel.pipeline_parallel_size < 1) {
    return invalid_argument(
        "--tensor-parallel-size and --pipeline-parallel-size must be at least 1");
  }
  Combination c = combination_of(config);
  c.parts_of_steps = idle;
  return compat(c);
}

// One step for each stage and one that is planned meanwhile, as far as the ring goes.
int steps_in_flight(const EngineConfig& config) {
  const int stages = config.parallel.pipeline_parallel_size;
  if (stages == 1 || config.steps_in_flight == 1) return config.steps_in_flight;
  return std::max(config.steps_in_flight, std::min(stages + 1, kStepRingSize - 1));
}

// As of EngineLoop::Parts. Where steps are computed by the host's cores nobody knows how long they
// take, and where prompts are not paced nobody comes.
bool awaits_arrivals(const EngineConfig& config, const Device& device, bool is_alone) {
  return is_alone && config.long_prefill_token_threshold == -1 &&
         !device_traits(device.type()).uses_host_cores;
}

}  // namespace

Result<std::unique_ptr<EngineImpl>> EngineImpl::create(const EngineConfig& given,
                                                       const TestHooks& hooks, Start start,
                                                       std::vector<RankLinks> links,
                                                       StartBarrier* barrier) {
  FT_RETURN_IF_ERROR(check_ranks(given, start == Start::kIdle));
  const int size = given.parallel.tensor_parallel_size * given.parallel.pipeline_parallel_size;
  if (links.empty()) links = local_rank_links(size);
  if (size > 1 || links[0].beside[0] != nullptr) load_kernels_at_start();
  std::unique_ptr<EngineImpl> engine(new EngineImpl(std::move(links[0]), given.parallel, barrier));
  links.erase(links.begin());
  const Status status =
      start_threads([&] { return engine->start(given, hooks, start, std::move(links)); });
  engine->barrier_ = nullptr;
  if (status.ok()) return engine;
  engine->ranks_.abort(status);
  return status;
}

// Threads of ranks on one machine share its cores.
Status EngineImpl::open_device(const EngineConfig& config) {
  FT_ASSIGN_OR_RETURN(device_, open_configured_device(config));
  const int local = ranks_.size() / std::max(config.parallel.nnodes, 1);
  if (device_traits(device_->type()).uses_host_cores && config.cpu_threads == 0 && local > 1) {
    EngineConfig shared = config;
    shared.cpu_threads = std::max(device_->num_workers() / local, 1);
    FT_ASSIGN_OR_RETURN(device_, open_configured_device(shared));
  }
  free_at_start_ = device_->free_memory();
  return config.enable_sleep_mode ? device_->allow_sleep() : Status();
}

// The configuration with every choice made that its model's config and its drafters' files tell.
Result<ResolvedConfig> EngineImpl::resolve(EngineConfig config, const ModelFiles& target,
                                           const ModelConfig& model, StartFiles* files) const {
  FT_ASSIGN_OR_RETURN(config.kv_cache_dtype,
                      resolve_kv_cache_dtype(config, *device_, target, model));
  const int own = own_max_len(target);
  if (config.max_model_len == 0 && own > 0 && own < model.max_context) {
    config.max_model_len = own;
    FT_LOG(info, "--max-model-len {} by default, as the model's folder embeds texts; it allows {}",
           own, model.max_context);
  }
  files->config = config;
  FT_ASSIGN_OR_RETURN(ResolvedConfig resolved, resolve_config(config, *device_, model));
  resolved.steps_in_flight = steps_in_flight(resolved);
  // From here on a block is that of all ranks that share its positions.
  resolved.block_size *= resolved.parallel.decode_context_parallel_size;
  FT_ASSIGN_OR_RETURN(files->drafter_folders, locate_drafters(resolved));
  FT_RETURN_IF_ERROR(resolve_methods(resolved, files->drafter_folders, model));
  FT_RETURN_IF_ERROR(check_combination(resolved.parts, resolved.speculative));
  return resolved;
}

Status EngineImpl::open_ranks(const EngineConfig& config, const ModelConfig& model,
                              std::vector<RankLinks> others) {
  if (!others.empty()) {
    local_ranks_ = std::make_unique<LocalRanks>();
    local_ranks_->start(config, std::move(others));
  }
  return ranks_.open(*device_, {.max_row_bytes = max_row_bytes(model),
                                .avoids_peer_memory = config.parallel.disable_custom_all_reduce,
                                .in_lanes = config.parallel.enable_dbo});
}

Status EngineImpl::take_memory(ResolvedConfig& config, const TestHooks& hooks) {
  FT_RETURN_IF_ERROR(size_kv_cache(config));
  FT_RETURN_IF_ERROR(make_memory(config));
  FT_RETURN_IF_ERROR(make_kv_offload(config));
  make_scheduler(config);
  FT_RETURN_IF_ERROR(start_trace(config));
  return make_runner(config, hooks);
}

Status EngineImpl::start(const EngineConfig& given, const TestHooks& hooks, Start start,
                         std::vector<RankLinks> other_ranks) {
  StartClock clock;
  FT_RETURN_IF_ERROR(check_speculative(given));
  FT_RETURN_IF_ERROR(open_device(given));
  clock.end_phase("device");
  const MemoryRoleScope scope(*device_, MemoryRole::kKept);
  FT_ASSIGN_OR_RETURN(const EngineConfig located, locate_model(given));
  const ModelFiles target(located.model);
  FT_ASSIGN_OR_RETURN(const ModelConfig model, read_model_config(target, config_options(located)));
  StartFiles files;
  FT_ASSIGN_OR_RETURN(ResolvedConfig resolved, resolve(located, target, model, &files));
  // All files are on this machine now.
  FT_RETURN_IF_ERROR(open_ranks(files.config, model, std::move(other_ranks)));
  profiler_ranges_ = device_->use_profiler_ranges(given.enable_layerwise_nvtx_tracing);
  FT_ASSIGN_OR_RETURN(queue_, device_->make_queue());
  if (hooks.wrap_queue) queue_ = hooks.wrap_queue(std::move(queue_));
  clock.end_phase("configuration");
  FT_RETURN_IF_ERROR(load(resolved, target, files.drafter_folders, clock));
  FT_RETURN_IF_ERROR(take_memory(resolved, hooks));
  clock.end_phase("memory");
  if (start == Start::kServing) {
    FT_RETURN_IF_ERROR(find_learned_rates(resolved, files.drafter_folders));
  }
  FT_RETURN_IF_ERROR(prepare_speculation(resolved, start, clock));
  FT_RETURN_IF_ERROR(ranks_.least(0, "waiting for all ranks to start").status());
  if (start == Start::kServing && ranks_.is_first()) {
    FT_RETURN_IF_ERROR(make_grammars(resolved, hooks));
    FT_RETURN_IF_ERROR(make_threads(resolved, hooks));
  }
  clock.end_phase("threads");
  info_.start_phases = clock.phases();
  if (ranks_.is_first()) FT_LOG(info, "started in {}", clock.text());
  return {};
}

Status EngineImpl::run_rank() {
  FT_CHECK(!ranks_.is_first());
  RankLoop loop({.queue = *queue_,
                 .runner = *runner_,
                 .memory = *memory_,
                 .ranks = ranks_,
                 .num_adapter_slots = num_adapter_slots_,
                 .kv_offload = kv_offload_.get(),
                 .state_store = state_store_.get(),
                 .obey = sleep_ == nullptr
                             ? std::function<SleepOutcome(const SleepOrder&)>()
                             : [this](const SleepOrder& order) { return obey(order); }});
  const Status status = loop.run();
  ended_ = status.ok();
  return status;
}

Status EngineImpl::make_runner(const ResolvedConfig& config, const TestHooks& hooks) {
  const bool synthetic = config.acceptance == AcceptanceMethod::kSynthetic;
  std::vector<Drafter*> drafters;
  for (const auto& drafter : drafters_) drafters.push_back(drafter.get());
  runner_ = std::make_unique<ModelRunner>(
      *device_, *queue_, *model_, KvCaches{kv_cache_.get(), window_cache_.get()},
      std::move(drafters), *memory_,
      ModelRunnerConfig{
          .max_rows = config.max_num_batched_tokens,
          .max_logits_rows = max_logits_rows(config),
          .logits_tile = logits_tile(config),
          .max_processor_rows = config.max_processor_rows,
          .max_len = config.max_model_len,
          .max_catch_up_rows = max_catch_up_rows(config),
          .with_grammars = texts_.tokenizer() != nullptr,
          .max_draft_tokens = max_draft_tokens(config),
          .mask_budget_ns = hooks.mask_budget_ns.value_or(kMaskBudgetNs),
          .draft_mask_budget_ns = hooks.mask_budget_ns.value_or(kDraftMaskBudgetNs),
          .synthetic = synthetic,
          .synthetic_chances = synthetic ? synthetic_chances(config.speculative.front())
                                         : std::array<uint32_t, kMaxDraftTokens>{},
          .graphs = graphs_,
          .lanes = {.enabled = config.parallel.enable_dbo,
                    .decode_rows = config.parallel.dbo_decode_token_threshold,
                    .prefill_rows = config.parallel.dbo_prefill_token_threshold},
          .hooks = hooks,
          .comm = ranks_.comm(),
          .has_masks = ranks_.is_first(),
          .has_processors = ranks_.is_first(),
          .stages = ranks_.stages(),
          .block_parts = parts_of_blocks(),
          .window_block_parts =
              window_cache_ != nullptr ? window_cache_->block_parts() : std::vector<BlockPart>()});
  FT_RETURN_IF_ERROR(runner_->start());
  info_.scratch_bytes = model_->scratch_bytes() + runner_->scratch_bytes();
  return {};
}

Status EngineImpl::prepare_speculation(const ResolvedConfig& config, Start start,
                                       StartClock& clock) {
  LengthControllerConfig policy{.mode = config.length_mode,
                                .steps_in_flight = config.steps_in_flight};
  if (policy.mode == LengthMode::kSchedule) {
    policy.schedule = config.speculative.front().num_speculative_tokens_per_batch_size;
  }
  // A step that waits for other stages says little about its own work.
  policy.follows_device = config.step_time_table.empty() && ranks_.stages().count == 1;
  policy.host_may_bound = !device_traits(device_->type()).uses_host_cores;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const DrafterTraits& traits = drafters_[i]->traits();
    policy.drafters.push_back(
        {.max_draft_tokens = traits.max_draft_tokens,
         .looks_up = traits.looks_up,
         .has_kv = traits.has_kv,
         .keeps_written = traits.keeps_written,
         .max_catch_up_rows = max_catch_up_rows(config),
         .num_branches = traits.branches ? config.speculative[i].num_branches : 0});
  }
  if (policy.mode == LengthMode::kAdaptive && !drafters_.empty()) {
    FT_RETURN_IF_ERROR(find_step_times(config, start));
    clock.end_phase("step times");
  }
  begin_with_learned(policy);
  make_time_bound(config);
  policy_ = std::make_unique<LengthController>(policy, step_times_);
  const int64_t free_before = device_->free_memory();
  FT_RETURN_IF_ERROR(runner_->capture_usual_steps());
  FT_RETURN_IF_ERROR(give_learned_rates());
  info_.num_graphs = runner_->graphs().size();
  info_.graph_seconds = static_cast<double>(runner_->graphs().capture_ns()) / 1e9;
  clock.end_phase("graphs");
  FT_LOG(debug, "graphs took {} MiB of the device", (free_before - device_->free_memory()) >> 20);
  return {};
}

std::vector<int32_t> EngineImpl::eos_token_ids() const {
  std::vector<int32_t> ids = generation_.eos_token_ids.value_or(model_->config().eos_token_ids);
  const Tokenizer* tokenizer = texts_.tokenizer();
  const std::optional<int32_t> own = tokenizer == nullptr ? std::nullopt : tokenizer->eos_id();
  const bool can_come = own && *own < model_->config().vocab_size;
  if (can_come && std::ranges::find(ids, *own) == ids.end()) ids.push_back(*own);
  return ids;
}

Status EngineImpl::make_grammars(const EngineConfig& config, const TestHooks& hooks) {
  if (texts_.tokenizer() == nullptr) return {};
  GrammarServiceConfig service;
  service.eos_ids = eos_token_ids();
  service.max_draft_tokens = max_draft_tokens(config);
  // A part of the machine; on two cores the forward itself needs both.
  service.num_helpers =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4 - 1, 0, 7);
  service.slow_ns = hooks.slow_mask_ns.value_or(service.slow_ns);
  service.repair_share = hooks.repair_share.value_or(service.repair_share);
  service.masks_ready = [this] { loop_->intake().announce_change(); };
  const int32_t vocab_size = model_->config().vocab_size;
  std::erase_if(service.eos_ids, [&](int32_t id) { return id < 0 || id >= vocab_size; });
  FT_ASSIGN_OR_RETURN(std::unique_ptr<GrammarCompiler> compiler,
                      texts_.tokenizer()->grammar_compiler(vocab_size, service.eos_ids));
  const auto ready = [this](GrammarService::Choices choices) {
    if (push(choices)) return;
    // The engine thread is gone, and so is everybody who could be told.
    std::lock_guard lock(requests_mutex_);
    requests_.erase(choices.front()->group->request.request_id);
  };
  grammars_ = std::make_unique<GrammarService>(std::move(compiler), runner_->mask_exchange(),
                                               std::move(service), ready);
  grammars_->start();
  return {};
}

RequestLimits EngineImpl::request_limits(const ResolvedConfig& config) const {
  const ModelConfig& model = model_->config();
  RequestLimits limits{.engine = config.parts,
                       .adapters = adapters_.get(),
                       .max_model_len = config.max_model_len,
                       .max_blocks = max_blocks_,
                       .vocab_size = model.vocab_size,
                       .added_ids = model.added_ids,
                       .max_window_blocks = window_cache_ != nullptr ? max_blocks_ : 0,
                       .drafters = {},
                       .max_prediction = memory_->batch.lists.max_prediction,
                       .max_logprobs = config.max_logprobs,
                       .max_processor_rows = config.max_processor_rows,
                       .hidden_size = model.hidden_size,
                       .pooling = own_pooling(config.model, model.bidirectional),
                       .judge = judge_ ? &*judge_ : nullptr,
                       .dense = dense_.empty() ? nullptr : &dense_,
                       .tokens = tokens_ ? &*tokens_ : nullptr,
                       .has_priorities = config.policy == SchedulingPolicy::kPriority,
                       .seed = config.seed,
                       .eos_token_ids = eos_token_ids()};
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const DrafterTraits& traits = drafters_[i]->traits();
    limits.drafters.push_back(
        {drafter_names_[i], traits.max_draft_tokens, traits, config.speculative[i].leads});
  }
  return limits;
}

Status EngineImpl::make_threads(const ResolvedConfig& config, const TestHooks& hooks) {
  limits_ = request_limits(config);
  ring_ = std::make_unique<OutputRing>(kOutputRingSize);
  if (!ranks_.is_alone()) {
    feed_ = std::make_unique<PlanFeed>(ranks_, memory_->limits(), info_.num_state_snapshots);
  }
  if (ranks_.num_engines() > 1) {
    agreement_ = std::make_unique<group::ShapeAgreement>(ranks_.shapes(), ranks_.bell());
  }
  loop_ = std::make_unique<EngineLoop>(
      EngineLoop::Parts{.queue = *queue_,
                        .runner = *runner_,
                        .scheduler = *scheduler_,
                        .policy = *policy_,
                        .outputs = *ring_,
                        .memory = *memory_,
                        .trace = trace_.get(),
                        .grammars = grammars_ != nullptr ? &grammars_->thread() : nullptr,
                        .feed = feed_.get(),
                        .agreement = agreement_.get(),
                        .ranks = &ranks_,
                        .num_adapter_slots = num_adapter_slots_,
                        .num_stages = ranks_.stages().count,
                        .bound = bound_.get(),
                        .kv_offload = kv_offload_.get(),
                        .state_store = state_store_.get(),
                        .awaits_arrivals = awaits_arrivals(config, *device_, ranks_.is_alone())},
      config.steps_in_flight, hooks, std::chrono::seconds(config.step_timeout_seconds));
  loop_->set_rest_work([this] { prepare_sleep(); });
  FT_RETURN_IF_ERROR(watch_learning());
  outputs_ = std::make_unique<OutputProcessor>(
      *ring_, loop_->intake(),
      OutputProcessor::Hooks{.forget =
                                 [this](const RequestGroup& group) {
                                   std::lock_guard lock(requests_mutex_);
                                   requests_.erase(group.request.request_id);
                                 },
                             .device_error = [this] { return loop_->error(); }},
      trace_ != nullptr ? trace_->output() : nullptr);
  if (op_tracer_ != nullptr) op_tracer_->start(static_cast<uint16_t>(Op::kUpload));
  start_exchange_ns_ = ranks_.exchange_ns();
  if (config.disable_log_stats) outputs_->disable_log_stats();
  outputs_->start();
  if (measures_later_) loop_->set_idle_work([this, config] { measure_between_requests(config); });
  loop_->start();
  return {};
}

StepBenchParts EngineImpl::bench_parts() {
  return {.device = *device_,
          .queue = *queue_,
          .model = *model_,
          .caches = {kv_cache_.get(), window_cache_.get()},
          .runner = *runner_,
          .memory = *memory_,
          .max_len = info_.max_model_len,
          .max_rows = info_.max_num_batched_tokens,
          .max_logits_rows = runner_->logits_tile(),
          .num_blocks = num_blocks_.full,
          .num_window_blocks = window_cache_ != nullptr ? num_blocks_.windowed : 0};
}

}  // namespace foretoken
