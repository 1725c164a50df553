#include "compat/context_ranks.h"

#include <numeric>

namespace foretoken {

// A rank has whole heads where there are as many, else the one that its queries read: 4 ranks and 2
// heads are 2 ranks with each.
int ranks_with_equal_kv(std::span<const int> kv_heads, int num_ranks) {
  int all = num_ranks;
  for (const int heads : kv_heads) {
    all = std::gcd(all, num_ranks % heads == 0 ? num_ranks / heads : 1);
  }
  return all;
}

// Words hold two numbers.
bool divides_rows(int hidden_size, int num_context_ranks) {
  return hidden_size % (2 * num_context_ranks) == 0;
}

}  // namespace foretoken
