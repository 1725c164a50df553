#include "kernels/comm/shared_sampling.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "device/device.h"
#include "group/local_link.h"
#include "kernels/devices/open_device.h"
#include "kernels/sampling/sample.h"
#include "support/random_data.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

constexpr int kOffset = 2;  // of the first row among the step's logits rows
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Rows of logits, each of a slot of its own, of which row i stands at position 10 + i.
struct Scene {
  int vocab = 300;
  int live = 11;
  int max_rows = 13;
  std::vector<float> logits;
  std::vector<SlotParams> params;

  explicit Scene(float temperature) : logits(random_floats(size_t{13} * 300, 5, 3.0f)) {
    params.resize(static_cast<size_t>(kOffset + max_rows));
    for (size_t i = 0; i < params.size(); ++i) {
      params[i] = {};
      params[i].seed = 40 + i;
      params[i].temperature = temperature;
      params[i].top_p = 1;
      params[i].max_len = 1000;
    }
  }
  SlotParams& of(int row) { return params[static_cast<size_t>(kOffset + row)]; }
  float& at(int row, int id) { return logits[static_cast<size_t>(row * vocab + id)]; }
};

// A rank, or one that is alone, with what it was given in memory that both see.
class SamplingRank {
 public:
  explicit SamplingRank(int rank)
      : device_(open_rank_device(rank)),
        memory_(static_cast<char*>(device_->allocate(kBytes, MemoryKind::kPinned))) {
    std::memset(memory_, 0, kBytes);
  }
  ~SamplingRank() {
    queue_.reset();
    comm_.reset();
    device_->deallocate(memory_, MemoryKind::kPinned);
  }

  template <class T>
  T* array(size_t count) {
    void* taken = memory_ + used_;
    used_ += (count * sizeof(T) + 255) / 256 * 256;
    EXPECT_LE(used_, kBytes);
    return static_cast<T*>(taken);
  }
  template <class T>
  T* array(const std::vector<T>& values) {
    auto* memory = array<T>(values.size());
    std::memcpy(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
  void place(const Scene& scene) {
    const auto rows = static_cast<size_t>(kOffset + scene.max_rows);
    tensors.counts = array<StepCounts>(1);
    *tensors.counts = {kOffset + scene.live, kOffset + scene.live, 0, 0};
    tensors.positions = array<int32_t>(rows);
    tensors.row_slot = array<int32_t>(rows);
    tensors.logits_rows = array<int32_t>(rows);
    tensors.sampled = array<int32_t>(rows);
    for (int i = 0; i < static_cast<int>(rows); ++i) {
      tensors.positions[i] = 10 + i;
      tensors.row_slot[i] = tensors.logits_rows[i] = i;
      tensors.sampled[i] = -7;
    }
    batch.params = array(scene.params);
    batch.slots = array<SlotState>(rows);
    batch.block_tables = array<int32_t>(rows);
    batch.token_pages = array<int32_t>(16);
    batch.max_blocks = 1;
    batch.block_size = 16;
  }
  void meet(const group::LaneLinks& links) {
    comm_ =
        device_
            ->make_communicator(link_of(links, group::Lane::kCollectives), {.max_row_bytes = 4096})
            .value();
  }
  Queue& queue() {
    if (queue_ == nullptr) queue_ = device_->make_queue().value();
    return *queue_;
  }
  const Communicator& comm() const { return *comm_; }
  std::vector<int32_t> sampled(const Scene& scene) {
    EXPECT_TRUE(queue().drain().ok());
    return {tensors.sampled, tensors.sampled + kOffset + scene.max_rows};
  }

  StepTensors tensors{};
  BatchState batch{};

 private:
  static constexpr size_t kBytes = 1 << 20;

  std::unique_ptr<Device> device_;
  char* memory_ = nullptr;
  size_t used_ = 0;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Queue> queue_;
};

std::vector<int32_t> sampled_alone(const Scene& scene) {
  SamplingRank rank(0);
  rank.place(scene);
  sample(rank.queue(), {rank.array(scene.logits), rank.tensors, rank.batch, kOffset, scene.max_rows,
                        scene.vocab});
  return rank.sampled(scene);
}

std::vector<int32_t> sampled_on(const Scene& scene, SamplingRank& rank) {
  const int size = rank.comm().size();
  const ColumnPart own = column_part(scene.vocab, rank.comm().rank(), size);
  std::vector<float> part;
  for (int row = 0; row < scene.max_rows; ++row) {
    const auto first = scene.logits.begin() + row * scene.vocab + own.begin;
    part.insert(part.end(), first, first + own.count);
  }
  const SharedLogits shared = {
      .comm = rank.comm().handle(),
      .tensors = rank.tensors,
      .batch = rank.batch,
      .part = rank.array(part),
      .dealt = rank.array<float>(static_cast<size_t>(scene.max_rows * scene.vocab)),
      .keys = rank.array<uint64_t>(static_cast<size_t>(scene.max_rows)),
      .row_offset = kOffset,
      .max_rows = scene.max_rows,
      .vocab = scene.vocab,
      .rank = rank.comm().rank(),
      .size = size};
  // Slots of exchanges alternate.
  for (int i = 0; i < 3; ++i) {
    deal_logits(rank.queue(), {shared});
    sample_parts(rank.queue(), {shared});
    gather_samples(rank.queue(), {shared});
  }
  return rank.sampled(scene);
}

void expect_ids_of_one_rank(const Scene& scene) {
  const std::vector<int32_t> alone = sampled_alone(scene);
  for (const int size : {2, 3, 4}) {
    if (!missing_devices(size).empty()) continue;
    const auto links = group::make_local_links(size);
    std::vector<std::thread> threads;
    for (int i = 0; i < size; ++i) {
      threads.emplace_back([&, i] {
        SamplingRank rank(i);
        rank.place(scene);
        rank.meet(links[static_cast<size_t>(i)]);
        EXPECT_EQ(sampled_on(scene, rank), alone) << "rank " << i << " of " << size;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(SharedSampling, LikeliestIdsWithTiesAndMasks) {
  Scene scene(0);
  scene.at(0, 290) = scene.at(0, 7) = scene.at(0, 150) =
      90;  // the lowest of equal ones, which is 7
  scene.at(1, 299) = 80;
  scene.at(2, 200) = 70;  // masked while the row is too short to stop
  scene.of(2).min_len = 1000;
  scene.of(2).num_stop_ids = 2;
  scene.of(2).stop_ids[0] = 3;
  scene.of(2).stop_ids[1] = 200;
  EXPECT_EQ(sampled_alone(scene)[kOffset], 7);
  EXPECT_NE(sampled_alone(scene)[kOffset + 2], 200);
  expect_ids_of_one_rank(scene);
}

TEST(SharedSampling, RowsWithoutAProbabilityAreSaid) {
  for (const float temperature : {0.0f, 1.0f}) {
    Scene scene(temperature);
    scene.at(0, 299) = kNan;
    scene.at(1, 5) = kInf;
    for (int id = 0; id < scene.vocab; ++id) scene.at(2, id) = -kInf;
    for (int id = 0; id < scene.vocab; ++id) scene.at(3, id) = id == 250 ? 1 : -kInf;
    const std::vector<int32_t> alone = sampled_alone(scene);
    EXPECT_EQ(std::vector<int32_t>(alone.begin() + kOffset, alone.begin() + kOffset + 4),
              (std::vector<int32_t>{-1, -1, -1, 250}));
    expect_ids_of_one_rank(scene);
  }
}

// Among drawn rows others that take their likeliest id.
TEST(SharedSampling, DrawnRows) {
  Scene scene(0.9f);
  scene.of(0).temperature = 0;
  scene.of(4).top_k = 5;
  scene.of(5).top_p = 0.4f;
  scene.of(6).min_p = 0.1f;
  scene.of(10).temperature = 0;
  expect_ids_of_one_rank(scene);
}

// Also where the last ranks have no row, and where nothing is live.
TEST(SharedSampling, FewLiveRows) {
  for (const int live : {0, 1, 2, 4, 13}) {
    for (const float temperature : {0.0f, 1.3f}) {
      Scene scene(temperature);
      scene.live = live;
      expect_ids_of_one_rank(scene);
    }
  }
}

TEST(SharedSampling, RowsAreDealtOutInTheirOrder) {
  SharedLogits shared{};
  shared.max_rows = 5;
  shared.size = 2;
  EXPECT_EQ(shared.rows_each(), 3);
  EXPECT_EQ(shared.rows_of(0, 5), 3);
  EXPECT_EQ(shared.rows_of(1, 5), 2);
  EXPECT_EQ(shared.rows_of(0, 2), 2);
  EXPECT_EQ(shared.rows_of(1, 2), 0);
}

}  // namespace
}  // namespace foretoken
