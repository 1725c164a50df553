#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "draft/look_up_drafter.h"

namespace foretoken {

// Tokens of the shortest and of the longest piece of text that is looked up.
struct LookupRange {
  int min_n;
  int max_n;
};
// Of a configuration: 5 where nothing is given, and where one bound is missing the other one.
// InvalidArgument unless 1 <= min <= max <= 64.
Result<LookupRange> lookup_range(const SpeculativeConfig& config);
Status check_ngram_fields(const SpeculativeConfig& config);

// Prompt lookup (Saxena 2023): see kernels/draft/ngram.h.
Result<LookUp> ngram_look_up(const SpeculativeConfig& config);

}  // namespace foretoken
