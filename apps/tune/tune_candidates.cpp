#include "apps/tune/tune_candidates.h"

#include <foretoken/limits.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "apps/options/models/speculative_list.h"
#include "apps/options/models/speculative_method.h"
#include "base/files/json_object.h"
#include "draft/parts/draft_list.h"
#include "draft/registry.h"
#include "engine/start/locate_model.h"
#include "model/config/config.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

bool reads_files(const TuneDrafter& drafter) {
  return declared_traits(drafter.config.method).reads_files;
}

// `located` is the target's configuration, its model a folder or a file.
Result<TuneDrafter> read_drafter(json entry, const EngineConfig& located, int max_draft_tokens) {
  if (!entry.contains("num_speculative_tokens")) {
    entry["num_speculative_tokens"] = max_draft_tokens;
  }
  entry["length_policy"] = "fixed";
  FT_ASSIGN_OR_RETURN(const std::vector<SpeculativeConfig> read,
                      parse_speculative_config(entry.dump(), located.model));
  if (read.size() != 1) {
    return invalid_argument("--drafter: " + entry.dump() +
                            " is a list; name its drafters one by one, lists of a look-up and each "
                            "of them are measured by themselves");
  }
  EngineConfig config = located;
  config.speculative = read;
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> folders, locate_drafters(config));
  FT_ASSIGN_OR_RETURN(const DrafterEntry* drafter, choose_drafter(read.front(), folders.front()));
  config.speculative.front().method = drafter->name;
  return TuneDrafter{std::move(entry), config.speculative.front()};
}

bool has_method(const std::vector<TuneDrafter>& drafters, const std::string& method) {
  return std::ranges::any_of(drafters,
                             [&](const TuneDrafter& one) { return one.config.method == method; });
}

Result<json> entry_of(const std::string& given) {
  if (given.empty() || given.front() != '{') return json{{"model", given}};
  json entry = parsed_ordered_json(given);
  if (entry.is_object()) return entry;
  return invalid_argument("--drafter: '" + given +
                          "' is no JSON object; write {\"method\": ...} or a folder");
}

bool has_modules(const std::string& folder) {
  const Result<ModelConfig> config = read_model_config(folder, {});
  return config.ok() && config.value().num_mtp_modules > 0;
}

// Rounds ask the same again, so that a drafter that keeps answers would know them all: it is
// measured without what it has kept, and served with it.
constexpr const char* kKeptAnswers = "suffix_decoding_max_cached_requests";

Result<TuneDrafter> read_found(json entry, const EngineConfig& located, int max_draft_tokens) {
  FT_ASSIGN_OR_RETURN(const DrafterEntry* drafter,
                      find_drafter(entry["method"].get<std::string>()));
  const bool keeps = std::ranges::any_of(drafter->fields, [](const MethodField& field) {
    return std::string_view(field.name) == kKeptAnswers;
  });
  if (keeps) entry[kKeptAnswers] = 0;
  FT_ASSIGN_OR_RETURN(TuneDrafter found, read_drafter(std::move(entry), located, max_draft_tokens));
  if (keeps) found.entry.erase(kKeptAnswers);
  return found;
}

std::vector<json> entries_without_files(const std::string& target) {
  std::vector<json> entries;
  for (const DrafterEntry& drafter : drafters()) {
    const std::string name = drafter.name;
    const bool bundled = drafter.traits.reads_files && !bundled_drafter(name, target).empty();
    if (!drafter.traits.reads_files || bundled ||
        (drafter.may_be_targets() && has_modules(target))) {
      entries.push_back({{"method", name}});
    }
  }
  return entries;
}

}  // namespace

Result<std::vector<TuneDrafter>> tune_drafters(const EngineConfig& target,
                                               const std::vector<std::string>& given,
                                               int max_draft_tokens) {
  FT_ASSIGN_OR_RETURN(const EngineConfig located, locate_model(target));
  std::vector<TuneDrafter> named;
  for (const std::string& one : given) {
    FT_ASSIGN_OR_RETURN(json entry, entry_of(one));
    FT_ASSIGN_OR_RETURN(TuneDrafter drafter,
                        read_drafter(std::move(entry), located, max_draft_tokens));
    if (has_method(named, drafter.config.method)) {
      return invalid_argument("--drafter: two of them have the method " + drafter.config.method +
                              ", by which results are told apart; measure one after the other");
    }
    named.push_back(std::move(drafter));
  }
  std::vector<TuneDrafter> all;
  for (json& entry : entries_without_files(located.model)) {
    if (has_method(named, entry["method"].get<std::string>())) continue;
    FT_ASSIGN_OR_RETURN(TuneDrafter drafter,
                        read_found(std::move(entry), located, max_draft_tokens));
    all.push_back(std::move(drafter));
  }
  std::move(named.begin(), named.end(), std::back_inserter(all));
  return all;
}

std::vector<std::vector<TuneDrafter>> tune_groups(const std::vector<TuneDrafter>& drafters) {
  std::vector<TuneDrafter> look_ups;
  std::ranges::copy_if(drafters, std::back_inserter(look_ups),
                       [](const TuneDrafter& one) { return !reads_files(one); });
  std::vector<std::vector<TuneDrafter>> groups = {look_ups};
  for (const TuneDrafter& drafter : drafters) {
    if (!reads_files(drafter)) continue;
    if (groups.back().size() == static_cast<size_t>(kMaxDrafters)) groups.push_back(look_ups);
    groups.back().push_back(drafter);
  }
  return groups;
}

std::vector<std::vector<std::string>> tune_methods(
    const std::vector<std::vector<TuneDrafter>>& groups) {
  std::vector<std::vector<std::string>> all;
  for (const std::vector<TuneDrafter>& group : groups) {
    const bool is_first = all.empty();
    std::vector<std::string>& methods = all.emplace_back();
    std::vector<std::string> look_ups;
    for (const TuneDrafter& drafter : group) {
      const std::string& method = drafter.config.method;
      if (!reads_files(drafter)) look_ups.push_back(method);
      if (is_first || reads_files(drafter)) methods.push_back(method);
      if (!reads_files(drafter)) continue;
      for (const std::string& look_up : look_ups) methods.push_back(list_name({look_up, method}));
    }
  }
  return all;
}

json tuned_entry(const std::vector<TuneDrafter>& drafters, const std::string& method,
                 int num_draft_tokens, const std::vector<bench::TunedRange>& by_batch) {
  const std::vector<std::string> names = names_of_list(method);
  json entry;
  for (const TuneDrafter& drafter : drafters) {
    if (drafter.config.method == names.back()) entry = drafter.entry;
  }
  entry.erase("length_policy");
  entry["method"] = names.size() == 1 ? json(names.front()) : json(names);
  entry["num_speculative_tokens"] = num_draft_tokens;
  for (const bench::TunedRange& range : by_batch) {
    entry["num_speculative_tokens_per_batch_size"].push_back(
        {range.first, range.last, range.num_draft_tokens});
  }
  return entry;
}

}  // namespace foretoken
