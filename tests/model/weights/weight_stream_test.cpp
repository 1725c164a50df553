#include "model/weights/weight_stream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

#include "base/bfloat16.h"
#include "dialled/safetensors_writer.h"
#include "model/forward_harness.h"
#include "support/no_threads.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::model_device;
using test::ScratchFolder;

constexpr int64_t kCount = 100'000;

// A file with one tensor of kCount floats, 0.5, 1.5, ..., read in many small pieces.
class WeightStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    const TensorToWrite tensor{"w", FileDType::kF32, {kCount}, [](std::byte* out) {
                                 auto* values = reinterpret_cast<float*>(out);
                                 std::iota(values, values + kCount, 0.5f);
                               }};
    ASSERT_TRUE(write_safetensors(path_, {&tensor, 1}).ok());
    file_ = SafetensorsFile::open(path_).value();
    tensor_ = &file_->tensors().at("w");
    queue_ = model_device().make_queue().value();
    to_ = static_cast<float*>(arena_.take(kCount * sizeof(float), "test").value());
  }

  std::unique_ptr<WeightStream> stream(int num_readers) {
    return std::make_unique<WeightStream>(model_device(), *queue_,
                                          WeightStreamConfig{num_readers, 4096}, &cancelled_);
  }

  // The whole tensor in pieces of `each` elements; the last error of add.
  Status add_all(WeightStream& stream, int64_t each, DType dtype, float offset = 0) {
    Status last;
    for (int64_t first = 0; first < kCount; first += each) {
      WeightPiece piece;
      const int64_t count = std::min(each, kCount - first);
      piece.runs = {{tensor_, first, count / 2}, {tensor_, first + count / 2, count - count / 2}};
      piece.dtype = dtype;
      piece.offset = offset;
      piece.counted_bytes = count;
      piece.to = reinterpret_cast<std::byte*>(to_) + first * int64_t(dtype_size(dtype));
      last = stream.add(std::move(piece));
    }
    return last;
  }

  ScratchFolder folder_;
  const std::string path_ = folder_.file("model.safetensors");
  std::unique_ptr<SafetensorsFile> file_;
  const TensorView* tensor_ = nullptr;
  std::unique_ptr<Queue> queue_;
  Arena arena_{model_device(), MemoryKind::kPinned};  // the test reads it
  float* to_ = nullptr;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(WeightStreamTest, BringsEveryPieceWhateverTheNumberOfReaders) {
  for (const int readers : {1, 2, 7}) {
    std::memset(to_, 0, kCount * sizeof(float));
    const auto source = stream(readers);
    int calls = 0;
    ASSERT_TRUE(add_all(*source, 1023, DType::kF32, 3).ok());
    ASSERT_TRUE(source->finish([&] { ++calls; }).ok());
    EXPECT_EQ(source->bytes_done(), kCount);
    for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(to_[i], float(i) + 3.5f) << i;
    // Once more through the same stream, with pieces larger than usual.
    ASSERT_TRUE(add_all(*source, 30'000, DType::kBF16).ok());
    ASSERT_TRUE(source->finish([] {}).ok());
    const auto* halves = reinterpret_cast<const uint16_t*>(to_);
    for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(halves[i], bf16_from_float(float(i) + 0.5f));
  }
}

TEST_F(WeightStreamTest, AFileCutShortIsNamed) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  const auto source = stream(3);
  static_cast<void>(add_all(*source, 1000, DType::kF32));
  const Status status = source->finish([] {});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  for (const char* said : {"model.safetensors", "tensor 'w'", "shorter", "fetch it again"}) {
    EXPECT_NE(status.message().find(said), std::string::npos) << status.message();
  }
}

TEST_F(WeightStreamTest, StopsWhenCancelled) {
  const auto source = stream(2);
  cancelled_ = true;
  static_cast<void>(add_all(*source, 1000, DType::kF32));
  const Status status = source->finish([] {});
  EXPECT_EQ(status.code(), StatusCode::kAborted);
}

// Nothing is written once stop has returned, and nothing waits for ever.
TEST_F(WeightStreamTest, StopsInTheMiddle) {
  for (int round = 0; round < 20; ++round) {
    const auto source = stream(3);
    static_cast<void>(add_all(*source, 100 + 100 * round, DType::kF32));
    source->stop();
    const std::vector<float> before(to_, to_ + kCount);
    std::this_thread::yield();
    EXPECT_EQ(std::memcmp(before.data(), to_, kCount * sizeof(float)), 0);
    EXPECT_EQ(add_all(*source, kCount, DType::kF32).code(), StatusCode::kAborted);
  }
}

// An op that fails ends the stream with the queue's error, though its events come no more.
TEST_F(WeightStreamTest, AFailedQueueIsAnError) {
  if (model_device().type() != DeviceType::kCpu) GTEST_SKIP() << "host calls that throw: CPU only";
  const auto source = stream(2);
  source->with_queue([](Queue& queue) {
    queue.call_host([](void*) { throw std::runtime_error("planted"); }, nullptr);
  });
  static_cast<void>(add_all(*source, 1000, DType::kF32));
  const Status status = source->finish([] {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("planted"), std::string::npos) << status.message();
}

TEST(WeightStreamConfig, FewThreadsForSmallWeights) {
  EXPECT_EQ(weight_stream_config(1000).num_readers, 1);
  EXPECT_GE(weight_stream_config(int64_t{16} << 30).num_readers, 1);
  EXPECT_LE(weight_stream_config(int64_t{16} << 30).num_readers,
            static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

TEST_F(WeightStreamTest, FewerReadersThanWantedDoAndNoneIsAnError) {
  const auto one = stream(3);
  WeightPiece piece;
  piece.runs = {{tensor_, 0, 8}};
  piece.dtype = DType::kF32;
  piece.to = reinterpret_cast<std::byte*>(to_);
  ASSERT_TRUE(one->add(piece).ok());
  const auto none = stream(1);
  {
    const test::NoThreads no_threads;
    EXPECT_TRUE(one->add(piece).ok());
    EXPECT_EQ(none->add(piece).code(), StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(one->finish([] {}).ok());
  EXPECT_EQ(to_[7], 7.5f);
  none->stop();
}

}  // namespace
}  // namespace foretoken
