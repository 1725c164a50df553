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

// A table by which no draft pays: each row costs as much as the first, which never was so little
// that drafting by it lost time. Of a mixture's experts, rows read those that they touch, count (1
// - (1 - top_k / count)^rows) where each row's choice is independent of the others'. Steps that
// really run correct it (CostFeedback), and it serves until one is measured.
CostTable guessed_cost_table(const CostsToGuess& what);

}  // namespace foretoken
