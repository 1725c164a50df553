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
  struct Drafter {
    std::string name;
    bool has_kv = false;  // these as DrafterTraits has them
    bool one_pass = false;
    int64_t weight_bytes = 0;
  };
  std::vector<Drafter> drafters = {};
};

// A table by which no draft pays: each row costs as much as the first, which never was so little
// that drafting by it lost time. Steps that really run correct it (CostFeedback), and it serves
// until one is measured.
CostTable guessed_cost_table(const CostsToGuess& what);

}  // namespace foretoken
