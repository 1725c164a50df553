#include "kernels/sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "support/random_data.h"
#include "support/step_data.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// What the op wrote of one row.
struct Described {
  RowLogprobs row;
  std::vector<TopLogprob> top;
};

// Row i of a step belongs to slot i.
struct Wish {
  std::vector<float> logits;
  int32_t sampled;
  int32_t num_logprobs;
};

class LogprobsTest : public StepTest {
 protected:
  // Runs rows of logits as tiles of `tile` rows. Top lists have room for `max_top`.
  std::vector<Described> describe(const std::vector<Wish>& wishes, int max_top, int tile,
                                  bool shaped = false, const SlotParams& shape = {}) {
    const int rows = static_cast<int>(wishes.size());
    const int vocab = static_cast<int>(wishes[0].logits.size());
    std::vector<int32_t> index(wishes.size()), sampled;
    std::iota(index.begin(), index.end(), 0);
    std::vector<SlotParams> params(wishes.size());
    for (size_t i = 0; i < wishes.size(); ++i) {
      sampled.push_back(wishes[i].sampled);
      params[i] = shape;
      params[i].num_logprobs = wishes[i].num_logprobs;
      params[i].repetition_penalty = shaped ? 1.5f : 1.0f;
    }
    StepTensors tensors{};
    tensors.counts = to_device(std::vector<StepCounts>{{rows, rows, 0, 0}});
    tensors.logits_rows = tensors.row_slot = to_device(index);
    tensors.sampled = to_device(sampled);
    const ResultLimits limits{1, rows, max_top, 0};
    char* result = allocate<char>(static_cast<size_t>(result_bytes(limits)));
    const SlotParams* slots = to_device(params);
    for (int offset = 0; offset < rows; offset += tile) {
      std::vector<float> logits;
      for (int i = offset; i < std::min(rows, offset + tile); ++i) {
        const auto& row = wishes[static_cast<size_t>(i)].logits;
        logits.insert(logits.end(), row.begin(), row.end());
      }
      const float* right = to_device(logits);
      const float* wrong = to_device(std::vector<float>(logits.size(), 1.0f));
      const bool raw = shaped && !wants_processed(params[0]);
      foretoken::logprobs(queue(), {raw ? wrong : right, raw ? right : wrong, tensors, slots,
                                    result, limits, offset, tile, vocab});
    }
    return results(read(result, static_cast<size_t>(result_bytes(limits))), limits);
  }

  static std::vector<Described> results(std::vector<char> bytes, const ResultLimits& limits) {
    const ResultView view = result_view(bytes.data(), limits);
    std::vector<Described> out;
    for (int i = 0; i < limits.max_rows; ++i) {
      const TopLogprob* top = view.top + int64_t{i} * limits.max_top;
      out.push_back({view.rows[i], {top, top + std::max(0, view.rows[i].num_top)}});
    }
    return out;
  }

  // kernels/sampling/logprobs.h in double precision.
  static void expect_described(const Wish& wish, const Described& got, int max_top) {
    const int vocab = static_cast<int>(wish.logits.size());
    const double max = *std::max_element(wish.logits.begin(), wish.logits.end());
    double sum = 0;
    for (const float l : wish.logits) sum += std::exp(l - max);
    const auto logprob = [&](int32_t id) {
      return wish.logits[static_cast<size_t>(id)] - max - std::log(sum);
    };
    const auto near = [&](float value, double want, const char* what) {
      if (std::isinf(want)) {
        ASSERT_EQ(value, want) << what;
      } else {
        ASSERT_NEAR(value, want, 1e-5 + 1e-6 * std::abs(want)) << what;
      }
    };
    ASSERT_EQ(got.row.id, wish.sampled);
    near(got.row.logprob, logprob(wish.sampled), "own");
    const float own = wish.logits[static_cast<size_t>(wish.sampled)];
    const auto above =
        std::count_if(wish.logits.begin(), wish.logits.end(), [&](float l) { return l > own; });
    ASSERT_EQ(got.row.rank, 1 + above);
    ASSERT_EQ(got.row.num_top, std::min({wish.num_logprobs, vocab, max_top}));
    std::vector<int32_t> order(wish.logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return wish.logits[static_cast<size_t>(a)] > wish.logits[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < got.top.size(); ++i) {
      ASSERT_EQ(got.top[i].id, order[i]) << "place " << i;
      near(got.top[i].logprob, logprob(order[i]), "top");
    }
  }

  void expect_all(const std::vector<Wish>& wishes, int max_top, int tile, bool shaped = false) {
    const auto got = describe(wishes, max_top, tile, shaped);
    for (size_t i = 0; i < wishes.size(); ++i) {
      expect_described(wishes[i], got[i], max_top);
      if (HasFatalFailure()) FAIL() << "row " << i;
    }
  }
};

class LogprobsBySize : public LogprobsTest, public testing::WithParamInterface<int> {};

TEST_P(LogprobsBySize, MatchesDoublePrecision) {
  const int vocab = GetParam();
  std::vector<Wish> wishes;
  for (const int top : {0, 1, 2, 5, 20, 300, 1024}) {
    const uint64_t seed = static_cast<uint64_t>(vocab * 31 + top);
    auto logits = random_floats(static_cast<size_t>(vocab), seed, 5.0f);
    if (top == 20 && vocab > 1) logits[0] = -kInf;
    if (top % 2 == 0) {
      for (size_t i = 0; i < logits.size(); i += 3) logits[i] = std::round(logits[i]);
    }
    wishes.push_back({logits, static_cast<int32_t>(seed % static_cast<uint64_t>(vocab)), top});
  }
  expect_all(wishes, 1024, 3);
  expect_all(wishes, 10, 7);
}

TEST_P(LogprobsBySize, TiesGoToTheLowestIds) {
  const auto vocab = static_cast<size_t>(GetParam());
  std::vector<Wish> wishes;
  for (const int top : {1, 5, 1000, 1024}) {
    wishes.push_back({std::vector<float>(vocab, -2.5f), GetParam() - 1, top});
    wishes.push_back({std::vector<float>(vocab, 0.0f), GetParam() / 2, top});
    for (size_t i = 0; i < vocab; i += 2) wishes.back().logits[i] = -0.0f;
    wishes.push_back({std::vector<float>(vocab, -7.0f), 0, top});
    for (size_t i = 5; i < vocab; i += 7) wishes.back().logits[i] = 1.0f;
    wishes.back().logits[vocab * 9 / 10] = 2.0f;
  }
  expect_all(wishes, 1024, 5);
}

// Long rows take minutes under compute-sanitizer's racecheck.
INSTANTIATE_TEST_SUITE_P(Vocab, LogprobsBySize, testing::Values(1, 7, 300, 512, 1025, 20011, 40001),
                         testing::PrintToStringParamName());

TEST_F(LogprobsTest, MinusInfHasAPlaceAmongTheAlternatives) {
  Wish one{std::vector<float>(400, -kInf), 7, 400};
  one.logits[399] = 3.0f;
  expect_all({one}, 400, 1);
  one.sampled = 399;
  const auto got = describe({one}, 400, 1);
  EXPECT_EQ(got[0].row.logprob, 0.0f);
  EXPECT_EQ(got[0].row.rank, 1);
}

TEST_F(LogprobsTest, ExtremeLogits) {
  Wish wide{random_floats(3000, 8, 1e4f), 17, 50};
  Wish flat{random_floats(3000, 9, 1e-6f), 2999, 50};
  Wish huge{random_floats(3000, 10, 1.0f), 0, 5};
  huge.logits[5] = 3e38f;
  huge.logits[6] = -3e38f;
  expect_all({wide, flat, huge}, 50, 3);
}

TEST_F(LogprobsTest, RowsWithoutTheWishOrAProbabilityHoldNothing) {
  std::vector<Wish> wishes(7, {random_floats(700, 3), 5, 4});
  wishes[0].num_logprobs = kNoLogprobs;
  wishes[1].sampled = -1;
  wishes[2].logits[699] = std::numeric_limits<float>::quiet_NaN();
  wishes[3].logits[0] = kInf;
  std::fill(wishes[4].logits.begin(), wishes[4].logits.end(), -kInf);
  wishes[5].sampled = 700;
  const auto got = describe(wishes, 4, 7);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(got[static_cast<size_t>(i)].row.num_top, kNoLogprobs) << i;
  EXPECT_EQ(got[0].row.id, 5);
  EXPECT_EQ(got[1].row.id, -1);
  expect_described(wishes[6], got[6], 4);
}

// What the draw keeps of a row, in double precision: log-probabilities, -inf for the others.
std::vector<double> drawn_logprobs(const std::vector<float>& logits, const SlotParams& params) {
  const double max = *std::max_element(logits.begin(), logits.end());
  const double t = params.temperature > 0 ? params.temperature : 1;
  std::vector<double> weights;
  for (const float l : logits) {
    const double w = std::exp((l - max) / t);
    const bool kept = params.temperature > 0 ? w >= params.min_p : l == max;
    weights.push_back(kept ? w : 0);
  }
  const auto keep_from = [&](float floor) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] < floor) weights[i] = 0;
    }
  };
  std::vector<float> order = logits;
  std::sort(order.begin(), order.end(), std::greater<>());
  const bool by_count = params.temperature > 0 && params.top_k > 0;
  if (by_count) keep_from(order[static_cast<size_t>(params.top_k - 1)]);
  if (params.temperature > 0 && params.top_p < 1) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    double mass = 0;
    for (size_t i = 0; i < order.size() && mass < params.top_p * total; ++i) {
      mass += std::exp((order[i] - max) / t);
      if (mass >= params.top_p * total) keep_from(order[i]);
    }
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> logprobs;
  for (const double w : weights) logprobs.push_back(w > 0 ? std::log(w / sum) : -kInf);
  return logprobs;
}

SlotParams draws(float temperature, float top_p, int32_t top_k, float min_p) {
  SlotParams params{};
  params.temperature = temperature;
  params.top_p = top_p;
  params.top_k = top_k;
  params.min_p = min_p;
  return params;
}

TEST_F(LogprobsTest, ProcessedOnesAreOfTheDistributionThatIsDrawnFrom) {
  const SlotParams shapes[] = {
      draws(1, 1, 0, 0),      draws(0.5f, 1, 0, 0),         draws(2, 0.9f, 0, 0),
      draws(0.7f, 1, 12, 0),  draws(0.7f, 0.5f, 40, 0.01f), draws(0, 0.5f, 0, 0),
      draws(1.5f, 1, 0, 0.2f)};
  for (const int vocab : {40, 3000, 20011}) {
    for (const SlotParams& shape : shapes) {
      const auto logits = random_floats(static_cast<size_t>(vocab), 11, 4.0f);
      const auto wanted = drawn_logprobs(logits, shape);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      for (const int32_t id : {static_cast<int32_t>(best), 7}) {
        const Wish wish{logits, id, 30 | kProcessedLogprobs};
        const Described got = describe({wish}, 30, 1, true, shape)[0];
        const auto near = [&](float value, double want) {
          if (std::isinf(want)) {
            ASSERT_EQ(value, want);
          } else {
            ASSERT_NEAR(value, want, 2e-5 + 1e-6 * std::abs(want));
          }
        };
        ASSERT_EQ(got.row.num_top, 30);
        near(got.row.logprob, wanted[static_cast<size_t>(id)]);
        for (const TopLogprob& top : got.top)
          near(top.logprob, wanted[static_cast<size_t>(top.id)]);
        if (HasFatalFailure()) FAIL() << vocab << ", temperature " << shape.temperature;
      }
    }
  }
}

TEST_F(LogprobsTest, ShapedSlotsReadTheKeptLogits) {
  expect_all({{random_floats(900, 3), 5, 4}, {random_floats(900, 4), 6, 9}}, 9, 2, true);
}

// The same row in other batches, tiles and places; on CUDA few long rows are worked on by clusters.
class LogprobsByBatch : public LogprobsTest, public testing::WithParamInterface<int> {};

TEST_P(LogprobsByBatch, BitsDoNotDependOnTheBatch) {
  const auto vocab = static_cast<size_t>(GetParam());
  const Wish wish{random_floats(vocab, 77, 3.0f), 123, 40};
  const Described alone = describe({wish}, 40, 1)[0];
  for (const int rows : {3, thinned(80)}) {
    std::vector<Wish> wishes;
    for (int i = 0; i < rows; ++i) {
      wishes.push_back({random_floats(vocab, static_cast<uint64_t>(i)), i, i % 50});
    }
    wishes[static_cast<size_t>(rows / 2)] = wish;
    for (const int tile : {2, rows}) {
      const Described got = describe(wishes, 50, tile)[static_cast<size_t>(rows / 2)];
      ASSERT_EQ(std::memcmp(&got.row, &alone.row, sizeof alone.row), 0);
      ASSERT_EQ(got.top.size(), alone.top.size());
      ASSERT_EQ(std::memcmp(got.top.data(), alone.top.data(), 40 * sizeof(TopLogprob)), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vocab, LogprobsByBatch, testing::Values(2000, 20000),
                         testing::PrintToStringParamName());

// Rows beyond the capacities are left out; nothing behind them is written.
TEST_F(LogprobsTest, StaysWithinTheCapacities) {
  StepTensors tensors{};
  tensors.counts = to_device(std::vector<StepCounts>{{6, 6, 0, 0}});
  tensors.logits_rows = tensors.row_slot = to_device(std::vector<int32_t>(6, 0));
  tensors.sampled = to_device(std::vector<int32_t>(6, 2));
  std::vector<SlotParams> params(1);
  params[0].num_logprobs = 9;
  params[0].repetition_penalty = 1;
  const ResultLimits limits{1, 5, 3, 0};
  const size_t bytes = static_cast<size_t>(result_bytes(limits));
  char* result = to_device(std::vector<char>(bytes + 64, 0x5a));
  foretoken::logprobs(queue(), {to_device(random_floats(4 * 90, 1)), nullptr, tensors,
                                to_device(params), result, limits, 4, 4, 90});
  auto got = read(result, bytes + 64);
  const ResultView view = result_view(got.data(), limits);
  EXPECT_EQ(view.rows[4].num_top, 3);
  EXPECT_EQ(view.rows[3].id, 0x5a5a5a5a);
  EXPECT_EQ(view.top[11].id, 0x5a5a5a5a);
  for (size_t i = bytes; i < bytes + 64; ++i) ASSERT_EQ(got[i], 0x5a);
}

}  // namespace
}  // namespace foretoken
