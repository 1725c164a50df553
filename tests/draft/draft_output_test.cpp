#include "draft/draft_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "support/test_device.h"

namespace foretoken {
namespace {

// Twenty rows of three sequences, two of them live beyond the first tile.
class DraftOutputTest : public DeviceTest {
 protected:
  static constexpr int kRows = 20, kLive = 18, kMatrix = 30, kHidden = 16, kVocab = 50;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    std::mt19937 engine(3);
    std::normal_distribution<float> normal;
    for (auto* values : {&weight_, &states_}) {
      for (float& value : *values) value = normal(engine);
    }
    for (int row = 0; row < kMatrix; ++row) {
      // Every seventh row has no target id.
      map_[static_cast<size_t>(row)] = row % 7 == 3 ? -1 : (row * 17 + 5) % kVocab;
    }
  }

  StepTensors rows() {
    std::vector<int32_t> index(kRows), slot(kRows), position(kRows);
    for (int i = 0; i < kRows; ++i) {
      index[static_cast<size_t>(i)] = i;
      slot[static_cast<size_t>(i)] = i % 3;
      position[static_cast<size_t>(i)] = 9 + i;
    }
    StepTensors made{};
    made.counts = to_device(std::vector<StepCounts>{{kLive, kLive, 0, 0}});
    made.logits_rows = to_device(index);
    made.row_slot = to_device(slot);
    made.positions = to_device(position);
    made.token_ids = to_device(index);
    made.kv_slot = to_device(index);
    made.sampled = to_device(std::vector<int32_t>(kRows, -7));
    return made;
  }

  BatchState batch(float temperature) {
    std::vector<SlotParams> params(4);
    for (size_t i = 0; i < params.size(); ++i) {
      params[i].temperature = temperature;
      params[i].top_p = 1;
      params[i].seed = 100 + i;
      params[i].repetition_penalty = 1;
    }
    BatchState made{};
    made.params = to_device(params);
    made.slots = to_device(std::vector<SlotState>(4));
    made.block_tables = to_device(std::vector<int32_t>(4));
    made.token_pages = to_device(std::vector<int32_t>(16));
    made.max_blocks = 1;
    made.block_size = 16;
    made.num_slots = 3;
    return made;
  }

  std::vector<int32_t> draw(bool probabilistic, bool mapped, float temperature, float softcap = 0) {
    DraftOutput output(device(), {.max_logits_rows = kRows,
                                  .matrix_rows = kMatrix,
                                  .target_vocab = kVocab,
                                  .probabilistic = probabilistic,
                                  .mapped = mapped});
    EXPECT_TRUE(output.take().ok());
    EXPECT_GT(output.bytes(), 0);
    const OutputMatrix matrix{.weight = pack(weight_.data(), kMatrix, kHidden, DType::kF32),
                              .id_map = mapped ? to_device(map_) : nullptr,
                              .rows = kMatrix,
                              .hidden = kHidden,
                              .dtype = DType::kF32,
                              .softcap = softcap};
    const StepTensors tensors = rows();
    const void* states = to_device(states_);
    output.draw(queue(), matrix, states, {tensors, kRows}, DraftStep{.batch = batch(temperature)});
    return read(tensors.sampled, kRows);
  }

  // The rows of slot 1 may only draft `allowed_id`, whose masks are there already.
  std::vector<int32_t> draw_masked(bool mapped, int32_t allowed_id) {
    constexpr int32_t kWords = 2;
    DraftOutput output(device(), {.max_logits_rows = kRows,
                                  .matrix_rows = kMatrix,
                                  .target_vocab = kVocab,
                                  .probabilistic = false,
                                  .mapped = mapped,
                                  .masked = true});
    EXPECT_TRUE(output.take().ok());
    const OutputMatrix matrix{.weight = pack(weight_.data(), kMatrix, kHidden, DType::kF32),
                              .id_map = mapped ? to_device(map_) : nullptr,
                              .rows = kMatrix,
                              .hidden = kHidden,
                              .dtype = DType::kF32};
    DraftStep step{.batch = batch(0)};
    std::vector<SlotParams> params = read(step.batch.params, 4);
    params[1].grammar = 5;
    step.batch.params = to_device(params);
    std::vector<SlotState> slots(4);
    slots[1].len = 10;
    slots[1].num_masks = kRows;
    step.batch.slots = to_device(slots);
    std::vector<uint32_t> masks(kRows * kWords);
    for (size_t row = 0; row < kRows; ++row) {
      masks[row * kWords + static_cast<size_t>(allowed_id / 32)] = 1u << (allowed_id % 32);
    }
    uint64_t* words = to_device(std::vector<uint64_t>(8));
    step.masks = {.exchange = {.posted = words,
                               .passed = words + 1,
                               .taken = words + 2,
                               .answered = words + 3,
                               .num_spans = to_device(std::vector<int32_t>(1)),
                               .spans = to_device(std::vector<MaskSpan>(1)),
                               .answers = words + 4,
                               .masks = to_device(masks),
                               .resting = words + 5,
                               .repairs = to_device(std::vector<int32_t>(kMaxDraftTokens)),
                               .max_spans = 1,
                               .rows_each = kRows,
                               .mask_words = kWords},
                  .ticket = to_device(std::vector<MaskTicket>(1)),
                  .budget_ns = 0};
    const StepTensors tensors = rows();
    step.tensors = tensors;
    step.tensors.spans = to_device(std::vector<SpanState>(1));
    output.draw(queue(), matrix, to_device(states_), {tensors, kRows}, step);
    return read(tensors.sampled, kRows);
  }

  int32_t likeliest(int row, bool mapped) const {
    int32_t best = -1;
    double best_value = -1e30;
    for (int n = 0; n < kMatrix; ++n) {
      if (mapped && map_[static_cast<size_t>(n)] < 0) continue;
      double value = 0;
      for (int k = 0; k < kHidden; ++k) {
        value += double(states_[static_cast<size_t>(row * kHidden + k)]) *
                 weight_[static_cast<size_t>(n * kHidden + k)];
      }
      if (value > best_value) {
        best_value = value;
        best = mapped ? map_[static_cast<size_t>(n)] : n;
      }
    }
    return best;
  }

  std::vector<float> weight_ = std::vector<float>(kMatrix * kHidden);
  std::vector<float> states_ = std::vector<float>(kRows * kHidden);
  std::vector<int32_t> map_ = std::vector<int32_t>(kMatrix);
};

TEST_F(DraftOutputTest, TheLikeliestIdOfEachLiveRow) {
  for (const bool mapped : {false, true}) {
    const std::vector<int32_t> ids = draw(false, mapped, 1);
    for (int row = 0; row < kLive; ++row) {
      EXPECT_EQ(ids[static_cast<size_t>(row)], likeliest(row, mapped)) << row;
    }
  }
}

TEST_F(DraftOutputTest, SampledAtTemperatureZeroItIsTheSame) {
  for (const bool mapped : {false, true}) {
    const std::vector<int32_t> greedy = draw(false, mapped, 0), sampled = draw(true, mapped, 0);
    EXPECT_TRUE(std::equal(greedy.begin(), greedy.begin() + kLive, sampled.begin()));
  }
}

TEST_F(DraftOutputTest, SampledIdsFollowTheNoise) {
  const std::vector<int32_t> ids = draw(true, true, 1);
  EXPECT_EQ(ids, draw(true, true, 1));
  EXPECT_NE(ids, draw(true, true, 0));
  for (int row = 0; row < kLive; ++row) {
    EXPECT_NE(std::find(map_.begin(), map_.end(), ids[static_cast<size_t>(row)]), map_.end());
    EXPECT_GE(ids[static_cast<size_t>(row)], 0);
  }
}

// A cap far below the logits makes them nearly equal, so that other ids come up.
TEST_F(DraftOutputTest, LogitsAreCapped) {
  EXPECT_NE(draw(true, false, 1, 0.5f), draw(true, false, 1));
  EXPECT_EQ(draw(true, false, 0, 20.0f), draw(true, false, 0));
}

TEST_F(DraftOutputTest, GrammarsMaskTheirOwnSlotsAlone) {
  for (const bool mapped : {false, true}) {
    const int32_t allowed = mapped ? map_[8] : 8;
    const std::vector<int32_t> ids = draw_masked(mapped, allowed);
    for (int row = 0; row < kLive; ++row) {
      const auto at = static_cast<size_t>(row);
      if (row % 3 == 1) {
        EXPECT_EQ(ids[at], allowed) << row;
      } else {
        EXPECT_EQ(ids[at], likeliest(row, mapped)) << row;
      }
    }
  }
  // 49 is beyond the rows of the matrix: there is nothing to draft.
  EXPECT_EQ(draw_masked(false, 49)[1], -1);
}

}  // namespace
}  // namespace foretoken
