#include "model/layer/rank_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "attention/backend.h"
#include "group/local_link.h"
#include "kernels/devices/open_device.h"
#include "support/random_data.h"

namespace foretoken {
namespace {

constexpr int kRanksOfRows = 3, kSharedRows = 4, kLiveShared = 3;

// A rank on a CPU, with rows of its own.
struct RowsOfRank {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> comm;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Arena> arena;
  RankRows ranks;

  template <class T>
  T* array(const std::vector<T>& values) {
    auto* memory = arena->take_array<T>(values.size(), "a test").value();
    std::memcpy(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
};

using UseRows = std::function<void(RowsOfRank&, const LayerRows&)>;

// use(rank, rows) on a thread for each rank, behind which its queue is drained.
void on_ranks_of_rows(const UseRows& use, const std::function<void(int)>& check) {
  const auto links = group::make_local_links(kRanksOfRows);
  std::vector<std::thread> threads;
  for (const auto& own : links) {
    threads.emplace_back([&] {
      RowsOfRank rank;
      rank.device = open_device(DeviceType::kCpu, 0, 1).value();
      rank.comm =
          rank.device
              ->make_communicator(link_of(own, group::Lane::kCollectives), {.max_row_bytes = 4096})
              .value();
      rank.queue = rank.device->make_queue().value();
      rank.arena = std::make_unique<Arena>(*rank.device, MemoryKind::kPinned);
      const Sharding sharding{
          .rank = rank.comm->rank(), .size = kRanksOfRows, .comm = rank.comm->handle()};
      const ScratchSource source{*rank.device,
                                 *find_attention_backend("auto", *rank.device).value(), *rank.arena,
                                 DType::kF32, kSharedRows};
      ASSERT_TRUE(rank.ranks.take(source, sharding).ok());
      LayerRows rows{*rank.queue, rank.array(std::vector<StepCounts>{{kLiveShared, 0, 0, 0}}),
                     nullptr, nullptr, kSharedRows};
      rows.ranks = &rank.ranks;
      use(rank, rows);
      EXPECT_TRUE(rank.queue->drain().ok());
      check(sharding.rank);
      rank.queue.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> rows_of_rank(int rank, int columns) {
  return random_floats(size_t{kSharedRows} * static_cast<size_t>(columns),
                       static_cast<uint64_t>(rank) + 1, 2.0f);
}

// Queries of 5 columns of each rank and keys of 4, which ranks 1 and 2 have both: they count once.
TEST(RankRows, NormsAreOverTheColumnsOfAllRanks) {
  constexpr int kStride = 11;
  std::vector<float*> out(kRanksOfRows);
  std::vector<std::vector<float>> x;
  for (int rank = 0; rank < kRanksOfRows; ++rank) x.push_back(rows_of_rank(rank, kStride));
  for (int row = 0; row < kSharedRows; ++row) {
    std::copy_n(&x[1][size_t(row) * kStride + 6], 4, &x[2][size_t(row) * kStride + 6]);
  }
  const std::vector<float> weights = random_floats(5, 9);
  const auto check = [&](int rank) {
    for (int row = 0; row < kLiveShared; ++row) {
      const auto squares = [&](std::vector<int> ranks, int first, int count) {
        double sum = 0;
        for (const int r : ranks) {
          for (int i = first; i < first + count; ++i) {
            sum += std::pow(double(x[size_t(r)][size_t(row * kStride + i)]), 2);
          }
        }
        return sum;
      };
      const double q = 1 / std::sqrt(squares({0, 1, 2}, 1, 5) / 15 + 1e-5);
      const double k = 1 / std::sqrt(squares({0, 1}, 6, 4) / 8 + 1e-5);
      for (int i = 0; i < kStride; ++i) {
        const auto at = static_cast<size_t>(row * kStride + i);
        double want = x[size_t(rank)][at];
        if (i >= 1 && i < 6) want *= q * weights[size_t(i - 1)];
        if (i >= 6 && i < 10) want *= k;
        EXPECT_NEAR(out[size_t(rank)][at], want, 1e-5) << rank << " " << row << " " << i;
      }
    }
  };
  on_ranks_of_rows(
      [&](RowsOfRank& rank, const LayerRows& rows) {
        const int own = rank.ranks.rank;
        float* memory = rank.array(x[size_t(own)]);
        out[size_t(own)] = memory;
        const NormedPart parts[] = {{{1, 5, 5 * own, 15, 0}, rank.array(weights)},
                                    {{6, 4, own == 0 ? 0 : 4, 8, 1}, nullptr, own < 2}};
        norm_over_ranks(rows, parts, {memory, kStride, 1e-5f, memory, DType::kF32});
      },
      check);
}

TEST(RankRows, WhatRanksTellOfTheirColumnsIsKnownToAll) {
  constexpr int kColumns = 7, kEntries = 2 * kRanksOfRows;
  std::vector<const float*> highest(kRanksOfRows), moments(kRanksOfRows);
  const auto check = [&](int rank) {
    for (int row = 0; row < kLiveShared; ++row) {
      for (int told = 0; told < kRanksOfRows; ++told) {
        const auto all = rows_of_rank(told, kColumns);
        const float* own = &all[size_t(row) * kColumns];
        double most = 0, mean = 0, apart = 0;
        for (int i = 0; i < kColumns; ++i) most = std::max(most, std::abs(double(own[i])));
        for (int i = 0; i < kColumns; ++i) mean += double(own[i]) / kColumns;
        for (int i = 0; i < kColumns; ++i) apart += std::pow(own[i] - mean, 2);
        const auto at = static_cast<size_t>(row * kEntries);
        EXPECT_EQ(highest[size_t(rank)][at + size_t(told)], float(most)) << rank;
        EXPECT_NEAR(moments[size_t(rank)][at + 2 * size_t(told)], mean, 1e-5) << rank;
        EXPECT_NEAR(moments[size_t(rank)][at + 2 * size_t(told) + 1], apart, 1e-4) << rank;
      }
    }
  };
  on_ranks_of_rows(
      [&](RowsOfRank& rank, const LayerRows& rows) {
        const auto own = static_cast<size_t>(rank.ranks.rank);
        const float* x = rank.array(rows_of_rank(rank.ranks.rank, kColumns));
        tell_highest(rows, x, kColumns, DType::kF32);
        ASSERT_EQ(rank.ranks.num_entries, kEntries);
        const size_t bytes = size_t{kSharedRows} * kEntries * sizeof(float);
        auto* copy = rank.array(std::vector<float>(bytes / sizeof(float)));
        rank.queue->copy(copy, rank.ranks.entries, bytes);
        highest[own] = copy;
        tell_moments(rows, x, kColumns, kColumns);
        moments[own] = rank.ranks.entries;
      },
      check);
}

// Of any number of columns.
TEST(RankRows, SumsAreInTheOrderOfRanks) {
  constexpr int kColumns = 5;
  std::vector<const float*> sums(kRanksOfRows);
  on_ranks_of_rows(
      [&](RowsOfRank& rank, const LayerRows& rows) {
        float* x = rank.array(rows_of_rank(rank.ranks.rank, kColumns));
        sum_over_ranks(rows, x, kColumns);
        sums[size_t(rank.ranks.rank)] = x;
      },
      [&](int rank) {
        const auto a = rows_of_rank(0, kColumns), b = rows_of_rank(1, kColumns),
                   c = rows_of_rank(2, kColumns);
        for (size_t i = 0; i < size_t{kLiveShared} * kColumns; ++i) {
          EXPECT_EQ(sums[size_t(rank)][i], (a[i] + b[i]) + c[i]) << rank << " " << i;
        }
      });
}

TEST(RankRows, OneRankNeedsNone) {
  RankRows ranks;
  const auto device = open_device(DeviceType::kCpu, 0, 1).value();
  Arena arena(*device, MemoryKind::kDevice);
  const ScratchSource source{*device, *find_attention_backend("auto", *device).value(), arena,
                             DType::kF32, kSharedRows};
  EXPECT_TRUE(ranks.take(source, {}).ok());
  EXPECT_EQ(arena.bytes_taken(), 0u);
}

}  // namespace
}  // namespace foretoken
