#pragma once
#include <foretoken/status.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken::group {

// The sizes of a layout of ranks. One engine has tp x pp ranks; dp engines stand side by side.
struct RankLayout {
  int tp = 1;
  int pp = 1;
  int dp = 1;

  int ranks_per_engine() const { return tp * pp; }
  int num_ranks() const { return tp * pp * dp; }
  bool operator==(const RankLayout&) const = default;
};

// Where a rank stands: its number is (dp * layout.pp + pp) * layout.tp + tp.
struct RankPlace {
  int tp = 0;
  int pp = 0;
  int dp = 0;
  bool operator==(const RankPlace&) const = default;
};

// Every size at least 1 and at most kMaxRanks ranks; the error names the flag.
Status check_layout(const RankLayout& layout);
inline constexpr int kMaxRanks = 4096;

// 0 <= rank < layout.num_ranks().
RankPlace place_of(const RankLayout& layout, int rank);
int rank_of(const RankLayout& layout, const RankPlace& place);

// All ranks of the engine of `place`.
std::vector<int> engine_ranks(const RankLayout& layout, const RankPlace& place);

// The ranks that share `place` but for one coordinate, in its order: those that sum one layer's
// partial products, the chain of stages, and the engines side by side.
std::vector<int> tp_ranks(const RankLayout& layout, const RankPlace& place);
std::vector<int> pp_ranks(const RankLayout& layout, const RankPlace& place);
std::vector<int> dp_ranks(const RankLayout& layout, const RankPlace& place);

// The number, behind all ranks, of a front end that has no engine and so is no rank.
inline int bare_front(const RankLayout& layout) { return layout.num_ranks(); }

// "rank 5 (tp 1, pp 0, dp 2)", with only the coordinates whose size is above 1; "the front end" for
// bare_front.
std::string describe(const RankLayout& layout, int rank);

}  // namespace foretoken::group
