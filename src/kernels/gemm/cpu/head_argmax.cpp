#include "kernels/gemm/head_argmax.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/check.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/gemm/cpu/packed_weight.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// The highest admitted product of a row and the stretch that it is first found in. NaN is passed
// over; -inf: there is none.
struct Highest {
  float product;
  int begin;
};
constexpr int kStretch = 8 * kLanes;

FT_INLINE float highest_lane(const Lanes& v) {
  const auto a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto b = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto eight = a > b ? a : b;
  const auto c = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
  const auto d = __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const auto four = c > d ? c : d;
  const float e = four[0] > four[2] ? four[0] : four[2];
  const float f = four[1] > four[3] ? four[1] : four[3];
  return e > f ? e : f;
}

template <bool kMapped>
FT_INLINE void take_highest(Lanes& best, const float* products, const int32_t* id_map, int at) {
  Lanes lanes;
  load(lanes, products + at);
  if (kMapped) {
    LanesU32 ids;
    std::memcpy(&ids, id_map + at, sizeof ids);
    lanes = ids >= 0x80000000u ? Lanes{} + kMinusInf : lanes;
  }
  best = lanes > best ? lanes : best;
}

template <bool kMapped>
FT_INLINE Highest highest(const float* products, const int32_t* id_map, int n) {
  Highest found{kMinusInf, 0};
  int i = 0;
  for (; i + kStretch <= n; i += kStretch) {
    Lanes even = Lanes{} + kMinusInf, odd = even;
    for (int j = i; j < i + kStretch; j += 2 * kLanes) {
      take_highest<kMapped>(even, products, id_map, j);
      take_highest<kMapped>(odd, products, id_map, j + kLanes);
    }
    const float product = highest_lane(even > odd ? even : odd);
    if (product > found.product) found = {product, i};
  }
  for (; i < n; ++i) {
    const bool admitted = !kMapped || id_map[i] >= 0;
    if (admitted && products[i] > found.product) found = {products[i], i};
  }
  return found;
}

FT_HOT Highest highest_of_all(const float* products, int n) {
  return highest<false>(products, nullptr, n);
}
FT_HOT Highest highest_admitted(const float* products, const int32_t* id_map, int n) {
  return highest<true>(products, id_map, n);
}

void raise(uint64_t& best, uint64_t key) {
  std::atomic_ref<uint64_t> shared(best);
  uint64_t seen = shared.load(std::memory_order_relaxed);
  while (key > seen && !shared.compare_exchange_weak(seen, key, std::memory_order_relaxed)) {
  }
}

// Rows [first, first + rows) against one slice of the weight. The products never leave the tile.
void search_tile(const HeadArgmaxArgs& a, const PackedWeight& weight, int slice, int64_t first,
                 int rows, const float* tile) {
  const int col = weight.first_col(slice);
  const int cols = weight.cols(slice);
  const int32_t* map = a.id_map != nullptr ? a.id_map + col : nullptr;
  auto* best = static_cast<uint64_t*>(a.workspace) + first;
  for (int r = 0; r < rows; ++r) {
    const float* products = tile + int64_t{r} * cols;
    const Highest found =
        map != nullptr ? highest_admitted(products, map, cols) : highest_of_all(products, cols);
    if (found.product == kMinusInf) continue;
    int at = found.begin;
    while (products[at] != found.product || (map != nullptr && map[at] < 0)) ++at;
    raise(best[r], argmax_key(sample_math::ordered_key(found.product), col + at));
  }
}

}  // namespace

void head_argmax(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const HeadArgmaxArgs*>(args);
  const auto& weight = *static_cast<const PackedWeight*>(a.weight);
  FT_CHECK(weight.n() == a.n && weight.k() == a.k && weight.dtype() == a.dtype);
  const int rows = live_rows(*a.counts, RowKind::kLogits, 0, a.max_rows);
  auto* best = static_cast<uint64_t*>(a.workspace);
  std::fill_n(best, rows, uint64_t{0});
  for_each_product_tile(pool, weight, a.x, rows, a.max_rows,
                        [&](int slice, int64_t first, int count, const float* products) {
                          search_tile(a, weight, slice, first, count, products);
                        });
  for (int row = 0; row < rows; ++row) {
    // A lower key stands for a higher row, so that the shift to the matrix' rows is a difference.
    if (a.keys != nullptr) {
      a.keys[row] = best[row] == 0 ? 0 : best[row] - static_cast<uint32_t>(a.first_row);
      continue;
    }
    const int32_t n = row_of_argmax_key(best[row]);
    a.ids[row] = best[row] == 0 ? -1 : a.id_map != nullptr ? a.id_map[n] : n;
  }
}

}  // namespace foretoken::cpu
