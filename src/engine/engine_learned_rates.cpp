#include <foretoken/version.h>

#include <utility>

#include "base/log.h"
#include "config/engine_drafter_fields.h"
#include "device/arena.h"
#include "engine/engine_impl.h"
#include "engine/start/load_format.h"
#include "engine/start/resolve_config.h"
#include "spec/learned_rates_file.h"

// What earlier engines learned of the drafters and of their steps: found at the start, kept while
// the engine runs and at its end.

namespace foretoken {
namespace {

// Made-up weights and made-up acceptance tell nothing of a model, and with pinned costs runs decide
// alike.
bool learns(const ResolvedConfig& config) {
  return config.keep_acceptance_rates && !config.step_time_cache.empty() &&
         config.step_time_table.empty() && !is_dummy(config.load_format) &&
         config.length_mode == LengthMode::kAdaptive &&
         config.acceptance != AcceptanceMethod::kSynthetic;
}

// "eagle3 81 % of first drafts, up to 4 a step; ngram 12 % of first drafts, rests"
std::string learned_text(const LearnedRates& learned) {
  std::string text;
  for (const LearnedDrafter& drafter : learned.drafters) {
    const int64_t percent = drafter.policy.rates.state().rates[0] * 100 / BatchRates::kOne;
    const int limit = drafter.policy.num_draft_tokens;
    text += (text.empty() ? "" : "; ") + drafter.name + " " + std::to_string(percent) +
            " % of first drafts, " +
            (limit > 0 ? "up to " + std::to_string(limit) + " a step" : "rests");
  }
  return text;
}

}  // namespace

// How it drafts is all that the drafters' fields say.
LearnedRatesCache EngineImpl::learned_rates_cache(const EngineConfig& config,
                                                  std::span<const std::string> folders) const {
  std::string name = device_->name() + "; " + config.model + "; " + info_.dtype + " " +
                     config.quantization + " " + config.activation_scheme + " " +
                     config.hf_overrides;
  std::string stamp = std::string("foretoken ") + kVersion + "; " + stamp_of_files(config.model);
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const SpeculativeConfig& speculative = config.speculative[i];
    name += "; " + drafter_names_[i] + (speculative.leads ? " leads" : "");
    for (const DrafterField& field : drafter_fields()) {
      name += " " + drafter_field_text(field, speculative);
    }
    for (const auto& [field, value] : speculative.method_fields) {
      name += " " + field + " " + std::to_string(value);
    }
    if (!folders[i].empty() && folders[i] != config.model) {
      stamp += "; " + stamp_of_files(folders[i]);
    }
  }
  return {config.step_time_cache, name, stamp};
}

// The drafters as they are.
std::vector<LearnedDrafter> EngineImpl::drafters_to_learn() const {
  std::vector<LearnedDrafter> drafters;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    LearnedDrafter& drafter = drafters.emplace_back();
    drafter.name = drafter_names_[i];
    drafter.max_draft_tokens = drafters_[i]->traits().max_draft_tokens;
  }
  return drafters;
}

// Rank 0's files are those of all ranks; the first of several engines keeps what it learns.
Status EngineImpl::find_learned_rates(const ResolvedConfig& config,
                                      std::span<const std::string> folders) {
  if (drafters_.empty()) return {};
  if (ranks_.is_first() && learns(config)) {
    LearnedRatesCache cache = learned_rates_cache(config, folders);
    if (auto found = cache.find(drafters_to_learn())) {
      FT_LOG(info, "acceptance rates: read from the cache, {}: {}", cache.path(),
             learned_text(*found));
      learned_ = *std::move(found);
    }
    if (barrier_ == nullptr || barrier_->is_first()) learned_cache_.emplace(std::move(cache));
  }
  if (ranks_.is_alone() && ranks_.num_engines() == 1) return {};
  FT_ASSIGN_OR_RETURN(const std::string text, ranks_.of_first(learned_rates_to_json(learned_),
                                                              "sharing the acceptance rates"));
  FT_ASSIGN_OR_RETURN(learned_, parse_learned_rates(text, "rank 0's acceptance rates"));
  return {};
}

void EngineImpl::begin_with_learned(LengthControllerConfig& policy) const {
  const std::string times = hash_of_kept_times();
  if (!times.empty() && learned_.step_times == times) policy.steps = learned_.steps;
  for (size_t i = 0; i < learned_.drafters.size(); ++i) {
    policy.drafters[i].learned = learned_.drafters[i].policy;
    policy.drafters[i].learned_in_lists = learned_.drafters[i].in_lists;
  }
}

// Of a table that later starts find, too; otherwise empty.
std::string EngineImpl::hash_of_kept_times() const {
  const std::string& source = info_.step_times_source;
  return source == "cache" || source == "measured" ? hash_of_times(step_times_) : std::string();
}

// New sequences begin with them. After whatever else wrote to the device's statistics.
Status EngineImpl::give_learned_rates() {
  if (learned_.drafters.empty()) return {};
  Arena pinned(*device_, MemoryKind::kPinned);
  FT_ASSIGN_OR_RETURN(auto* priors, pinned.take_array<DraftRates>(kMaxDrafters, "draft rates"));
  for (size_t i = 0; i < learned_.drafters.size(); ++i) priors[i] = learned_.drafters[i].prior;
  queue_->copy(memory_->batch.priors, priors, learned_.drafters.size() * sizeof(DraftRates));
  return queue_->drain();
}

// Before the loop starts.
Status EngineImpl::watch_learning() {
  if (!learned_cache_) return {};
  FT_ASSIGN_OR_RETURN(keeper_,
                      LearnedRatesKeeper::start({.device = *device_,
                                                 .queue = *queue_,
                                                 .priors = memory_->batch.priors,
                                                 .policy = *policy_},
                                                *std::exchange(learned_cache_, std::nullopt),
                                                drafters_to_learn(), hash_of_kept_times()));
  loop_->set_watch({.step =
                        [own = keeper_.get()](uint64_t num_submitted, uint64_t num_reconciled) {
                          own->note_step(num_submitted, num_reconciled);
                        },
                    .rest = [own = keeper_.get()] { own->rest(); }});
  return {};
}

}  // namespace foretoken
