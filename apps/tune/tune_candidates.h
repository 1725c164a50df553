#pragma once
#include <foretoken/config.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/draft_tuning.h"

namespace foretoken {

// A drafter that is measured: an entry of --speculative-config, and what was read from it.
struct TuneDrafter {
  nlohmann::ordered_json entry;
  SpeculativeConfig config;
};

// The drafters to measure for the model in `target` (a folder or Hub id): those that `given` names,
// each a JSON object or the folder or Hub id of a drafter, and those that need no file of the
// user's: the look-ups, the bundled ones of the bundled model, and the MTP modules of a folder that
// has them. Their methods, by which results are told apart, differ: one that is named stands in
// place of one that is found. Every one has room for `max_draft_tokens` drafts, unless it says how
// many itself.
Result<std::vector<TuneDrafter>> tune_drafters(const EngineConfig& target,
                                               const std::vector<std::string>& given,
                                               int max_draft_tokens);

// The same drafters in groups that one engine can have, at most kMaxDrafters; the look-ups begin
// every group, so that lists with them can be measured.
std::vector<std::vector<TuneDrafter>> tune_groups(const std::vector<TuneDrafter>& drafters);

// What requests of each group are drafted by, as SpeculativeParams::method: each drafter, and each
// look-up before each that reads files. Look-ups alone are measured in the first group.
std::vector<std::vector<std::string>> tune_methods(
    const std::vector<std::vector<TuneDrafter>>& groups);

// The entry of --speculative-config for one of these methods with so many drafts; where ranges are
// given, with as many as they say for the number of sequences.
nlohmann::ordered_json tuned_entry(const std::vector<TuneDrafter>& drafters,
                                   const std::string& method, int num_draft_tokens,
                                   const std::vector<bench::TunedRange>& by_batch = {});

}  // namespace foretoken
