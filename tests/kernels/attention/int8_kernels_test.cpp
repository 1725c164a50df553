#include "kernels/attention/cpu/int8_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

constexpr int kEntries = 37, kQueries = 9;

// Entries somewhere in memory, each with bytes behind it that are no codes.
struct Cache {
  std::vector<int8_t> bytes;
  std::vector<const int8_t*> entries;
};

Cache make_cache(int dim) {
  Cache cache;
  std::mt19937 generator(static_cast<unsigned>(dim));
  std::uniform_int_distribution<int> code(-127, 127);
  const int stride = dim + 4;
  for (int i = 0; i < kEntries * stride; ++i) {
    cache.bytes.push_back(static_cast<int8_t>(code(generator)));
  }
  for (int i = 0; i < kEntries; ++i) {
    cache.entries.push_back(cache.bytes.data() + (i * 5 % kEntries) * stride);
  }
  return cache;
}

class Int8KernelsTest : public testing::TestWithParam<int> {};

TEST_P(Int8KernelsTest, ScoresAreExact) {
  const int dim = GetParam();
  const Cache cache = make_cache(dim);
  std::vector<int16_t> queries;
  std::mt19937 generator(7);
  std::uniform_int_distribution<int> code(-32767, 32767);
  for (int i = 0; i < kQueries * dim; ++i) queries.push_back(static_cast<int16_t>(code(generator)));
  // The largest sum there can be.
  for (int d = 0; d < dim; ++d) queries[static_cast<size_t>(d)] = 32767;
  for (const Int8Kernels& kernels : int8_kernels()) {
    for (int count : {1, 2, 3, 4, 5, kEntries}) {
      for (int num = 1; num <= kQueries; ++num) {
        std::vector<int32_t> dots(kQueries * 50, -1);
        kernels.score({cache.entries.data(), count, dim},
                      {queries.data(), dim, dots.data(), 50, num});
        for (int q = 0; q < kQueries; ++q) {
          for (int i = 0; i < 50; ++i) {
            int64_t want = -1;
            if (q < num && i < count) {
              want = 0;
              for (int d = 0; d < dim; ++d) {
                want += int64_t{queries[static_cast<size_t>(q * dim + d)]} *
                        cache.entries[static_cast<size_t>(i)][d];
              }
            }
            ASSERT_EQ(dots[static_cast<size_t>(q * 50 + i)], want)
                << kernels.name << " " << q << " " << i;
          }
        }
      }
    }
  }
}

TEST_P(Int8KernelsTest, SumsAreOneChainOfFusedAdditions) {
  const int dim = GetParam();
  const Cache cache = make_cache(dim);
  const std::vector<float> weights = random_floats(kQueries * 40, 3);
  for (const Int8Kernels& kernels : int8_kernels()) {
    for (int count : {1, 2, kEntries}) {
      for (int num = 1; num <= kQueries; ++num) {
        std::vector<float> out(static_cast<size_t>(kQueries * (dim + 1)), -1.0f);
        kernels.weigh({cache.entries.data(), count, dim},
                      {weights.data(), 40, out.data(), dim + 1, num});
        for (int q = 0; q < kQueries; ++q) {
          for (int d = 0; d <= dim; ++d) {
            float want = -1;
            if (q < num && d < dim) {
              want = 0;
              for (int i = 0; i < count; ++i) {
                want = std::fma(weights[static_cast<size_t>(q * 40 + i)],
                                float(cache.entries[static_cast<size_t>(i)][d]), want);
              }
            }
            ASSERT_EQ(out[static_cast<size_t>(q * (dim + 1) + d)], want)
                << kernels.name << " " << q << " " << d;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Int8KernelsTest,
                         testing::Values(1, 8, 16, 20, 32, 40, 64, 72, 80, 96, 128, 200, 256, 512));

}  // namespace
}  // namespace foretoken::cpu
