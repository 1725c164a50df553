#pragma once
#include <cstdint>

#include "base/result.h"
#include "group/rank_link.h"

namespace foretoken {

// What every rank of an engine does with its device's memory while the engine rests. Ranks run one
// build, so that it travels as it is.
struct SleepOrder {
  enum class Kind : uint8_t { kGiveBack, kTake };
  Kind kind = Kind::kGiveBack;
  // Whether what is meant is that of weights, and of blocks.
  bool weights = true;
  bool blocks = true;
  bool keeps_weights = true;  // kGiveBack: in host memory
};

// What a rank, or all of them, have afterwards.
struct SleepOutcome {
  Status status = {};  // why the order was not obeyed; the rank has what it had before
  int64_t bytes = 0;   // that were given back
  bool weights_are_away = false;
  bool weights_are_lost = false;  // and are to be read from their files again
  bool blocks_are_away = false;
};

// Every rank of `link` calls it with what came of an order there: sums of all ranks, what is away
// on any of them, and the first failure, with the rank's number. The error is the group's end.
Result<SleepOutcome> outcome_of_all(group::RankLink& link, const SleepOutcome& own);

}  // namespace foretoken
