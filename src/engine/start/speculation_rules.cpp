#include "engine/start/speculation_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "spec/draft_schedule.h"

namespace foretoken {
namespace {

Status rule_fault(const std::string& what) {
  return invalid_argument("speculative config: " + what);
}

std::string rate_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

Status check_rates(const SpeculativeConfig& config) {
  const std::vector<double>& rates = config.synthetic_acceptance_rates;
  const int k = config.num_speculative_tokens;
  // An MTP drafter may leave K to its model: the rates are looked at again once that is known.
  if (k == 0 && rates.size() > kMaxDraftTokens) {
    return rule_fault("synthetic_acceptance_rates has " + std::to_string(rates.size()) +
                      " entries; at most " + std::to_string(kMaxDraftTokens) + " are possible");
  }
  if (k > 0 && static_cast<int>(rates.size()) != k) {
    return rule_fault("synthetic_acceptance_rates has " + std::to_string(rates.size()) +
                      " entries; give one for each of the " + std::to_string(k) +
                      " num_speculative_tokens");
  }
  double before = 1;
  for (const double rate : rates) {
    if (!(rate >= 0 && rate <= 1)) {
      return rule_fault("synthetic_acceptance_rates has " + rate_text(rate) +
                        "; rates lie in [0, 1]");
    }
    if (rate > before) {
      return rule_fault(
          "synthetic_acceptance_rates rise from " + rate_text(before) + " to " + rate_text(rate) +
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
    return rule_fault(
        "synthetic_acceptance_rates and synthetic_acceptance_length exclude each other; leave one "
        "out");
  }
  if (has_rates) return check_rates(config);
  const int k = config.num_speculative_tokens;
  const int most = (k > 0 ? k : kMaxDraftTokens) + 1;
  if (length == 0) {
    return rule_fault(
        "rejection_sample_method 'synthetic' needs synthetic_acceptance_rates or "
        "synthetic_acceptance_length");
  }
  if (!(length >= 1 && length <= most)) {
    return rule_fault("synthetic_acceptance_length is " + rate_text(length) + "; use 1 to " +
                      std::to_string(most) + ", num_speculative_tokens and the token after them");
  }
  return {};
}

Result<LengthMode> named_mode(const std::string& policy) {
  if (policy == "adaptive") return LengthMode::kAdaptive;
  if (policy == "fixed") return LengthMode::kFixed;
  if (policy == "off") return LengthMode::kOff;
  return rule_fault("length_policy '" + policy + "' is unknown; use adaptive, fixed or off");
}

}  // namespace

const char* acceptance_method_name(AcceptanceMethod method) {
  return method == AcceptanceMethod::kSynthetic ? "synthetic" : "coupled";
}

Result<LengthMode> length_mode(const SpeculativeConfig& config) {
  FT_ASSIGN_OR_RETURN(const LengthMode mode, named_mode(config.length_policy));
  const std::vector<DraftSchedule>& schedule = config.num_speculative_tokens_per_batch_size;
  if (schedule.empty()) return mode;
  if (mode == LengthMode::kOff) {
    return rule_fault(
        "length_policy 'off' and num_speculative_tokens_per_batch_size exclude each other; leave "
        "one out");
  }
  FT_RETURN_IF_ERROR(check_schedule(schedule));
  return LengthMode::kSchedule;
}

Result<AcceptanceMethod> acceptance_method(const SpeculativeConfig& config) {
  const std::string& method = config.rejection_sample_method;
  if (method == "synthetic") {
    FT_RETURN_IF_ERROR(check_synthetic(config));
    return AcceptanceMethod::kSynthetic;
  }
  // Texts are distributed alike by all of them.
  constexpr std::array<std::string_view, 4> kLossless = {"standard", "strict", "probabilistic",
                                                         "block"};
  if (std::ranges::find(kLossless, method) != kLossless.end()) return AcceptanceMethod::kCoupled;
  if (method == "fly") {
    return rule_fault(
        "rejection_sample_method 'fly' changes the text; leave it out for coupled, which does not");
  }
  if (method != "coupled") {
    return rule_fault("rejection_sample_method '" + method +
                      "' is unknown; use coupled or synthetic");
  }
  if (!config.synthetic_acceptance_rates.empty() || config.synthetic_acceptance_length != 0) {
    return rule_fault(
        "synthetic acceptance needs \"rejection_sample_method\": \"synthetic\"; add it, or leave "
        "the rates out");
  }
  return AcceptanceMethod::kCoupled;
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
