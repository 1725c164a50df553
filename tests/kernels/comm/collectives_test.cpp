#include "kernels/comm/collectives.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

#include "device/device.h"
#include "group/local_link.h"
#include "kernels/devices/open_device.h"
#include "support/random_data.h"

namespace foretoken {
namespace {

// A rank: device, communicator and queue of its own.
struct Rank {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> comm;
  std::unique_ptr<Queue> queue;

  template <class T>
  T* array(const std::vector<T>& values) {
    auto* memory =
        static_cast<T*>(device->allocate((values.size() + 1) * sizeof(T), MemoryKind::kPinned));
    std::memcpy(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
};

// Runs `body` on each rank of a group, on a thread of its own, and drains its queue.
void on_ranks(int size, const std::function<void(Rank&)>& enqueue,
              const std::function<void(Rank&)>& check) {
  const auto links = group::make_local_links(size);
  std::vector<std::thread> threads;
  for (const auto& own : links) {
    threads.emplace_back([&] {
      Rank rank;
      rank.device = open_device(DeviceType::kCpu, 0, 1).value();
      rank.comm =
          rank.device
              ->make_communicator(link_of(own, group::Lane::kCollectives), {.max_row_bytes = 4096})
              .value();
      rank.queue = rank.device->make_queue().value();
      enqueue(rank);
      EXPECT_TRUE(rank.queue->drain().ok());
      check(rank);
      rank.queue.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> values_of(int rank, size_t count) {
  return random_floats(count, static_cast<uint64_t>(rank) + 1, 1.0f);
}

TEST(Collectives, ColumnPartsCoverTheMatrix) {
  for (const int cols : {1, 100, 3072, 32000, 128257}) {
    for (const int size : {1, 2, 3, 8}) {
      if (!cuts_columns(cols, size)) {
        EXPECT_EQ(column_part(cols, size - 1, size).count, cols);
        continue;
      }
      int32_t at = 0;
      for (int rank = 0; rank < size; ++rank) {
        const ColumnPart part = column_part(cols, rank, size);
        EXPECT_EQ(part.begin, at);
        EXPECT_EQ(part.begin % 16, 0);
        EXPECT_GT(part.count, 0);
        EXPECT_LE(part.count, widest_column_part(cols, size));
        at += part.count;
      }
      EXPECT_EQ(at, cols);
    }
  }
}

// Rows beyond the live ones stay; several pieces are needed.
TEST(Collectives, AllReduceAddsInTheOrderOfRanks) {
  constexpr int kRanks = 3, kRows = 40, kLive = 37, kCols = 2500;
  std::vector<float> sum = values_of(0, size_t{kRows} * kCols);
  for (int rank = 1; rank < kRanks; ++rank) {
    const auto other = values_of(rank, sum.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  }
  std::array<float*, kRanks> x{};
  on_ranks(
      kRanks,
      [&](Rank& rank) {
        float*& own = x[static_cast<size_t>(rank.comm->rank())];
        own = rank.array(values_of(rank.comm->rank(), sum.size()));
        const auto* counts = rank.array(std::vector<StepCounts>{{kLive, 0, 0, 0}});
        all_reduce(*rank.queue,
                   {rank.comm->handle(), counts, own, RowKind::kToken, 0, kRows, kCols});
      },
      [&](Rank& rank) {
        const auto before = values_of(rank.comm->rank(), sum.size());
        const float* own = x[static_cast<size_t>(rank.comm->rank())];
        for (size_t i = 0; i < sum.size(); ++i) {
          ASSERT_EQ(own[i], i < size_t{kLive} * kCols ? sum[i] : before[i]) << i;
        }
      });
}

TEST(Collectives, GatherPutsColumnsSideBySide) {
  constexpr int kRanks = 3, kRows = 5, kLive = 4, kCols = 300;
  std::array<float*, kRanks> out{};
  on_ranks(
      kRanks,
      [&](Rank& rank) {
        const int index = rank.comm->rank();
        const ColumnPart part = column_part(kCols, index, kRanks);
        std::vector<float> own;
        for (int row = 0; row < kRows; ++row) {
          for (int c = 0; c < part.count; ++c) {
            own.push_back(static_cast<float>(row * 1000 + part.begin + c));
          }
        }
        float*& to = out[static_cast<size_t>(index)];
        to = rank.array(std::vector<float>(size_t{kRows} * kCols, -1));
        const auto* counts = rank.array(std::vector<StepCounts>{{100, kLive + 2, 0, 0}});
        gather_columns(*rank.queue,
                       {rank.comm->handle(), counts, rank.array(own), to, 2, kRows, kCols});
      },
      [&](Rank& rank) {
        const float* all = out[static_cast<size_t>(rank.comm->rank())];
        for (int i = 0; i < kRows * kCols; ++i) {
          const int row = i / kCols;
          ASSERT_EQ(all[i], row < kLive ? static_cast<float>(row * 1000 + i % kCols) : -1) << i;
        }
      });
}

TEST(Collectives, ArgmaxTakesTheHighestAndOfEqualOnesTheLowestRow) {
  constexpr int kRanks = 2, kRows = 4;
  std::array<int32_t*, kRanks> ids{};
  on_ranks(
      kRanks,
      [&](Rank& rank) {
        const bool first = rank.comm->rank() == 0;
        const std::vector<uint64_t> keys =
            first ? std::vector<uint64_t>{argmax_key(9, 3), argmax_key(5, 2), 0, argmax_key(7, 1)}
                  : std::vector<uint64_t>{argmax_key(9, 8), argmax_key(6, 9), 0, 0};
        std::vector<int32_t> map(10);
        for (int i = 0; i < 10; ++i) map[static_cast<size_t>(i)] = 100 + i;
        int32_t*& to = ids[static_cast<size_t>(rank.comm->rank())];
        to = rank.array(std::vector<int32_t>(kRows, -7));
        const auto* counts = rank.array(std::vector<StepCounts>{{100, kRows, 0, 0}});
        gather_argmax(*rank.queue,
                      {rank.comm->handle(), counts, rank.array(keys), rank.array(map), to, kRows});
      },
      [&](Rank& rank) {
        const int32_t* own = ids[static_cast<size_t>(rank.comm->rank())];
        EXPECT_EQ(std::vector<int32_t>(own, own + kRows),
                  (std::vector<int32_t>{103, 109, -1, 101}));
      });
}

// Rank 0 has two masks for the first span and one for the third; the second has no grammar.
TEST(Collectives, MasksAreThoseOfRankZero) {
  constexpr int kRanks = 2, kSpans = 3, kWords = 4, kRowsEach = 3;
  std::array<SlotState*, kRanks> slots{};
  std::array<uint32_t*, kRanks> masks{};
  on_ranks(
      kRanks,
      [&](Rank& rank) {
        const auto index = static_cast<size_t>(rank.comm->rank());
        std::vector<SpanState> spans(kSpans);
        std::vector<SlotState> states(kSpans);
        std::vector<SlotParams> params(kSpans);
        for (int i = 0; i < kSpans; ++i) {
          const auto at = static_cast<size_t>(i);
          spans[at] = {.slot = i,
                       .row_begin = i,
                       .num_rows = 1,
                       .logits_begin = i,
                       .num_logits = 1,
                       .num_draft_tokens = 0,
                       .num_scored = 0};
          params[at].grammar = i == 1 ? 0 : 7;
          states[at].mask_begin = i * kRowsEach;
          states[at].num_masks = index == 0 ? 2 - i : 5;
          states[at].num_decided = index == 0 ? 3 - i : 5;
        }
        states[2].num_masks = index == 0 ? 1 : 5;
        slots[index] = rank.array(states);
        masks[index] = rank.array(
            std::vector<uint32_t>(kSpans * kRowsEach * kWords, index == 0 ? 0xabcdu : 0u));
        const auto* counts = rank.array(std::vector<StepCounts>{{kSpans, kSpans, kSpans, 0}});
        share_masks(*rank.queue,
                    {rank.comm->handle(), counts, rank.array(spans), slots[index],
                     rank.array(params), masks[index], kWords, kSpans, kSpans * kRowsEach});
      },
      [&](Rank& rank) {
        if (rank.comm->rank() == 0) return;
        EXPECT_EQ(slots[1][0].num_masks, 2);
        EXPECT_EQ(slots[1][0].num_decided, 3);
        EXPECT_EQ(slots[1][1].num_masks, 5);
        EXPECT_EQ(slots[1][2].num_masks, 1);
        for (int row = 0; row < kSpans * kRowsEach; ++row) {
          const bool given = row < 2 || row == 2 * kRowsEach;
          EXPECT_EQ(masks[1][row * kWords], given ? 0xabcdu : 0u) << row;
        }
      });
}

// Of the five rows behind one of another call the first has no processors, the third is scored and
// the last one is not live.
TEST(Collectives, LogitsWithProcessorsAreThoseOfRankZero) {
  constexpr int kRanks = 3, kRows = 5, kVocab = 2500;
  std::array<float*, kRanks> logits{};
  on_ranks(
      kRanks,
      [&](Rank& rank) {
        const int index = rank.comm->rank();
        float*& own = logits[static_cast<size_t>(index)];
        own = rank.array(std::vector<float>(size_t{kRows} * kVocab, static_cast<float>(index)));
        std::vector<SlotState> slots(2);
        for (SlotState& slot : slots) slot.len = 9;
        std::vector<SlotParams> params(2);
        params[1].processors = 7;
        StepTensors tensors{};
        tensors.counts = rank.array(std::vector<StepCounts>{{6, kRows, 2, 0}});
        tensors.logits_rows = rank.array(std::vector<int32_t>{5, 0, 1, 2, 3, 4});
        tensors.row_slot = rank.array(std::vector<int32_t>{0, 1, 1, 1, 1, 0});
        tensors.positions = rank.array(std::vector<int32_t>{8, 8, 7, 9, 10, 8});
        share_logits(*rank.queue, {.comm = rank.comm->handle(),
                                   .logits = own,
                                   .tensors = tensors,
                                   .slots = rank.array(slots),
                                   .params = rank.array(params),
                                   .row_offset = 1,
                                   .max_rows = kRows,
                                   .vocab = kVocab});
      },
      [&](Rank& rank) {
        const float index = static_cast<float>(rank.comm->rank());
        const float* own = logits[static_cast<size_t>(rank.comm->rank())];
        for (int i = 0; i < kRows * kVocab; ++i) {
          const int row = i / kVocab;
          ASSERT_EQ(own[i], row == 1 || row == 3 ? 0.0f : index) << "row " << row;
        }
      });
}

}  // namespace
}  // namespace foretoken
