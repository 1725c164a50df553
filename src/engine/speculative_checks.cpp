#include "engine/speculative_checks.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/json_object.h"
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

Status check_counts(const SpeculativeConfig& config, const EngineConfig& engine,
                    const Fault& fault) {
  const int k = config.num_speculative_tokens;
  if (k < 1 || k > kMaxDrafts) {
    return fault("num_speculative_tokens is " + std::to_string(k) + "; give a number from 1 to " +
                 std::to_string(kMaxDrafts));
  }
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

Status check_schedule(const SpeculativeConfig& config, const Fault& fault) {
  const std::vector<DraftSchedule>& schedule = config.num_speculative_tokens_per_batch_size;
  const std::string field = "num_speculative_tokens_per_batch_size";
  if (schedule.empty()) return {};
  if (config.length_policy == "off") {
    return fault("length_policy 'off' and " + field + " exclude each other; leave one out");
  }
  if (schedule.front().first != 1) {
    return fault(field + " begins at batch size " + std::to_string(schedule.front().first) +
                 "; its first range must begin at 1");
  }
  int behind = 0;
  for (const DraftSchedule& range : schedule) {
    const std::string shown = "[" + std::to_string(range.first) + ", " +
                              std::to_string(range.last) + ", " +
                              std::to_string(range.num_speculative_tokens) + "]";
    if (range.last < range.first) {
      return fault(field + ": the range " + shown + " ends before it begins");
    }
    if (range.first <= behind) {
      return fault(field + ": the range " + shown +
                   " overlaps the one before it; give ranges in ascending order");
    }
    if (range.num_speculative_tokens < 0) {
      return fault(field + ": the range " + shown + " has a negative number of drafts; use 0 or more");
    }
    behind = range.last;
  }
  return {};
}

Status check_policy(const SpeculativeConfig& config, const Fault& fault) {
  const std::string& policy = config.length_policy;
  if (policy != "adaptive" && policy != "fixed" && policy != "off") {
    return fault("length_policy '" + policy + "' is unknown; use adaptive, fixed or off");
  }
  return check_schedule(config, fault);
}

Status check_rates(const SpeculativeConfig& config, const Fault& fault) {
  const std::vector<double>& rates = config.synthetic_acceptance_rates;
  const int k = config.num_speculative_tokens;
  if (static_cast<int>(rates.size()) != k) {
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
  const int most = config.num_speculative_tokens + 1;
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

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The architectures in config.json of a folder, or nothing where it cannot be read.
std::string architectures_of(const std::string& folder) {
  std::ifstream file(std::filesystem::path(folder) / "config.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<nlohmann::json> parsed = parse_json_object(text, "config.json");
  if (!parsed.ok()) return "";
  const nlohmann::json& json = parsed.value();
  std::string names;
  for (const char* field : {"architectures", "speculators_model_type", "model_type"}) {
    if (json.contains(field)) names += json.at(field).dump() + " ";
  }
  return names;
}

// As vLLM guesses from the name of the model, but its own word counts first.
std::string method_of(const std::string& folder, const std::string& model) {
  const std::string name = std::filesystem::path(model).filename().string();
  for (const std::string& words : {lower(architectures_of(folder)), lower(name)}) {
    if (contains(words, "eagle3") || contains(words, "eagle-3")) return "eagle3";
    if (contains(words, "eagle")) return "eagle";
    if (contains(words, "mtp")) return "mtp";
  }
  return "draft_model";
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
    if (all[i].method.empty()) all[i].method = method_of(folders[i], all[i].model);
    FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, find_drafter(all[i].method));
    all[i].method = entry->name;
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
