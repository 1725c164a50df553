#pragma once
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// What a configuration says of suffix decoding, by vLLM's names and with its defaults.
struct SuffixFields {
  int max_tree_depth = 24;           // tokens of the longest piece of text that is looked up
  int max_cached_requests = 10'000;  // of the last so many, answers are known; 0: of none
  double max_spec_factor = 1;        // drafts, by tokens of the piece that was found
  double min_token_prob = 0.1;       // drafts that are less likely are not made
};

// InvalidArgument when one is out of its range.
Result<SuffixFields> suffix_fields(const SpeculativeConfig& config);
Status check_suffix_fields(const SpeculativeConfig& config);

// Device memory of the table of past answers, whatever the fields but max_cached_requests 0.
inline constexpr int64_t kSuffixTableBytes = int64_t{16} << 20;

// Suffix decoding (Oliaro et al. 2024): see kernels/draft/suffix.h. It reads token pages through
// the block tables and keeps past answers in a table of fixed size. Without a number of drafts
// there are as many as a piece has tokens, at most kMaxOwnDrafts.
Result<std::unique_ptr<Drafter>> make_suffix_drafter(const DrafterContext& context);

}  // namespace foretoken
