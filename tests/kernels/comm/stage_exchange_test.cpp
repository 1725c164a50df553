#include "kernels/comm/stage_exchange.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "device/device.h"
#include "group/local_link.h"
#include "kernels/devices/open_device.h"
#include "support/random_data.h"

namespace foretoken {
namespace {

constexpr int kSlots = 9;

// A rank of a ring: device, communicator and queue of its own.
class Stage {
 public:
  Stage(const group::LaneLinks& links, int max_rows, bool windowed) {
    device_ = open_device(DeviceType::kCpu, 0, 1).value();
    comm_ = device_->make_communicator(link_of(links, group::Lane::kStages), {.max_row_bytes = 64})
                .value();
    queue_ = device_->make_queue().value();
    tensors.counts = array<StepCounts>(3);
    for (int32_t** list : {&tensors.token_ids, &tensors.positions, &tensors.row_slot,
                           &tensors.kv_slot, &tensors.window_slot}) {
      if (windowed || list != &tensors.window_slot) {
        *list = array<int32_t>(static_cast<size_t>(max_rows));
      }
    }
  }
  ~Stage() { queue_.reset(); }

  template <class T>
  T* array(size_t count) {
    return static_cast<T*>(device_->allocate(count * sizeof(T), MemoryKind::kPinned));
  }
  int rank() const { return comm_->rank(); }
  const void* comm() const { return comm_->handle(); }
  Queue& queue() { return *queue_; }

  StepTensors tensors{};

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Queue> queue_;
};

int32_t value_at(int list, int row) { return list * 100000 + row; }

std::vector<int32_t*> lists_of(const StepTensors& t) {
  std::vector<int32_t*> lists{t.token_ids, t.positions, t.row_slot, t.kv_slot};
  if (t.window_slot != nullptr) lists.push_back(t.window_slot);
  return lists;
}

// Rank 0 tells a step of `live` rows, rank 1 passes it on, the last rank has it.
void pass_a_step(int num_stages, int live, int max_rows, bool windowed) {
  const auto links = group::make_local_links(num_stages);
  std::vector<std::thread> threads;
  for (const auto& own : links) {
    threads.emplace_back([&] {
      Stage stage(own, max_rows, windowed);
      const StepTensors& tensors = stage.tensors;
      auto* counter = stage.array<uint64_t>(1);
      *counter = 5;
      auto* stamps = stage.array<StepStamps>(kStepRingSize);
      if (stage.rank() == 0) {
        *tensors.counts = {live, 3, 2, 0};
        const auto lists = lists_of(tensors);
        for (size_t i = 0; i < lists.size(); ++i) {
          for (int row = 0; row < live; ++row) lists[i][row] = value_at(static_cast<int>(i), row);
        }
        send_step(stage.queue(), {stage.comm(), tensors, max_rows, counter});
      } else {
        receive_step(stage.queue(), {stage.comm(), tensors, max_rows, kSlots, counter, stamps});
        if (stage.rank() + 1 < num_stages) {
          send_step(stage.queue(), {stage.comm(), tensors, max_rows, nullptr});
        }
      }
      ASSERT_TRUE(stage.queue().drain().ok());
      EXPECT_EQ(*counter, stage.rank() == 0 ? 6u : 5u);
      if (stage.rank() == 0) return;
      EXPECT_GT(stamps[5].begin_ns, 0);
      EXPECT_EQ(tensors.counts->num_rows, live);
      EXPECT_EQ(tensors.counts->num_logits_rows, 3);
      const auto lists = lists_of(tensors);
      for (size_t i = 0; i < lists.size(); ++i) {
        const int padding = lists[i] == tensors.row_slot ? kSlots : 0;
        for (int row = 0; row < max_rows; ++row) {
          const int want = row < live ? value_at(static_cast<int>(i), row) : padding;
          ASSERT_EQ(lists[i][row], want) << "list " << i << " row " << row;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StageExchange, AStepGoesFromStageToStage) {
  pass_a_step(2, 5, 8, false);
  pass_a_step(3, 8, 8, true);
  pass_a_step(2, 0, 4, true);
}

// Each lane has counts and lists of its own; those of the step stay behind.
TEST(StageExchange, AStepOfTwoLanes) {
  constexpr int kLane = 10, kMaxRows = 6;
  constexpr int kLive[] = {6, 3};
  const auto links = group::make_local_links(3);
  std::vector<std::thread> threads;
  for (const auto& own : links) {
    threads.emplace_back([&] {
      Stage stage(own, 2 * kLane, true);
      const StepTensors& tensors = stage.tensors;
      const auto lists = lists_of(tensors);
      auto* step = stage.array<uint64_t>(1);
      *step = 0;
      if (stage.rank() == 0) {
        tensors.counts[0] = {9, 4, 3, 0};
        for (int lane = 0; lane < 2; ++lane) tensors.counts[1 + lane] = {kLive[lane], 2, lane, 0};
        for (size_t i = 0; i < lists.size(); ++i) {
          for (int row = 0; row < 2 * kLane; ++row) {
            lists[i][row] = value_at(static_cast<int>(i), row);
          }
        }
      } else {
        tensors.counts[0] = {77, 0, 0, 0};
        receive_step(stage.queue(),
                     {stage.comm(), tensors, kMaxRows, kSlots, step, nullptr, kLane});
      }
      if (stage.rank() < 2) {
        send_step(stage.queue(), {stage.comm(), tensors, kMaxRows, nullptr, kLane});
      }
      ASSERT_TRUE(stage.queue().drain().ok());
      if (stage.rank() == 0) return;
      EXPECT_EQ(tensors.counts[0].num_rows, 77);
      for (int lane = 0; lane < 2; ++lane) {
        EXPECT_EQ(tensors.counts[1 + lane].num_rows, kLive[lane]);
        for (size_t i = 0; i < lists.size(); ++i) {
          const int padding = lists[i] == tensors.row_slot ? kSlots : 0;
          for (int row = 0; row < kMaxRows; ++row) {
            const int at = lane * kLane + row;
            ASSERT_EQ(lists[i][at], row < kLive[lane] ? value_at(static_cast<int>(i), at) : padding)
                << "list " << i << " row " << at;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StageExchange, AStepOfSeveralMessages) { pass_a_step(2, 30000, 30001, true); }

// Rows beyond the live ones stay. A step that is told waits for nobody.
void send_rows_in_turns(int cols) {
  constexpr int kRows = 40, kLive = 37, kTurns = 3;
  const auto links = group::make_local_links(2);
  const auto values = [cols](int turn) {
    return random_floats(size_t{kRows} * static_cast<size_t>(cols), static_cast<uint64_t>(turn) + 1,
                         1.0f);
  };
  std::vector<std::thread> threads;
  for (const auto& own : links) {
    threads.emplace_back([&] {
      Stage stage(own, kRows, false);
      *stage.tensors.counts = {kLive, 0, 0, 0};
      std::vector<float*> x;
      for (int turn = 0; turn < kTurns; ++turn) {
        x.push_back(stage.array<float>(size_t{kRows} * static_cast<size_t>(cols)));
        if (stage.rank() == 1) {
          std::memcpy(x.back(), values(turn).data(),
                      size_t{kRows} * static_cast<size_t>(cols) * sizeof(float));
          send_rows(stage.queue(), {stage.comm(), stage.tensors.counts, x.back(), kRows, cols});
          continue;
        }
        send_step(stage.queue(), {stage.comm(), stage.tensors, kRows, nullptr});
        receive_rows(stage.queue(), {stage.comm(), stage.tensors.counts, x.back(), kRows, cols});
      }
      ASSERT_TRUE(stage.queue().drain().ok());
      if (stage.rank() == 1) return;
      for (int turn = 0; turn < kTurns; ++turn) {
        const auto want = values(turn);
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_EQ(x[static_cast<size_t>(turn)][i],
                    i < size_t{kLive} * static_cast<size_t>(cols) ? want[i] : 0)
              << i;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StageExchange, RowsComeInTheOrderInWhichTheyAreSent) {
  for (const int cols : {2500, 61}) send_rows_in_turns(cols);
}

}  // namespace
}  // namespace foretoken
