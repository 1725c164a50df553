#include <foretoken/version.h>

#include <utility>

#include "base/log.h"
#include "config/engine_drafter_fields.h"
#include "device/arena.h"
#include "engine/engine_impl.h"
#include "engine/start/load_format.h"
#include "engine/start/resolve_config.h"
#include "spec/learned_rates_file.h"

// What earlier engines learned of the drafters: found at the start, kept at the end.

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

// The drafters as they are, with what the policy has learned of them where there is one.
LearnedRates EngineImpl::learned_rates() const {
  LearnedRates learned;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    LearnedDrafter& drafter = learned.drafters.emplace_back();
    drafter.name = drafter_names_[i];
    drafter.max_draft_tokens = drafters_[i]->traits().max_draft_tokens;
    if (policy_ == nullptr) continue;
    const auto index = static_cast<int>(i);
    drafter.policy = policy_->learned(index, LengthController::Kind::kOwn);
    drafter.in_lists = policy_->learned(index, LengthController::Kind::kListed);
  }
  return learned;
}

// Rank 0's files are those of all ranks; the first of several engines keeps what it learns.
Status EngineImpl::find_learned_rates(const ResolvedConfig& config,
                                      std::span<const std::string> folders) {
  if (drafters_.empty()) return {};
  if (ranks_.is_first() && learns(config)) {
    LearnedRatesCache cache = learned_rates_cache(config, folders);
    if (auto found = cache.find(learned_rates().drafters)) {
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
  for (size_t i = 0; i < learned_.drafters.size(); ++i) {
    policy.drafters[i].learned = learned_.drafters[i].policy;
    policy.drafters[i].learned_in_lists = learned_.drafters[i].in_lists;
  }
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

// The engine's end, once nothing runs any more.
void EngineImpl::keep_learned_rates() {
  if (!learned_cache_ || policy_ == nullptr) return;
  Arena pinned(*device_, MemoryKind::kPinned);
  const auto priors = pinned.take_array<DraftRates>(kMaxDrafters, "draft rates");
  if (!priors.ok()) return;
  queue_->copy(priors.value(), memory_->batch.priors, kMaxDrafters * sizeof(DraftRates));
  if (!queue_->drain().ok()) return;
  LearnedRates learned = learned_rates();
  bool any = false;
  for (size_t i = 0; i < learned.drafters.size(); ++i) {
    LearnedDrafter& drafter = learned.drafters[i];
    drafter.prior = priors.value()[i];
    any = any || drafter.prior.num_rated > 0 || drafter.policy.num_ever > 0;
  }
  if (any) learned_cache_->keep(std::move(learned));
}

}  // namespace foretoken
