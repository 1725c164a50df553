#include "spec/learned_rates_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/files/json_object.h"
#include "spec/cost_table.h"

namespace foretoken {
namespace {

constexpr int kRatesFormat = 3;
constexpr size_t kMaxSteps = size_t{CostFeedback::kNumSizes} * (kMaxDraftTokens + 1);

// Members of an object, each read by its key; `fault` is the first one that is not there as wanted.
class Members {
 public:
  Members(const nlohmann::json& json, std::string& fault) : json_(json), fault_(fault) {}

  template <class Int>
  void read(const char* key, int64_t low, int64_t high, Int& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr || !fits(*found, low, high)) return note(key);
    value = found->get<Int>();
  }

  // As many values as the list must have.
  template <class Values>
  void read_list(const char* key, int num, int64_t low, int64_t high, Values& values) {
    const nlohmann::json* found = find(key);
    if (found == nullptr || !found->is_array() || found->size() != static_cast<size_t>(num))
      return note(key);
    for (size_t i = 0; i < found->size(); ++i) {
      if (!fits((*found)[i], low, high)) return note(key);
      (*found)[i].get_to(values[i]);
    }
  }

  void read(const char* key, std::string& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr || !found->is_string()) return note(key);
    value = found->get<std::string>();
  }

  // An object or a list; an empty one where there is none.
  nlohmann::json part(const char* key) {
    const nlohmann::json* found = find(key);
    if (found != nullptr && found->is_structured()) return *found;
    note(key);
    return nlohmann::json::object();
  }

 private:
  static bool fits(const nlohmann::json& value, int64_t low, int64_t high) {
    if (!value.is_number_integer()) return false;
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(high))
      return false;
    return value.get<int64_t>() >= low && value.get<int64_t>() <= high;
  }
  const nlohmann::json* find(const char* key) const {
    return json_.is_object() && json_.contains(key) ? &json_[key] : nullptr;
  }
  void note(const char* key) {
    if (fault_.empty()) fault_ = key;
  }

  const nlohmann::json& json_;
  std::string& fault_;
};

template <class Values>
nlohmann::ordered_json list_json(const Values& values, int num) {
  auto list = nlohmann::ordered_json::array();
  for (int i = 0; i < num; ++i) list.push_back(values[static_cast<size_t>(i)]);
  return list;
}

nlohmann::ordered_json policy_json(const PolicyState& policy, int num) {
  const BatchRates::State& rates = policy.rates.state();
  return {{"rates", list_json(rates.rates, num)},
          {"num_rated", list_json(rates.num_rated, num)},
          {"share", rates.share},
          {"num_seen", policy.num_seen},
          {"num_ever", policy.num_ever},
          {"num_draft_tokens", policy.num_draft_tokens}};
}

nlohmann::ordered_json drafter_json(const LearnedDrafter& drafter) {
  const int num = drafter.max_draft_tokens;
  return {{"name", drafter.name},
          {"max_draft_tokens", num},
          {"num_rated", drafter.prior.num_rated},
          {"since_draft", drafter.prior.since_draft},
          {"rates", list_json(drafter.prior.rates, num)},
          {"policy", policy_json(drafter.policy, num)},
          {"in_lists", policy_json(drafter.in_lists, num)}};
}

PolicyState read_policy(const nlohmann::json& json, int num, std::string& fault) {
  constexpr int32_t kMaxCount = spec::RateConstants::kMaxCount;
  Members members(json, fault);
  PolicyState policy;
  BatchRates::State rates = policy.rates.state();
  members.read_list("rates", num, 0, BatchRates::kOne, rates.rates);
  members.read_list("num_rated", num, 0, kMaxCount, rates.num_rated);
  members.read("share", 0, BatchRates::kOne, rates.share);
  members.read("num_seen", 0, kMaxCount, policy.num_seen);
  members.read("num_ever", 0, kMaxCount, policy.num_ever);
  members.read("num_draft_tokens", 0, num, policy.num_draft_tokens);
  policy.rates = BatchRates(rates);
  return policy;
}

// Lists of four numbers, shorter than members with names: there may be hundreds.
nlohmann::ordered_json steps_json(const std::vector<CostFeedback::Known>& steps) {
  auto list = nlohmann::ordered_json::array();
  for (const CostFeedback::Known& each : steps) {
    list.push_back(
        nlohmann::ordered_json::array({each.size, each.drafts, each.ratio, each.table_ns}));
  }
  return list;
}

std::vector<CostFeedback::Known> read_steps(const nlohmann::json& json, std::string& fault) {
  constexpr int64_t kOne = CostFeedback::kRatioOne, kMax = CostFeedback::kMaxRatio;
  std::vector<CostFeedback::Known> steps;
  if (json.size() > kMaxSteps) fault = "steps";
  for (const nlohmann::json& each : json) {
    const bool is_whole =
        each.is_array() && each.size() == 4 &&
        std::all_of(each.begin(), each.end(), [](const auto& n) { return n.is_number_integer(); });
    if (!is_whole) fault = "steps";
    if (!fault.empty()) return {};
    const std::array<int64_t, 4> own = {each[0].get<int64_t>(), each[1].get<int64_t>(),
                                        each[2].get<int64_t>(), each[3].get<int64_t>()};
    const bool fits = own[0] >= 0 && own[0] < CostFeedback::kNumSizes && own[1] >= 0 &&
                      own[1] <= kMaxDraftTokens && own[2] >= kOne / kMax && own[2] <= kOne * kMax &&
                      own[3] > 0 && own[3] <= CostLimits::kMaxNs;
    if (!fits) fault = "steps";
    steps.push_back({static_cast<int>(own[0]), static_cast<int>(own[1]), own[2], own[3]});
  }
  return steps;
}

LearnedDrafter read_learned_drafter(const nlohmann::json& json, std::string& fault) {
  constexpr int32_t kMaxCount = spec::RateConstants::kMaxCount;
  Members members(json, fault);
  LearnedDrafter drafter;
  members.read("name", drafter.name);
  members.read("max_draft_tokens", 1, kMaxDraftTokens, drafter.max_draft_tokens);
  const int num = drafter.max_draft_tokens;
  spec::start_first_rates(drafter.prior);
  members.read("num_rated", 0, kMaxCount, drafter.prior.num_rated);
  members.read("since_draft", 0, kMaxCount, drafter.prior.since_draft);
  members.read_list("rates", num, 0, spec::RateConstants::kOne, drafter.prior.rates);
  drafter.policy = read_policy(members.part("policy"), num, fault);
  drafter.in_lists = read_policy(members.part("in_lists"), num, fault);
  return drafter;
}

}  // namespace

std::string learned_rates_to_json(const LearnedRates& learned) {
  nlohmann::ordered_json json{{"format", kRatesFormat}, {"learned_on", learned.learned_on}};
  json["drafters"] = nlohmann::ordered_json::array();
  for (const LearnedDrafter& drafter : learned.drafters) {
    json["drafters"].push_back(drafter_json(drafter));
  }
  json["step_times"] = learned.step_times;
  json["steps"] = steps_json(learned.steps);
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<LearnedRates> parse_learned_rates(std::string_view json, const std::string& what) {
  FT_ASSIGN_OR_RETURN(const nlohmann::json root, parse_json_object(json, what));
  LearnedRates learned;
  std::string fault;
  Members members(root, fault);
  int format = 0;
  members.read("format", kRatesFormat, kRatesFormat, format);
  members.read("learned_on", learned.learned_on);
  const nlohmann::json drafters = members.part("drafters");
  if (drafters.size() > kMaxDrafters) fault = "drafters";
  for (const nlohmann::json& drafter : drafters) {
    if (fault.empty()) learned.drafters.push_back(read_learned_drafter(drafter, fault));
  }
  members.read("step_times", learned.step_times);
  const nlohmann::json steps = members.part("steps");
  if (fault.empty()) learned.steps = read_steps(steps, fault);
  if (fault.empty()) return learned;
  return invalid_argument(what + ": '" + fault + "' is missing or not as this build writes it");
}

}  // namespace foretoken
