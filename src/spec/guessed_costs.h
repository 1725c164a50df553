#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "spec/cost_table.h"

namespace foretoken {

// What times are guessed from, before any were measured.
struct CostsToGuess {
  int64_t weight_bytes = 0;      // of the target
  int64_t bytes_per_second = 1;  // that the device reads
  // A row beyond the first costs the first one's time divided by this. 1: no draft pays by the
  // guess. More: drafts of which nothing is known are tried, and what steps take corrects the rest.
  int64_t rows_per_step = 1;
  // What lies in a mixture of experts, of which a row reads top_k of `count` in each layer.
  struct Experts {
    int64_t weight_bytes = 0;  // of all of them; 0: there are none
    int count = 1;
    int top_k = 1;
  };
  Experts experts = {};
  struct Drafter {
    std::string name;
    bool has_kv = false;  // these as DrafterTraits has them
    bool one_pass = false;
    int64_t weight_bytes = 0;
  };
  std::vector<Drafter> drafters = {};
};

// What steps may take by the bytes that they read. Of a mixture's experts, rows read those that
// they touch, count (1 - (1 - top_k / count)^rows) where each row's choice is independent of the
// others'. Steps that really run correct it (CostFeedback), and it serves until times are measured.
CostTable guessed_cost_table(const CostsToGuess& what);

// Fills in what there was no time to measure: a curve of `times` with less than two points goes as
// the guess's, through its own point where it has one, otherwise as much faster or slower as the
// target's first row was. A target with less than two points is a guess (CostTable::is_guess).
//
// Example: a row took 60 ms, for which the guess says 100, and 125 for two. Then two rows take 75,
// and a pass of which nothing else is known than that the guess says 10 ms takes 6.
void complete_costs(CostTable& times, const CostTable& guess);

}  // namespace foretoken
