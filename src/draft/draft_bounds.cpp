#include "draft/draft_bounds.h"

#include <algorithm>
#include <string>

namespace foretoken {

Result<int> draft_max_len(const DrafterContext& context, int own) {
  const int wanted = context.config.max_model_len;
  const auto too_long = [&](const std::string& whose, int most) {
    return invalid_argument("speculative config: max_model_len " + std::to_string(wanted) +
                            " is above " + whose + " " + std::to_string(most) +
                            "; use at most that, or leave it out");
  };
  if (wanted < 0) {
    return invalid_argument("speculative config: max_model_len is " + std::to_string(wanted) +
                            "; give a positive number of tokens, or leave it out");
  }
  if (wanted > own) return too_long("the drafter's own", own);
  if (wanted > context.max_model_len) return too_long("the target's", context.max_model_len);
  return std::min({own, context.max_model_len, wanted > 0 ? wanted : own});
}

Result<bool> samples_drafts(const SpeculativeConfig& config) {
  if (config.draft_sample_method == "greedy") return false;
  if (config.draft_sample_method == "probabilistic") return true;
  return invalid_argument("speculative config: draft_sample_method '" + config.draft_sample_method +
                          "' must be greedy or probabilistic");
}

}  // namespace foretoken
