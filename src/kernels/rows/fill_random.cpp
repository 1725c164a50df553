#include "kernels/rows/fill_random.h"

#include "base/check.h"

namespace foretoken {

void fill_random(Queue& queue, const FillRandomArgs& args) {
  FT_CHECK(args.to != nullptr && args.first >= 0 && args.count > 0);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

uint64_t random_weight_seed(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

// A uniform variable on [-1, 1] has deviation 1 / sqrt(3).
float random_weight_scale(float deviation) { return deviation * 1.7320508f * 0x1p-31f; }

}  // namespace foretoken
