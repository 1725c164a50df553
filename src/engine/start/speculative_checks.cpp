#include "engine/start/speculative_checks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>

#include "draft/config_check.h"
#include "draft/draft_bounds.h"
#include "draft/parts/draft_list.h"
#include "draft/parts/draft_vocab.h"
#include "draft/registry.h"
#include "spec/draft_schedule.h"

namespace foretoken {
namespace {

Status fault(const std::string& what) { return invalid_argument("speculative config: " + what); }

std::string text_of(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// What can be told before the model of an unnamed method says what it is.
Status check_fields(const SpeculativeConfig& config) {
  if (config.num_speculative_tokens < 0 || config.num_speculative_tokens > kMaxDraftTokens) {
    return fault("num_speculative_tokens is " + std::to_string(config.num_speculative_tokens) +
                 "; give a number from 1 to " + std::to_string(kMaxDraftTokens));
  }
  if (config.max_model_len < 0) {
    return fault("max_model_len is " + std::to_string(config.max_model_len) +
                 "; give a positive number of tokens, or leave it out");
  }
  FT_RETURN_IF_ERROR(samples_drafts(config).status());
  if (config.method.empty() && !config.model.empty()) return {};
  FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, choose_drafter(config, ""));
  return check_config(config, *entry);
}

// Without a file, the one that lies beside the target.
void find_ranked_vocab(const std::string& target_folder, SpeculativeConfig& config) {
  if (config.draft_vocab_size == 0 || !config.draft_vocab_file.empty()) return;
  const std::filesystem::path ranked = std::filesystem::path(target_folder) / "draft_vocab.txt";
  std::error_code error;
  if (std::filesystem::exists(ranked, error)) config.draft_vocab_file = ranked.string();
}

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

Status check_policy(const SpeculativeConfig& config) {
  const std::string& policy = config.length_policy;
  if (policy != "adaptive" && policy != "fixed" && policy != "off") {
    return fault("length_policy '" + policy + "' is unknown; use adaptive, fixed or off");
  }
  const std::vector<DraftSchedule>& schedule = config.num_speculative_tokens_per_batch_size;
  if (schedule.empty()) return {};
  if (policy == "off") {
    return fault(
        "length_policy 'off' and num_speculative_tokens_per_batch_size exclude each other; leave "
        "one out");
  }
  return check_schedule(schedule);
}

Status check_rates(const SpeculativeConfig& config) {
  const std::vector<double>& rates = config.synthetic_acceptance_rates;
  const int k = config.num_speculative_tokens;
  // An MTP drafter may leave K to its model: the rates are looked at again once that is known.
  if (k == 0 && rates.size() > kMaxDraftTokens) {
    return fault("synthetic_acceptance_rates has " + std::to_string(rates.size()) +
                 " entries; at most " + std::to_string(kMaxDraftTokens) + " are possible");
  }
  if (k > 0 && static_cast<int>(rates.size()) != k) {
    return fault("synthetic_acceptance_rates has " + std::to_string(rates.size()) +
                 " entries; give one for each of the " + std::to_string(k) +
                 " num_speculative_tokens");
  }
  double before = 1;
  for (const double rate : rates) {
    if (!(rate >= 0 && rate <= 1)) {
      return fault("synthetic_acceptance_rates has " + text_of(rate) + "; rates lie in [0, 1]");
    }
    if (rate > before) {
      return fault("synthetic_acceptance_rates rise from " + text_of(before) + " to " +
                   text_of(rate) +
                   "; a draft is accepted only where those before it are, so they may not rise");
    }
    before = rate;
  }
  return {};
}

Status check_synthetic(const SpeculativeConfig& config) {
  const double length = config.synthetic_acceptance_length;
  const bool has_rates = !config.synthetic_acceptance_rates.empty();
  if (has_rates && length != 0) {
    return fault(
        "synthetic_acceptance_rates and synthetic_acceptance_length exclude each other; leave one "
        "out");
  }
  if (has_rates) return check_rates(config);
  const int k = config.num_speculative_tokens;
  const int most = (k > 0 ? k : kMaxDraftTokens) + 1;
  if (length == 0) {
    return fault(
        "rejection_sample_method 'synthetic' needs synthetic_acceptance_rates or "
        "synthetic_acceptance_length");
  }
  if (!(length >= 1 && length <= most)) {
    return fault("synthetic_acceptance_length is " + text_of(length) + "; use 1 to " +
                 std::to_string(most) + ", num_speculative_tokens and the token after them");
  }
  return {};
}

Status check_rejection(const SpeculativeConfig& config) {
  const std::string& method = config.rejection_sample_method;
  if (method == "synthetic") return check_synthetic(config);
  if (method == "standard" || method == "block") {
    return fault("rejection_sample_method '" + method +
                 "' is not built yet; leave it out for coupled, which accepts greedy drafts "
                 "exactly as often as standard");
  }
  if (method == "fly") {
    return fault(
        "rejection_sample_method 'fly' changes the text; leave it out for coupled, which does not");
  }
  if (method != "coupled") {
    return fault("rejection_sample_method '" + method + "' is unknown; use coupled or synthetic");
  }
  if (!config.synthetic_acceptance_rates.empty() || config.synthetic_acceptance_length != 0) {
    return fault(
        "synthetic acceptance needs \"rejection_sample_method\": \"synthetic\"; add it, or leave "
        "the rates out");
  }
  return {};
}

bool equal(const DraftSchedule& a, const DraftSchedule& b) {
  return a.first == b.first && a.last == b.last &&
         a.num_speculative_tokens == b.num_speculative_tokens;
}

// Null when both configurations have the same engine-wide fields, else the name of the first one
// that differs.
const char* disagreement(const SpeculativeConfig& a, const SpeculativeConfig& b) {
  if (a.length_policy != b.length_policy) return "length_policy";
  if (!std::equal(a.num_speculative_tokens_per_batch_size.begin(),
                  a.num_speculative_tokens_per_batch_size.end(),
                  b.num_speculative_tokens_per_batch_size.begin(),
                  b.num_speculative_tokens_per_batch_size.end(), equal)) {
    return "num_speculative_tokens_per_batch_size";
  }
  if (a.rejection_sample_method != b.rejection_sample_method) return "rejection_sample_method";
  if (a.synthetic_acceptance_rates != b.synthetic_acceptance_rates) {
    return "synthetic_acceptance_rates";
  }
  if (a.synthetic_acceptance_length != b.synthetic_acceptance_length) {
    return "synthetic_acceptance_length";
  }
  return nullptr;
}

// Each list of drafters of the engine.
Status check_lists(const std::vector<SpeculativeConfig>& all) {
  std::vector<ListedDrafter> list;
  for (size_t i = 0; i < all.size(); ++i) {
    list.push_back({all[i].method, declared_traits(all[i].method).looks_up});
    if (all[i].leads && i + 1 < all.size()) continue;
    FT_RETURN_IF_ERROR(check_list("speculative config", list));
    list.clear();
  }
  return {};
}

}  // namespace

Status check_speculative(const EngineConfig& config) {
  const std::vector<SpeculativeConfig>& all = config.speculative;
  if (all.size() > kMaxDrafters) {
    return invalid_argument("speculative config: " + std::to_string(all.size()) +
                            " drafters are configured; an engine has at most " +
                            std::to_string(kMaxDrafters));
  }
  if (!all.empty() && config.max_num_batched_tokens == 1) {
    return fault(
        "--max-num-batched-tokens 1 leaves no row for a draft beside a sequence's own; raise it to "
        "2 or more");
  }
  for (size_t i = 0; i < all.size(); ++i) {
    FT_RETURN_IF_ERROR(check_fields(all[i]));
    FT_RETURN_IF_ERROR(check_policy(all[i]));
    FT_RETURN_IF_ERROR(check_rejection(all[i]));
    const char* field = disagreement(all[0], all[i]);
    if (field != nullptr) {
      return fault(std::string(field) +
                   " differs from the first drafter's; it holds for the whole engine, so give all "
                   "drafters the same");
    }
  }
  return {};
}

Status resolve_methods(EngineConfig& config, const std::vector<std::string>& folders,
                       const ModelConfig& target) {
  std::vector<SpeculativeConfig>& all = config.speculative;
  for (size_t i = 0; i < all.size(); ++i) {
    FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, choose_drafter(all[i], folders[i]));
    all[i].method = entry->name;
    FT_RETURN_IF_ERROR(check_config(all[i], *entry));
    for (size_t j = 0; j < i; ++j) {
      if (all[j].method != all[i].method) continue;
      if (entry->traits.reads_files && !is_same_folder(folders[j], folders[i])) continue;
      return fault("'" + all[i].method +
                   "' with the same model is configured twice; leave one out");
    }
    find_ranked_vocab(config.model, all[i]);
    FT_RETURN_IF_ERROR(
        choose_draft_vocab(all[i], target.vocab_size, target.eos_token_ids).status());
    if (config.max_model_len > 0 && all[i].max_model_len > config.max_model_len) {
      return fault("max_model_len " + std::to_string(all[i].max_model_len) +
                   " exceeds the target's, " + std::to_string(config.max_model_len) +
                   "; lower it or leave it out");
    }
  }
  return check_lists(all);
}

LengthControllerConfig length_policy_config(const EngineConfig& config) {
  LengthControllerConfig policy;
  policy.steps_in_flight = config.steps_in_flight;
  if (config.speculative.empty()) {
    policy.mode = LengthMode::kOff;
    return policy;
  }
  const SpeculativeConfig& first = config.speculative.front();
  policy.schedule = first.num_speculative_tokens_per_batch_size;
  policy.mode = !policy.schedule.empty()         ? LengthMode::kSchedule
                : first.length_policy == "fixed" ? LengthMode::kFixed
                : first.length_policy == "off"   ? LengthMode::kOff
                                                 : LengthMode::kAdaptive;
  return policy;
}

std::array<uint32_t, kMaxDraftTokens> synthetic_chances(const SpeculativeConfig& config) {
  std::array<double, kMaxDraftTokens> rates{};
  if (config.synthetic_acceptance_rates.empty()) {
    const double mean = config.synthetic_acceptance_length - 1;
    for (int i = 0; i < kMaxDraftTokens; ++i) {
      rates[static_cast<size_t>(i)] = std::clamp(mean - i, 0.0, 1.0);
    }
  } else {
    std::copy(config.synthetic_acceptance_rates.begin(), config.synthetic_acceptance_rates.end(),
              rates.begin());
  }
  std::array<uint32_t, kMaxDraftTokens> chances{};
  double before = 1;
  for (size_t i = 0; i < chances.size() && before > 0; ++i) {
    const double chance = std::min(rates[i] / before, 1.0);
    chances[i] = chance == 1 ? UINT32_MAX
                             : static_cast<uint32_t>(std::min(std::ldexp(chance, 32),
                                                              static_cast<double>(UINT32_MAX - 1)));
    before = rates[i];
  }
  return chances;
}

}  // namespace foretoken
