#include "apps/options/engine_variant.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "apps/options/engine_options.h"
#include "apps/terminal/interrupt.h"
#include "compat/compat.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

// Drafts that none of the rates speaks of are cut off with them.
void fix_length(int num_draft_tokens, EngineConfig* config) {
  for (SpeculativeConfig& drafter : config->speculative) {
    drafter.length_policy = "fixed";
    drafter.num_speculative_tokens_per_batch_size.clear();
    if (num_draft_tokens == 0) continue;
    drafter.num_speculative_tokens = num_draft_tokens;
    std::vector<double>& rates = drafter.synthetic_acceptance_rates;
    rates.resize(std::min(rates.size(), static_cast<size_t>(num_draft_tokens)));
  }
}

Result<EngineConfig> with_lengths(const EngineConfig& base, const std::string& name) {
  EngineConfig config = base;
  if (name == "off") {
    config.speculative.clear();
    config.step_time_table.clear();
    return config;
  }
  if (name == "as-given") return config;
  const bool known = name == "adaptive" || name.rfind("fixed", 0) == 0;
  if (known) FT_RETURN_IF_ERROR(check_drafts_of_variant(base, name));
  if (name == "adaptive") {
    for (SpeculativeConfig& drafter : config.speculative) {
      drafter.length_policy = "adaptive";
      drafter.num_speculative_tokens_per_batch_size.clear();
    }
    return config;
  }
  const std::string digits = name.rfind("fixed:", 0) == 0 ? name.substr(6) : "";
  const bool number = !digits.empty() && digits.size() < 3 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  const int most = base.speculative.empty() ? kMaxSpeculativeTokens
                                            : base.speculative.front().num_speculative_tokens;
  if (name != "fixed" && (!number || std::stoi(digits) < 1 || std::stoi(digits) > most)) {
    return invalid_argument(fmt::format(
        "--variants '{}': must be off, adaptive, as-given, fixed or fixed:K with K from 1 to {}",
        name, most));
  }
  fix_length(number ? std::stoi(digits) : 0, &config);
  return config;
}

// The name without "+B" at its end, which is the number of branches of drafters that have some.
Result<std::string> take_branches(const std::string& name, int* num_branches) {
  const size_t plus = name.find('+');
  if (plus == std::string::npos) return name;
  const std::string digits = name.substr(plus + 1);
  const bool number = !digits.empty() && digits.size() < 3 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  if (!number) {
    return invalid_argument(fmt::format(
        "--variants '{}': behind the + stands the number of branches (num_branches), 0 to 32",
        name));
  }
  *num_branches = std::stoi(digits);
  return name.substr(0, plus);
}

}  // namespace

Status check_drafts_of_variant(const EngineConfig& base, const std::string& name) {
  return compat({.drafts = !base.speculative.empty(),
                 .speculative_wish = "--variants " + name + " is given"});
}

Result<EngineConfig> engine_variant(const EngineConfig& base, const std::string& name) {
  const size_t at = name.find('@');
  int num_branches = -1;
  FT_ASSIGN_OR_RETURN(const std::string lengths, take_branches(name.substr(0, at), &num_branches));
  FT_ASSIGN_OR_RETURN(EngineConfig config, with_lengths(base, lengths));
  for (SpeculativeConfig& drafter : config.speculative) {
    const Result<const DrafterEntry*> entry = find_drafter(drafter.method);
    const bool branches = !entry.ok() || entry.value()->traits.branches;
    if (num_branches >= 0 && branches) drafter.num_branches = num_branches;
  }
  if (at == std::string::npos) return config;
  const std::string steps = name.substr(at + 1);
  if (steps.size() != 1 || steps[0] < '1' || steps[0] > '3') {
    return invalid_argument(
        fmt::format("--variants '{}': behind the @ stand 1 to 3 steps in flight", name));
  }
  config.steps_in_flight = steps[0] - '0';
  return config;
}

Result<std::vector<std::unique_ptr<Engine>>> start_engines(const EngineConfig& base,
                                                           const std::vector<std::string>& names) {
  std::vector<EngineConfig> configs;
  for (const std::string& name : names) {
    FT_ASSIGN_OR_RETURN(EngineConfig config, engine_variant(base, name));
    if (!config.profile.empty() && names.size() > 1) config.profile += "." + name;
    configs.push_back(std::move(config));
  }
  std::vector<std::unique_ptr<Engine>> engines(configs.size());
  for (size_t i = 0; i < configs.size(); ++i) {
    FT_RETURN_IF_ERROR(make_engine(configs[i], &engines[i]));
    if (interrupt_flag().load()) return aborted("interrupted");
  }
  return engines;
}

}  // namespace foretoken
