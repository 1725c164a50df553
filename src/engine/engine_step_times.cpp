#include <foretoken/version.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/log.h"
#include "device/device_traits.h"
#include "engine/engine_impl.h"
#include "engine/start/logits_rows.h"
#include "spec/cost_table_file.h"
#include "spec/guessed_costs.h"

// What steps cost: found, guessed or measured.

namespace foretoken {
namespace {

constexpr size_t kMaxProfileBlocks = 8192;

// Before the first request, of any model; the rest is measured when there is none.
constexpr double kBriefSeconds = 0.3;
// Of the time of a row, what another one beside it may take where that is not known yet. Five rows
// take twice one's time where a CPU computes most of it, and hardly more where it waits for memory.
constexpr int64_t kRowsPerStep = 4;

// The experts' part of what the model's weights take.
CostsToGuess::Experts experts_to_guess(const Model& model) {
  const ExpertConfig& experts = model.config().experts;
  if (experts.count == 0) return {};
  double weights = 0;
  for (const LayerConfig& layer : model.config().layers) {
    if (layer.experts) weights += 3.0 * experts.count * experts.inner * model.config().hidden_size;
  }
  const double share = std::min(weights / static_cast<double>(model.num_weights()), 1.0);
  return {static_cast<int64_t>(share * static_cast<double>(model.weight_bytes())), experts.count,
          experts.top_k};
}

}  // namespace

// From the file that the configuration names, where it exists; else from the cache; else measured,
// now or later, and kept. Rank 0's files and rank 0's clock are those of all ranks.
Status EngineImpl::find_step_times(const EngineConfig& config, Start start) {
  const std::string& file = config.step_time_table;
  std::error_code error;
  FT_ASSIGN_OR_RETURN(const int64_t has_file,
                      ranks_.of_first(!file.empty() && std::filesystem::exists(file, error) ? 1 : 0,
                                      "choosing the step time table"));
  if (has_file != 0) {
    if (ranks_.is_first()) {
      FT_ASSIGN_OR_RETURN(step_times_, read_cost_table(file, drafter_names_));
      FT_RETURN_IF_ERROR(check_step_times(config));
      FT_LOG(info, "step times: read from {}", file);
    }
    return use_step_times("file");
  }
  FT_ASSIGN_OR_RETURN(const bool is_cached, find_cached_step_times(config));
  if (is_cached) return use_step_times("cache");
  // Several ranks and engines measure at the same time, and a trace shows requests alone.
  const bool may_wait = start == Start::kServing &&
                        !device_traits(device_->type()).measures_at_start && ranks_.is_alone() &&
                        ranks_.num_engines() == 1 && barrier_ == nullptr && trace_ == nullptr &&
                        file.empty();
  if (config.measure_when_idle && may_wait) return measure_briefly(config);
  FT_RETURN_IF_ERROR(measure_step_times(config));
  const bool writes = ranks_.is_first() && (barrier_ == nullptr || barrier_->is_first());
  if (writes && !file.empty()) FT_RETURN_IF_ERROR(write_cost_table(step_times_, file));
  if (writes) step_time_cache(config).keep(step_times_);
  return use_step_times("measured");
}

// Those of all ranks are rank 0's. Where they are a guess, or brief, slots get the drafts that the
// policy grants, which learns from steps.
Status EngineImpl::use_step_times(const char* source) {
  FT_RETURN_IF_ERROR(share_step_times());
  const bool decides = !step_times_.is_guess && !step_times_.is_brief;
  FT_RETURN_IF_ERROR(runner_->set_step_times(decides ? &step_times_ : nullptr));
  info_.step_times = step_times_.text();
  info_.step_times_source = source;
  return {};
}

// A pinned table is to be read or written, and no other one.
Result<bool> EngineImpl::find_cached_step_times(const EngineConfig& config) {
  bool found = false;
  if (ranks_.is_first() && config.step_time_table.empty()) {
    const StepTimeCache cache = step_time_cache(config);
    std::optional<CostTable> times = cache.find(drafter_names_);
    found = times && !uncovered_drafter(*times);
    if (found) {
      step_times_ = std::move(*times);
      FT_LOG(info, "step times: read from the cache, {}", cache.path());
    }
  }
  FT_ASSIGN_OR_RETURN(const int64_t first,
                      ranks_.of_first(found ? 1 : 0, "looking for cached step times"));
  return first != 0;
}

CostTable EngineImpl::guessed_step_times(int64_t rows_per_step) const {
  CostsToGuess what{.weight_bytes = model_->weight_bytes(),
                    .bytes_per_second = device_traits(device_->type()).bytes_per_second,
                    .rows_per_step = rows_per_step,
                    .experts = experts_to_guess(*model_)};
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const DrafterTraits& traits = drafters_[i]->traits();
    what.drafters.push_back(
        {drafter_names_[i], traits.has_kv, traits.one_pass, drafters_[i]->memory_bytes()});
  }
  return guessed_cost_table(what);
}

// A load may begin with the first request that never pauses.
Status EngineImpl::measure_briefly(const EngineConfig& config) {
  StepProfileConfig brief = profile_config(config);
  brief.seconds = kBriefSeconds;
  device_->mark_touched();
  StepProfile profile(*device_, *queue_, *runner_, *memory_, borrowed_drafters(), brief);
  FT_ASSIGN_OR_RETURN(step_times_, profile.measure_briefly(guessed_step_times(kRowsPerStep)));
  step_times_.is_brief = true;
  FT_RETURN_IF_ERROR(give_back_touched());
  measures_later_ = true;
  FT_LOG(info,
         "step times: none are known; those of small steps measured in {:.2f} s, all of them as "
         "soon as there is no request",
         profile.seconds());
  return use_step_times("brief");
}

std::vector<Drafter*> EngineImpl::borrowed_drafters() const {
  std::vector<Drafter*> drafters;
  for (const auto& drafter : drafters_) drafters.push_back(drafter.get());
  return drafters;
}

// Where no drafter needs measured times a guess is what it begins with; steps correct it.
void EngineImpl::make_time_bound(const EngineConfig& config) {
  if (config.max_inter_token_latency_ms == 0) return;
  if (step_times_.target.empty()) step_times_ = guessed_step_times(1);
  bound_ = std::make_unique<TimeBound>(int64_t{config.max_inter_token_latency_ms} * 1'000'000,
                                       config.max_num_batched_tokens, step_times_);
}

std::string EngineImpl::measured_on(const EngineConfig& config) const {
  const ModelConfig& model = model_->config();
  const int context = config.parallel.decode_context_parallel_size;
  return device_->name() + "; " + model.architecture + " of " +
         std::to_string(model_->num_weights()) + " parameters in " +
         std::to_string(model_->weight_bytes() >> 20) + " MiB, " + dtype_name(model.dtype) +
         ", KV cache " + config.kv_cache_dtype + "; " +
         std::to_string(config.parallel.tensor_parallel_size) + " x " +
         std::to_string(config.parallel.pipeline_parallel_size) + " ranks" +
         (config.parallel.enable_expert_parallel ? " with whole experts" : "") +
         (context > 1 ? ", " + std::to_string(context) + " share a sequence" : "") +
         (config.parallel.enable_dbo
              ? ", two lanes from " + std::to_string(config.parallel.dbo_decode_token_threshold) +
                    " and " + std::to_string(config.parallel.dbo_prefill_token_threshold) + " rows"
              : "");
}

// Beside what a pinned table tells, everything else that steps of the same engine could differ by.
StepTimeCache EngineImpl::step_time_cache(const EngineConfig& config) const {
  std::string key =
      measured_on(config) + "; foretoken " + kVersion + "; " + info_.attention_backend +
      ", graphs " + graph_mode_name(graphs_.mode) + "; " + std::to_string(config.max_num_seqs) +
      " sequences of " + std::to_string(config.max_model_len) + ", " +
      std::to_string(config.max_num_batched_tokens) + " rows, blocks of " +
      std::to_string(config.block_size) + ", " + std::to_string(config.steps_in_flight) +
      " steps in flight" + (barrier_ != nullptr ? ", beside other engines" : "") +
      (config.activation_scheme != "none" ? ", activations " + config.activation_scheme : "");
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const SpeculativeConfig& speculative = config.speculative[i];
    key += "; " + drafter_names_[i] + " '" + speculative.model + "' with " +
           std::to_string(drafters_[i]->traits().max_draft_tokens) + " drafts, " +
           std::to_string(drafters_[i]->memory_bytes() >> 10) + " KiB, " +
           speculative.draft_sample_method;
  }
  return {config.step_time_cache, key};
}

// The first drafter whose proposals the times do not tell the cost of.
std::optional<size_t> EngineImpl::uncovered_drafter(const CostTable& times) const {
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const DrafterTraits& traits = drafters_[i]->traits();
    if (!times.drafters[i].covers(traits.has_kv, traits.one_pass, traits.max_draft_tokens))
      return i;
  }
  return std::nullopt;
}

Status EngineImpl::check_step_times(const EngineConfig& config) const {
  const std::string& file = config.step_time_table;
  const std::string own = measured_on(config);
  if (!step_times_.measured_on.empty() && step_times_.measured_on != own) {
    return invalid_argument("--step-time-table " + file + " was measured on " +
                            step_times_.measured_on + ", but this is " + own +
                            "; name another file, or delete it to measure again");
  }
  const std::optional<size_t> lacking = uncovered_drafter(step_times_);
  if (!lacking) return {};
  return invalid_argument("--step-time-table " + file + " has no times for " +
                          std::to_string(drafters_[*lacking]->traits().max_draft_tokens) +
                          " drafts of '" + drafter_names_[*lacking] +
                          "'; name another file, or delete it to measure again");
}

Status EngineImpl::share_step_times() {
  if (ranks_.is_alone() && ranks_.num_engines() == 1) return {};
  FT_ASSIGN_OR_RETURN(const std::string json,
                      ranks_.of_first(cost_table_to_json(step_times_), "sharing the step times"));
  FT_ASSIGN_OR_RETURN(step_times_, parse_cost_table(json, "rank 0's step times"));
  return {};
}

StepProfileConfig EngineImpl::profile_config(const EngineConfig& config) const {
  return {.drafter_names = drafter_names_,
          .vocab_size = model_->config().vocab_size,
          .max_len = config.max_model_len,
          .max_rows = config.max_num_batched_tokens,
          .max_catch_up_rows = max_catch_up_rows(config),
          .num_blocks = num_blocks_.full,
          .num_window_blocks = num_blocks_.windowed};
}

Result<CostTable> EngineImpl::run_profile(const EngineConfig& config,
                                          const StepProfileConfig& profile_config) {
  StepProfile profile(*device_, *queue_, *runner_, *memory_, borrowed_drafters(), profile_config);
  FT_ASSIGN_OR_RETURN(CostTable times, profile.measure());
  times.measured_on = measured_on(config);
  if (ranks_.is_first()) FT_LOG(info, "step times: measured in {:.1f} s", profile.seconds());
  return times;
}

Status EngineImpl::measure_step_times(const EngineConfig& config) {
  if (barrier_ != nullptr) barrier_->wait_for_others();
  StepProfileConfig profile = profile_config(config);
  profile.clock = [this](int64_t ns) { return ranks_.of_first(ns, "measuring steps"); };
  device_->mark_touched();
  FT_ASSIGN_OR_RETURN(step_times_, run_profile(config, profile));
  return give_back_touched();
}

Status EngineImpl::give_back_touched() {
  FT_RETURN_IF_ERROR(queue_->drain());
  device_->give_back_touched();
  return {};
}

// The engine thread's idle work. What a sample touches is given back before anything else runs.
void EngineImpl::measure_between_requests(const EngineConfig& config) {
  StepProfileConfig profile = profile_config(config);
  bool is_marked = false;
  profile.begin_turn = [this, &is_marked](StepProfileConfig::Turn* turn) -> Status {
    if (!is_marked || loop_->has_work()) {
      if (is_marked) FT_RETURN_IF_ERROR(give_back_touched());
      FT_RETURN_IF_ERROR(runner_->hide_step_times(false));
      FT_RETURN_IF_ERROR(loop_->serve_until_idle());
      FT_RETURN_IF_ERROR(runner_->hide_step_times(true));
      device_->mark_touched();
      is_marked = true;
    }
    turn->step = loop_->next_step();
    scheduler_->find_unused_blocks(kMaxProfileBlocks, turn->blocks);
    return {};
  };
  profile.end_turn = [this](uint64_t next_step) { loop_->end_turn(next_step); };
  Result<CostTable> times = run_profile(config, profile);
  const Status shown = runner_->hide_step_times(false);
  // What failed the queue fails the next request; an engine that ends needs no times.
  if (!shown.ok() || !times.ok() || !give_back_touched().ok()) return;
  step_times_ = std::move(times).value();
  if (!runner_->set_step_times(&step_times_).ok()) return;
  policy_->times_changed();
  if (bound_ != nullptr) bound_->restart();
  step_time_cache(config).keep(step_times_);
  if (keeper_ != nullptr) keeper_->set_step_times(hash_of_times(step_times_));
}

}  // namespace foretoken
