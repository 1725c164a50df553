#include "model/output_rows.h"

#include <gtest/gtest.h>

#include "model/forward_harness.h"
#include "model/golden.h"

namespace foretoken::test {
namespace {

constexpr int32_t kVocab = 256, kHidden = 32;

// The golden target, whose own output matrix stands for that of a head, too.
class OutputRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
    options_.target_folder = golden_folder() + "architectures/llama";
    target_ = load_test_model(options_.target_folder, {}, 8);
    checkpoint_.emplace(Checkpoint::open(options_.target_folder).value());
    arena_.emplace(model_device(), MemoryKind::kDevice);
    weights_ =
        WeightLoader::create(model_device(), &*checkpoint_, target_->config().dtype, 0, {}, nullptr)
            .value();
  }

  OutputRowsLoader loader() { return {model_device(), *arena_, *weights_, options_, *target_}; }
  Result<OutputRows> own(const std::vector<int32_t>& ids = {}) {
    auto rows = loader().own("lm_head.weight", kVocab, kHidden, ids);
    EXPECT_TRUE(weights_->finish().ok());
    return rows;
  }
  std::vector<int32_t> ids_of(const OutputRows& rows) {
    Arena pinned(model_device(), MemoryKind::kPinned);
    const auto count = static_cast<size_t>(rows.head.rows);
    auto* ids = pinned.take_array<int32_t>(count, "ids").value();
    const auto queue = model_device().make_queue().value();
    queue->copy(ids, rows.head.id_map, count * sizeof(int32_t));
    EXPECT_TRUE(queue->drain().ok());
    return {ids, ids + count};
  }

  DraftHeadOptions options_;
  std::unique_ptr<Model> target_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<Arena> arena_;
  std::unique_ptr<WeightLoader> weights_;
};

TEST_F(OutputRowsTest, WholeMatricesHaveNoMap) {
  const OutputRows rows = own().value();
  EXPECT_EQ(rows.head.rows, kVocab);
  EXPECT_EQ(rows.head.id_map, nullptr);
  EXPECT_EQ(rows.head.weight, rows.weight.get());
}

TEST_F(OutputRowsTest, AReducedVocabularyKeepsWhatIsThere) {
  options_.vocab_ids = {7, 30, 200};
  EXPECT_EQ(ids_of(own().value()), options_.vocab_ids);
  std::vector<int32_t> ids(kVocab);
  for (int32_t i = 0; i < kVocab; ++i) ids[static_cast<size_t>(i)] = 2 * i;
  EXPECT_EQ(ids_of(own(ids).value()), (std::vector<int32_t>{30, 200})) << "7 has no row";
  options_.vocab_ids = {1, 3};
  EXPECT_NE(own(ids).status().message().find("none of the ids"), std::string::npos);
}

TEST_F(OutputRowsTest, RowsOfSomeIds) {
  const std::vector<int32_t> ids = {90, 5, 40};
  OutputRows rows = loader().own_rows("lm_head.weight", kVocab, kHidden, ids).value();
  EXPECT_TRUE(weights_->finish().ok());
  EXPECT_EQ(ids_of(rows), ids);
  options_.vocab_ids = {4, 5, 90, 91};
  rows = loader().own_rows("lm_head.weight", kVocab, kHidden, ids).value();
  EXPECT_TRUE(weights_->finish().ok());
  EXPECT_EQ(ids_of(rows), (std::vector<int32_t>{5, 90}));
}

TEST_F(OutputRowsTest, TheTargetsIsSharedOrCut) {
  OutputRows rows = loader().shared().value();
  EXPECT_EQ(rows.weight.get(), nullptr);
  EXPECT_EQ(rows.head.weight, target_->shared_head().weight);
  EXPECT_EQ(rows.head.rows, kVocab);
  options_.vocab_ids = {9, 11};
  rows = loader().shared().value();
  EXPECT_TRUE(weights_->finish().ok());
  EXPECT_EQ(rows.head.rows, 2);
  EXPECT_EQ(ids_of(rows), options_.vocab_ids);
}

}  // namespace
}  // namespace foretoken::test
