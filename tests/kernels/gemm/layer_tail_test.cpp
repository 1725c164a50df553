#include "kernels/gemm/layer_tail.h"

#include <cmath>
#include <string>
#include <thread>

#include "support/row_ops.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

struct LayerTailCase {
  const char* name;
  int32_t hidden, x_size, inner, qkv_size;
  DType dtype;
  bool biases = false;
  Activation activation = Activation::kSilu;
};

// What the ops leave behind.
struct Outcome {
  std::vector<float> residual, delta, qkv;
  std::vector<uint8_t> normed, gated;
  bool operator==(const Outcome&) const = default;
};

class LayerTailTest : public RowOpTest, public testing::WithParamInterface<LayerTailCase> {
 protected:
  static constexpr int32_t kMaxRows = 16;

  void SetUp() override {
    RowOpTest::SetUp();
    if (test_device() == nullptr) return;
    const LayerTailCase& c = GetParam();
    args_.x = upload_typed(typed(int64_t{kMaxRows} * c.x_size, 1, 1));
    args_.o = packed(c.hidden, c.x_size, 2);
    args_.gate_up = packed(2 * c.inner, c.hidden, 3, WeightOrder::kGateUp);
    args_.down = packed(c.hidden, c.inner, 4);
    args_.qkv = packed(c.qkv_size, c.hidden, 5);
    if (c.biases) {
      args_.o_bias = to_device(random_floats(c.hidden, 6));
      args_.gate_up_bias = to_device(random_floats(2 * c.inner, 7));
      args_.down_bias = to_device(random_floats(c.hidden, 8));
      args_.qkv_bias = to_device(random_floats(c.qkv_size, 9));
    }
    args_.mlp_norm = to_device(random_floats(c.hidden, 10));
    args_.next_norm = to_device(random_floats(c.hidden, 11));
    residual_ = random_floats(kMaxRows * c.hidden, 12);
    args_.sync = to_device(std::vector<uint32_t>(LayerTailArgs::kSyncWords));
    args_.hidden = c.hidden;
    args_.x_size = c.x_size;
    args_.inner = c.inner;
    args_.qkv_size = c.qkv_size;
    args_.eps = 1e-5f;
    args_.dtype = c.dtype;
    args_.activation = c.activation;
  }

  TypedData typed(int64_t size, int seed, float scale) const {
    return typed_data(random_floats(static_cast<size_t>(size), seed, scale), GetParam().dtype);
  }
  const void* packed(int32_t n, int32_t k, int seed, WeightOrder order = WeightOrder::kPlain) {
    const TypedData w = typed(int64_t{n} * k, seed, 1 / std::sqrt(static_cast<float>(k)));
    return pack(w.data(), n, k, GetParam().dtype, order);
  }

  // Fresh rows, of which `rows` of max_rows are live.
  LayerTailArgs fresh(int32_t rows, int32_t max_rows, bool has_next) {
    const auto size = [max_rows](int32_t columns) {
      return static_cast<size_t>(max_rows) * static_cast<size_t>(columns);
    };
    LayerTailArgs args = args_;
    const size_t act = dtype_size(args.dtype);
    args.counts = counts(rows);
    args.max_rows = max_rows;
    args.residual = to_device(residual_);
    args.delta = to_device(std::vector<float>(size(args.hidden), 7));
    args.qkv_out = to_device(std::vector<float>(size(args.qkv_size), 7));
    args.normed = marked(size(args.hidden) * act);
    args.gated = marked(size(args.inner) * act);
    if (!has_next) args.qkv = nullptr;
    return args;
  }

  // Of the live rows alone.
  Outcome outcome(const LayerTailArgs& args, int32_t rows) {
    const auto size = [rows](int32_t columns) {
      return static_cast<size_t>(rows) * static_cast<size_t>(columns);
    };
    const size_t act = dtype_size(args.dtype);
    return {read(args.residual, size(args.hidden)),
            // Which product is left there last is all the same with a next layer.
            args.qkv != nullptr ? std::vector<float>() : read(args.delta, size(args.hidden)),
            args.qkv != nullptr ? read(args.qkv_out, size(args.qkv_size)) : std::vector<float>(),
            read(static_cast<const uint8_t*>(args.normed), size(args.hidden) * act),
            read(static_cast<const uint8_t*>(args.gated), size(args.inner) * act)};
  }

  void enqueue_one_by_one(const LayerTailArgs& args) {
    const LayerTailOps ops = layer_tail_ops(args);
    gemm(queue(), ops.o);
    rms_norm(queue(), ops.mlp_norm);
    gemm(queue(), ops.gate_up);
    gemm(queue(), ops.down);
    if (args.qkv == nullptr) return;
    rms_norm(queue(), ops.next_norm);
    gemm(queue(), ops.qkv);
  }

  Outcome one_by_one(int32_t rows, int32_t max_rows, bool has_next) {
    const LayerTailArgs args = fresh(rows, max_rows, has_next);
    enqueue_one_by_one(args);
    return outcome(args, rows);
  }

  Outcome at_once(int32_t rows, int32_t max_rows, bool has_next) {
    const LayerTailArgs args = fresh(rows, max_rows, has_next);
    layer_tail(queue(), args);
    return outcome(args, rows);
  }

  LayerTailArgs args_{};
  std::vector<float> residual_;
};

TEST_P(LayerTailTest, HasTheBitsOfItsOps) {
  int cases = 0;
  for (const bool has_next : {true, false}) {
    for (const int32_t max_rows : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
      for (const int32_t rows : {max_rows, max_rows / 2 + 1}) {
        if (cases++ % test_thinning() != 0) continue;
        EXPECT_TRUE(at_once(rows, max_rows, has_next) == one_by_one(rows, max_rows, has_next))
            << rows << " rows of " << max_rows << (has_next ? ", a next layer" : "");
      }
    }
  }
}

// Rows of a batch have the bits that they have alone.
TEST_P(LayerTailTest, RowsDependOnThemselvesAlone) {
  const Outcome all = at_once(kMaxRows, kMaxRows, true);
  const Outcome one = at_once(1, 1, true);
  EXPECT_TRUE(std::equal(one.residual.begin(), one.residual.end(), all.residual.begin()));
  EXPECT_TRUE(std::equal(one.qkv.begin(), one.qkv.end(), all.qkv.begin()));
}

// As two engines of a process: each queue's ops have their own rows, and all end.
TEST_P(LayerTailTest, TwoQueuesAtOnce) {
  const int times = thinned(20);
  const auto other = device().make_queue();
  ASSERT_TRUE(other.ok());
  LayerTailArgs first = fresh(2, 2, true), second = fresh(5, 5, true);
  second.sync = to_device(std::vector<uint32_t>(LayerTailArgs::kSyncWords));
  drain();
  const auto run = [times](Queue& queue, const LayerTailArgs& args) {
    for (int i = 0; i < times; ++i) layer_tail(queue, args);
    EXPECT_TRUE(queue.drain().ok());
  };
  std::thread beside([&] { run(*other.value(), second); });
  run(queue(), first);
  beside.join();
  for (const auto& [args, rows] : {std::pair(first, 2), std::pair(second, 5)}) {
    const LayerTailArgs alone = fresh(rows, rows, true);
    for (int i = 0; i < times; ++i) layer_tail(queue(), alone);
    EXPECT_TRUE(outcome(args, rows) == outcome(alone, rows)) << rows << " rows";
  }
}

// Many in a row, as the layers of a model, with dead steps between them.
TEST_P(LayerTailTest, RunsAgainAndAgain) {
  const LayerTailArgs live = fresh(3, 4, true);
  LayerTailArgs dead = live;
  dead.counts = counts(0);
  const int times = thinned(40);
  for (int i = 0; i < times; ++i) {
    layer_tail(queue(), live);
    layer_tail(queue(), dead);
  }
  const Outcome many = outcome(live, 3);
  const LayerTailArgs alone = fresh(3, 4, true);
  for (int i = 0; i < times; ++i) enqueue_one_by_one(alone);
  EXPECT_TRUE(many == outcome(alone, 3));
}

class DeepTailTest : public LayerTailTest {
  void SetUp() override {
    if (test_device() != nullptr && test_device()->type() == DeviceType::kCpu) {
      GTEST_SKIP() << "a kernel of the GPU's";
    }
    LayerTailTest::SetUp();
  }
};

// Weights that fill a block's ring several times: what is copied over a place that is still read
// shows once in a great many launches.
TEST_P(DeepTailTest, EveryLaunchHasTheSameBits) {
  const int times = thinned(1000);
  for (const int32_t rows : {1, 5}) {
    const LayerTailArgs many = fresh(rows, rows, true), alone = fresh(rows, rows, true);
    for (int i = 0; i < times; ++i) layer_tail(queue(), many);
    for (int i = 0; i < times; ++i) enqueue_one_by_one(alone);
    EXPECT_TRUE(outcome(many, rows) == outcome(alone, rows)) << rows << " rows";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeepTailTest,
                         testing::Values(LayerTailCase{"deep", 2048, 1024, 8192, 2048,
                                                       DType::kBF16}),
                         [](const auto& shape) { return std::string(shape.param.name); });

// The larger ones take a GPU's own kernel; sizes that no unit of 16 or 64 divides are among them.
INSTANTIATE_TEST_SUITE_P(
    Shapes, LayerTailTest,
    testing::Values(LayerTailCase{"float", 24, 16, 40, 32, DType::kF32, true},
                    LayerTailCase{"small", 96, 64, 160, 128, DType::kBF16},
                    LayerTailCase{"uneven", 104, 72, 168, 136, DType::kBF16, true},
                    LayerTailCase{"large", 1024, 1024, 4160, 1536, DType::kBF16},
                    LayerTailCase{"biases", 1088, 960, 4224, 1560, DType::kBF16, true},
                    LayerTailCase{"wide", 4096, 512, 1024, 768, DType::kBF16, false,
                                  Activation::kGeluTanh},
                    LayerTailCase{"tiles", 512, 512, 9216, 768, DType::kBF16},
                    LayerTailCase{"wider", 5120, 256, 832, 512, DType::kBF16}),
    [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace foretoken
