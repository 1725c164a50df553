#include "kernels/comm/expert_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device/device.h"
#include "group/local_link.h"
#include "kernels/devices/open_device.h"
#include "support/random_data.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

constexpr int kMax = 6, kHidden = 16, kTopK = 2;

// A rank with device, communicator and queue of its own, and the rows that it brings.
class ExchangeRank {
 public:
  ExchangeRank(const group::LaneLinks& links, int num_live) : live(num_live) {
    device_ = open_rank_device(link_of(links, group::Lane::kCollectives).rank());
    memory_ = static_cast<char*>(device_->allocate(kRankBytes, MemoryKind::kPinned));
    comm_ = device_->make_communicator(link_of(links, group::Lane::kCollectives), {}).value();
    queue_ = device_->make_queue().value();
    const auto all = static_cast<size_t>(comm_->size() * kMax);
    counts = array<StepCounts>(1);
    *counts = {num_live, 7, 7, 0};
    out = {.counts = array<StepCounts>(1),
           .begins = array<int32_t>(static_cast<size_t>(comm_->size()) + 1),
           .x = array<float>(all * kHidden),
           .ids = array<int32_t>(all * kTopK),
           .weights = array<float>(all * kTopK)};
    sums = array<float>(all * kHidden);
    result = array<float>(size_t{kMax} * kHidden);
  }
  ~ExchangeRank() {
    queue_.reset();
    comm_.reset();
    device_->deallocate(memory_, MemoryKind::kPinned);
  }

  template <class T>
  T* array(size_t count) {
    void* taken = memory_ + used_;
    used_ += (count * sizeof(T) + 255) / 256 * 256;
    EXPECT_LE(used_, kRankBytes);
    return static_cast<T*>(taken);
  }
  float* values(float first, size_t count) {
    auto* memory = array<float>(count);
    for (size_t i = 0; i < count; ++i) memory[i] = first + static_cast<float>(i);
    return memory;
  }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  const void* comm() const { return comm_->handle(); }
  Queue& queue() { return *queue_; }
  Communicator& communicator() { return *comm_; }

  const int live;
  StepCounts* counts;
  ExchangedRows out;
  float* sums;
  float* result;

 private:
  // Taken before ranks wait for each other: a device may take memory only between its kernels.
  static constexpr size_t kRankBytes = 1 << 20;

  std::unique_ptr<Device> device_;
  char* memory_ = nullptr;
  size_t used_ = 0;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Queue> queue_;
};

void on_engines(const std::vector<int>& live, const std::function<void(ExchangeRank&)>& body) {
  if (!missing_devices(static_cast<int>(live.size())).empty()) return;
  const auto links = group::make_local_links(static_cast<int>(live.size()));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < links.size(); ++i) {
    threads.emplace_back([&, i] {
      ExchangeRank rank(links[i], live[i]);
      body(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What identifies element `i` of rank r's row.
float x_at(int rank, int i) { return static_cast<float>(rank * 1000 + i); }

void dispatch(ExchangeRank& rank) {
  auto* ids = rank.array<int32_t>(size_t{kMax} * kTopK);
  for (int i = 0; i < kMax * kTopK; ++i) ids[i] = rank.rank() * 100 + i;
  dispatch_rows(rank.queue(),
                {.comm = rank.comm(),
                 .counts = rank.counts,
                 .x = rank.values(x_at(rank.rank(), 0), size_t{kMax} * kHidden),
                 .ids = ids,
                 .weights = rank.values(static_cast<float>(rank.rank()), size_t{kMax} * kTopK),
                 .out = rank.out,
                 .max_rows = kMax,
                 .capacity_rows = kMax,
                 .hidden = kHidden,
                 .top_k = kTopK,
                 .dtype = DType::kF32});
}

// Live counts differ, and some ranks have none.
TEST(ExpertExchange, EveryRankHasTheRowsOfAll) {
  for (const std::vector<int>& live : {std::vector<int>{3, 0, 6, 1}, {0, 0}, {0, 2}, {6, 6, 6}}) {
    on_engines(live, [&](ExchangeRank& rank) {
      dispatch(rank);
      ASSERT_TRUE(rank.queue().drain().ok());
      int row = 0;
      for (int from = 0; from < rank.size(); ++from) {
        EXPECT_EQ(rank.out.begins[from], row);
        for (int r = 0; r < live[static_cast<size_t>(from)]; ++r, ++row) {
          for (int i = 0; i < kHidden; ++i) {
            ASSERT_EQ(static_cast<const float*>(rank.out.x)[row * kHidden + i],
                      x_at(from, r * kHidden + i));
          }
          for (int k = 0; k < kTopK; ++k) {
            const int at = row * kTopK + k, own = r * kTopK + k;
            ASSERT_EQ(rank.out.ids[at], from * 100 + own);
            ASSERT_EQ(rank.out.weights[at], static_cast<float>(from + own));
          }
        }
      }
      EXPECT_EQ(rank.out.begins[rank.size()], row);
      EXPECT_EQ(rank.out.counts->num_rows, row);
      EXPECT_EQ(rank.out.counts->num_logits_rows, 0);
    });
  }
}

// The shared part first, then rank after rank: the bits are those of this chain of additions.
TEST(ExpertExchange, SumsComeBackInTheOrderOfRanks) {
  const std::vector<int> live = {2, 5, 0};
  constexpr size_t kRow = kHidden;
  const auto part = [&](int rank, size_t row) {
    return random_floats(kRow, static_cast<uint64_t>(rank) * 100 + row + 1, 1.0f);
  };
  for (const bool has_shared : {false, true}) {
    for (const bool add : {false, true}) {
      on_engines(live, [&](ExchangeRank& rank) {
        dispatch(rank);
        ASSERT_TRUE(rank.queue().drain().ok());
        for (size_t row = 0; row < 7; ++row) {
          std::memcpy(rank.sums + row * kRow, part(rank.rank(), row).data(), kRow * sizeof(float));
        }
        float* shared = rank.values(0.25f, size_t{kMax} * kHidden);
        float* gate = rank.values(-1.0f, kMax);
        for (size_t i = 0; i < size_t{kMax} * kHidden; ++i) rank.result[i] = 3;
        return_rows(rank.queue(), {.comm = rank.comm(),
                                   .begins = rank.out.begins,
                                   .sums = rank.sums,
                                   .scratch = rank.array<float>(size_t{2 * kMax} * kHidden),
                                   .shared = has_shared ? shared : nullptr,
                                   .shared_gate = has_shared ? gate : nullptr,
                                   .out = rank.result,
                                   .max_rows = kMax,
                                   .hidden = kHidden,
                                   .add = add ? 1 : 0});
        ASSERT_TRUE(rank.queue().drain().ok());
        for (size_t row = 0; row < static_cast<size_t>(rank.live); ++row) {
          const size_t among_all = row + static_cast<size_t>(rank.out.begins[rank.rank()]);
          for (size_t i = 0; i < kRow; ++i) {
            const double scale = 1 / (1 + std::exp(1.0 - static_cast<double>(row)));
            const double begin = has_shared ? shared[row * kRow + i] * scale : 0;
            float parts = 0;
            double sum = begin;
            for (int r = 0; r < rank.size(); ++r) {
              parts += part(r, among_all)[i];
              sum += part(r, among_all)[i];
            }
            const float got = rank.result[row * kRow + i];
            if (!has_shared && !add) {
              ASSERT_EQ(got, parts);
            }
            ASSERT_NEAR(got, sum + (add ? 3 : 0), 1e-5 * (1 + std::abs(sum)));
          }
        }
        if (rank.live == 0) {
          EXPECT_EQ(rank.result[0], 3);
        }
      });
    }
  }
}

// Its peers are told which op failed.
TEST(ExpertExchange, TheEndOfARankEndsTheOthers) {
  if (test_device()->type() != DeviceType::kCpu)
    GTEST_SKIP() << "a rank that leaves takes its memory along";
  on_engines({1, 1}, [&](ExchangeRank& rank) {
    if (rank.rank() == 0) return;  // it never comes, and its end is told below
    std::thread ends([&] { rank.communicator().abort(); });
    dispatch(rank);
    const Status status = rank.queue().drain();
    ends.join();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find("dispatch_rows"), std::string::npos) << status.message();
  });
}

}  // namespace
}  // namespace foretoken
