#include "engine/speculative_checks.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "draft/length_policy.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

// Says which drafter a fault is about, where there are several.
class Fault {
 public:
  Fault(size_t index, size_t count)
      : prefix_("speculative config" + (count > 1 ? " " + std::to_string(index + 1) : "") + ": ") {}
  Status operator()(const std::string& what) const { return invalid_argument(prefix_ + what); }

 private:
  std::string prefix_;
};

std::string text_of(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Only an MTP model tells how many drafts it is made for.
constexpr const char* kMtp = "mtp";

Status bad_number(const SpeculativeConfig& config, const Fault& fault) {
  return fault("num_speculative_tokens is " + std::to_string(config.num_speculative_tokens) +
               "; give a number from 1 to " + std::to_string(kMaxDrafts));
}

Status check_counts(const SpeculativeConfig& config, const EngineConfig& engine,
                    const Fault& fault) {
  const int k = config.num_speculative_tokens;
  const bool may_be_missing = config.method.empty() || config.method == kMtp;
  if (k < 0 || k > kMaxDrafts || (k == 0 && !may_be_missing)) return bad_number(config, fault);
  if (engine.max_num_batched_tokens == 1) {
    return fault(
        "--max-num-batched-tokens 1 leaves no row for a draft beside a sequence's own; raise it to "
        "2 or more");
  }
  if (config.max_model_len < 0) {
    return fault("max_model_len is " + std::to_string(config.max_model_len) +
                 "; give the longest sequence that is drafted for, or 0 for what the draft model "
                 "allows");
  }
  if (config.draft_vocab_size < 0) {
    return fault("draft_vocab_size is " + std::to_string(config.draft_vocab_size) +
                 "; give the number of tokens that may be drafted, or 0 for all");
  }
  return {};
}

Status check_names(const SpeculativeConfig& config, const Fault& fault) {
  if (config.method.empty() && config.model.empty()) {
    return fault("neither method nor model is given; name a method, for example \"ngram\"");
  }
  if (!config.method.empty()) {
    FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, find_drafter(config.method));
    if (entry->needs_model && config.model.empty()) {
      return fault("method '" + config.method +
                   "' needs 'model', the folder or Hub id of its weights");
    }
  }
  const std::string& sampling = config.draft_sample_method;
  if (sampling != "greedy" && sampling != "probabilistic") {
    return fault("draft_sample_method '" + sampling + "' is unknown; use greedy or probabilistic");
  }
  return {};
}

Status check_policy(const SpeculativeConfig& config, const Fault& fault) {
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

Status check_rates(const SpeculativeConfig& config, const Fault& fault) {
  const std::vector<double>& rates = config.synthetic_acceptance_rates;
  const int k = config.num_speculative_tokens;
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

Status check_synthetic(const SpeculativeConfig& config, const Fault& fault) {
  const double length = config.synthetic_acceptance_length;
  const bool has_rates = !config.synthetic_acceptance_rates.empty();
  if (has_rates && length != 0) {
    return fault(
        "synthetic_acceptance_rates and synthetic_acceptance_length exclude each other; leave one "
        "out");
  }
  if (has_rates) return check_rates(config, fault);
  const int k = config.num_speculative_tokens;
  const int most = (k > 0 ? k : kMaxDrafts) + 1;
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

Status check_rejection(const SpeculativeConfig& config, const Fault& fault) {
  const std::string& method = config.rejection_sample_method;
  if (method == "synthetic") return check_synthetic(config, fault);
  if (method == "standard" || method == "block" || method == "fly") {
    return fault("rejection_sample_method '" + method +
                 "' is not built yet; use coupled or synthetic");
  }
  if (method != "coupled") {
    return fault("rejection_sample_method '" + method +
                 "' is unknown; use coupled or synthetic");
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

}  // namespace

Status check_speculative(const EngineConfig& config) {
  const std::vector<SpeculativeConfig>& all = config.speculative;
  if (all.size() > kMaxDrafters) {
    return invalid_argument("speculative config: " + std::to_string(all.size()) +
                            " drafters are configured; an engine has at most " +
                            std::to_string(kMaxDrafters));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const Fault fault(i, all.size());
    FT_RETURN_IF_ERROR(check_names(all[i], fault));
    FT_RETURN_IF_ERROR(check_counts(all[i], config, fault));
    FT_RETURN_IF_ERROR(check_policy(all[i], fault));
    FT_RETURN_IF_ERROR(check_rejection(all[i], fault));
    const char* field = disagreement(all[0], all[i]);
    if (field != nullptr) {
      return fault(std::string(field) +
                   " differs from the first drafter's; it holds for the whole engine, so give all "
                   "drafters the same");
    }
  }
  return {};
}

Status resolve_methods(EngineConfig& config, const std::vector<std::string>& folders) {
  std::vector<SpeculativeConfig>& all = config.speculative;
  for (size_t i = 0; i < all.size(); ++i) {
    const Fault fault(i, all.size());
    FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, choose_drafter(all[i], folders[i]));
    all[i].method = entry->name;
    if (all[i].num_speculative_tokens == 0 && all[i].method != kMtp) return bad_number(all[i], fault);
    for (size_t j = 0; j < i; ++j) {
      if (all[j].method != all[i].method || all[j].model != all[i].model) continue;
      return fault("'" + all[i].method + "' with the same model is configured twice; leave one out");
    }
    if (config.max_model_len > 0 && all[i].max_model_len > config.max_model_len) {
      return fault("max_model_len " + std::to_string(all[i].max_model_len) +
                   " exceeds the target's, " + std::to_string(config.max_model_len) +
                   "; lower it or leave it out");
    }
  }
  return {};
}

std::array<uint32_t, kMaxDrafts> synthetic_chances(const SpeculativeConfig& config) {
  std::array<double, kMaxDrafts> rates{};
  if (config.synthetic_acceptance_rates.empty()) {
    const double mean = config.synthetic_acceptance_length - 1;
    for (int i = 0; i < kMaxDrafts; ++i) {
      rates[static_cast<size_t>(i)] = std::clamp(mean - i, 0.0, 1.0);
    }
  } else {
    std::copy(config.synthetic_acceptance_rates.begin(), config.synthetic_acceptance_rates.end(),
              rates.begin());
  }
  std::array<uint32_t, kMaxDrafts> chances{};
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
