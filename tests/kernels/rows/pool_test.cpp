#include "kernels/rows/pool.h"

#include <algorithm>
#include <cmath>

#include "kernels/plan_layout.h"
#include "support/random_data.h"
#include "support/step_data.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

class PoolTest : public StepTest {
 protected:
  static constexpr int kSlots = 4;

  // Runs sequences of `lens` tokens in chunks of at most `chunk` tokens and returns what each
  // slot's result held when its span ended with kStop.
  std::vector<std::vector<float>> run(const std::vector<int>& lens, const std::vector<int>& chunks,
                                      DevicePooling pooling, int hidden, DType dtype) {
    StepSizes sizes;
    sizes.block_size = 16;
    sizes.max_blocks = 16;
    sizes.max_rows = 1024;
    sizes.result_limits = {kSlots, 0, 0, hidden};
    StepData d{sizes};
    for (int s = 0; s < kSlots; ++s) {
      d.set_sequence(s, std::vector<int32_t>(static_cast<size_t>(lens[s]), 7), 0);
      d.params[static_cast<size_t>(s)].pooling = static_cast<int32_t>(pooling);
      d.params[static_cast<size_t>(s)].prompt_len = lens[s];
      d.set_drafts(s, {1, 2});
    }
    // What an earlier sequence left must not show.
    float* sums = to_device(std::vector<float>(static_cast<size_t>((kSlots + 1) * hidden), 99.0f));
    std::vector<std::vector<float>> pooled(kSlots);
    for (int step = 0; step < 300; ++step) {
      d.spans.clear();
      d.header.num_spans = 0;
      for (int s = kSlots - 1; s >= 0; --s) d.add_span(s, chunks[static_cast<size_t>(s)], 5);
      run_prepare(d);
      if (d.counts.num_rows == 0) return pooled;
      const TypedData states = states_of(d, hidden, dtype);
      pool(queue(), {to_device(states.bytes), tensors_, batch_, sums, result_,
                     d.sizes.result_limits, hidden, dtype});
      verify_and_commit(queue(), verify_and_commit_args());
      pull(d);
      collect(d, hidden, pooled);
    }
    ADD_FAILURE() << "the sequences do not end";
    return pooled;
  }

  // The state of a row depends on slot and position alone.
  static TypedData states_of(const StepData& d, int hidden, DType dtype) {
    std::vector<float> values;
    for (int row = 0; row < d.counts.num_rows; ++row) {
      const auto state = state_of(d.row_slot[static_cast<size_t>(row)],
                                  d.positions[static_cast<size_t>(row)], hidden);
      values.insert(values.end(), state.begin(), state.end());
    }
    return typed_data(values, dtype);
  }
  static std::vector<float> state_of(int slot, int position, int hidden) {
    return random_floats(static_cast<size_t>(hidden), static_cast<uint64_t>(slot * 1000 + position),
                         3.0f);
  }

  static void collect(const StepData& d, int hidden, std::vector<std::vector<float>>& pooled) {
    for (size_t i = 0; i < d.spans.size(); ++i) {
      const SpanResult& result = d.results[i];
      if (result.finish == 0) continue;
      EXPECT_TRUE(has_pooled(result));
      EXPECT_EQ(result.num_drafted, 0);
      auto& mine = pooled[static_cast<size_t>(result.slot)];
      EXPECT_TRUE(mine.empty()) << "a sequence ended twice";
      const auto begin = d.pooled.begin() + static_cast<int64_t>(i) * hidden;
      mine.assign(begin, begin + hidden);
    }
  }

  static double reference(int slot, int len, DevicePooling pooling, int hidden, int column,
                          DType dtype) {
    double sum = 0, most = -1e30, weighted = 0;
    for (int position = 0; position < len; ++position) {
      if (pooling == DevicePooling::kFirst && position > 0) continue;
      if (pooling == DevicePooling::kLast && position + 1 < len) continue;
      const auto state = typed_data(state_of(slot, position, hidden), dtype).values;
      const double value = state[static_cast<size_t>(column)];
      sum += value;
      most = std::max(most, value);
      weighted += (position + 1) * value;
    }
    if (pooling == DevicePooling::kMax) return most;
    if (pooling == DevicePooling::kMeanSqrtLen) return sum / std::sqrt(len);
    if (pooling == DevicePooling::kWeightedMean) return weighted / (len * (len + 1) / 2.0);
    return pooling == DevicePooling::kMean ? sum / len : sum;
  }
};

// Spans of other kinds beside them have none.
TEST_F(PoolTest, StatesOfTokensAreHandedBackByRow) {
  constexpr int kHidden = 5;
  StepSizes sizes;
  sizes.block_size = 16;
  sizes.max_blocks = 16;
  sizes.max_rows = 64;
  sizes.result_limits = {kSlots, 0, 0, kHidden, 64};
  StepData d{sizes};
  const int lens[] = {3, 7};
  for (int s = 0; s < 2; ++s) {
    d.set_sequence(s, std::vector<int32_t>(static_cast<size_t>(lens[s]), 7), 0);
    d.params[static_cast<size_t>(s)].prompt_len = lens[s];
    d.params[static_cast<size_t>(s)].pooling =
        static_cast<int32_t>(s == 0 ? DevicePooling::kMean : DevicePooling::kTokens);
  }
  d.header.num_spans = 0;
  for (int s = 0; s < 2; ++s) d.add_span(s, lens[s], 5);
  float* sums = to_device(std::vector<float>(size_t{(kSlots + 1) * kHidden}));
  run_prepare(d);
  const TypedData states = states_of(d, kHidden, DType::kF32);
  pool(queue(), {to_device(states.bytes), tensors_, batch_, sums, result_, d.sizes.result_limits,
                 kHidden, DType::kF32});
  const auto size = static_cast<size_t>(result_bytes(d.sizes.result_limits));
  auto bytes = read(static_cast<const uint8_t*>(static_cast<const void*>(result_)), size);
  const ResultView view = result_view(bytes.data(), d.sizes.result_limits);
  EXPECT_EQ(pooled_states(view, d.sizes.result_limits, 0).size(), size_t{kHidden});
  const auto all = pooled_states(view, d.sizes.result_limits, 1);
  ASSERT_EQ(all.size(), size_t{7 * kHidden});
  for (int position = 0; position < 7; ++position) {
    const std::vector<float> wanted = state_of(1, position, kHidden);
    const auto row = all.subspan(static_cast<size_t>(position) * kHidden, kHidden);
    EXPECT_EQ(std::vector<float>(row.begin(), row.end()), wanted) << position;
  }
}

TEST_F(PoolTest, EveryKindMatchesDoublePrecisionInEveryChunking) {
  const std::vector<int> lens = {1, 5, 63, 200};
  constexpr int kHidden = 83;
  int kinds = 0;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    // What is new of the last two is done by element, whatever the type.
    const bool is_wide = dtype == DType::kF32;
    for (const auto pooling : {DevicePooling::kFirst, DevicePooling::kLast, DevicePooling::kMean,
                               is_wide ? DevicePooling::kMax : DevicePooling::kWeightedMean}) {
      if (kinds++ % test_thinning() != 0) continue;
      const auto whole = run(lens, {300, 300, 300, 300}, pooling, kHidden, dtype);
      for (int s = 0; s < kSlots; ++s) {
        const auto& got = whole[static_cast<size_t>(s)];
        ASSERT_EQ(got.size(), size_t{kHidden}) << s;
        for (int column : {0, 40, kHidden - 1}) {
          const double want =
              reference(s, lens[static_cast<size_t>(s)], pooling, kHidden, column, dtype);
          ASSERT_NEAR(got[static_cast<size_t>(column)], want, 1e-5);
        }
      }
      for (const std::vector<int>& chunks : {std::vector<int>{1, 2, 7, 13}, {1, 1, 50, 199}}) {
        EXPECT_EQ(run(lens, chunks, pooling, kHidden, dtype), whole)
            << "the bits depend on the chunking";
      }
    }
  }
}

TEST_F(PoolTest, WideStatesAreDoneInPieces) {
  const auto pooled = run({3, 9, 2, 1}, {2, 4, 2, 1}, DevicePooling::kMean, 1300, DType::kBF16);
  for (const int column : {0, 511, 512, 1299}) {
    ASSERT_NEAR(pooled[1][static_cast<size_t>(column)],
                reference(1, 9, DevicePooling::kMean, 1300, column, DType::kBF16), 1e-5);
  }
}

TEST_F(PoolTest, SumsOverTheRootOfTheLength) {
  constexpr auto kKind = DevicePooling::kMeanSqrtLen;
  const auto pooled = run({3, 9, 2, 1}, {2, 4, 2, 1}, kKind, 8, DType::kF32);
  ASSERT_NEAR(pooled[1][5], reference(1, 9, kKind, 8, 5, DType::kF32), 1e-5);
}

TEST_F(PoolTest, OtherSlotsAreLeftAlone) {
  StepSizes sizes;
  sizes.result_limits = {4, 0, 0, 8};
  StepData d{sizes};
  d.set_sequence(0, {1, 2}, 0);
  d.add_span(0, 2, 0);
  run_prepare(d);
  float* sums = to_device(std::vector<float>(5 * 8, 99.0f));
  pool(queue(), {to_device(random_floats(16, 1)), tensors_, batch_, sums, result_,
                 sizes.result_limits, 8, DType::kF32});
  pull(d);
  for (const float value : read(sums, 5 * 8)) ASSERT_EQ(value, 99.0f);
  for (const float value : d.pooled) ASSERT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace foretoken
