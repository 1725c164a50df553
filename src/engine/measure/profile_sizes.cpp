#include "engine/measure/profile_sizes.h"

#include <cstddef>

namespace foretoken {

std::vector<int> profile_sizes(int most, bool tiles) {
  std::vector<int> all;
  for (int size = 1; size < most; size *= 2) all.push_back(size);
  all.push_back(most);
  std::vector<int> order;
  for (const size_t begin : {size_t{0}, size_t{1}}) {
    for (size_t i = begin; i < all.size(); i += 2) order.push_back(all[i]);
  }
  for (const int size : {72, 144, 288}) {
    if (tiles && size < most) order.push_back(size);
  }
  return order;
}

std::vector<int> profile_drafts(int most) {
  std::vector<int> counts = {0};
  for (const int count : {1, 2, 3, 4, 6, 8, 12}) {
    if (count < most) counts.push_back(count);
  }
  if (most > 0) counts.push_back(most);
  return counts;
}

}  // namespace foretoken
