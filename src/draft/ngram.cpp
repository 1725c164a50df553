#include "draft/ngram.h"

#include <string>

#include "kernels/draft/ngram.h"

namespace foretoken {
namespace {

// vLLM's value when a configuration names neither bound.
constexpr int kDefaultLookup = 5;
constexpr int kMaxLookup = 64;

}  // namespace

Result<LookupRange> lookup_range(const SpeculativeConfig& config) {
  int min_n = config.prompt_lookup_min;
  int max_n = config.prompt_lookup_max;
  if (min_n == 0 && max_n == 0) min_n = max_n = kDefaultLookup;
  if (min_n == 0) min_n = max_n;
  if (max_n == 0) max_n = min_n;
  if (min_n < 1 || min_n > max_n || max_n > kMaxLookup) {
    return invalid_argument("speculative config: prompt_lookup_min " + std::to_string(min_n) +
                            " and prompt_lookup_max " + std::to_string(max_n) +
                            " must satisfy 1 <= min <= max <= " + std::to_string(kMaxLookup));
  }
  return LookupRange{min_n, max_n};
}

Status check_ngram_fields(const SpeculativeConfig& config) { return lookup_range(config).status(); }

Result<LookUp> ngram_look_up(const SpeculativeConfig& config) {
  FT_ASSIGN_OR_RETURN(const LookupRange range, lookup_range(config));
  return LookUp([range](Queue& queue, const DraftStep& step, const DraftShape& shape) {
    ngram(queue, {.plan = step.plan,
                  .limits = step.limits,
                  .batch = step.batch,
                  .num_draft_tokens = shape.num_draft_tokens,
                  .drafter = step.index,
                  .min_n = range.min_n,
                  .max_n = range.max_n});
  });
}

}  // namespace foretoken
