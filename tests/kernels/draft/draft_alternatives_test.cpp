#include "kernels/draft/draft_alternatives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "support/test_device.h"

namespace foretoken {
namespace {

class DraftAlternativesTest : public DeviceTest {
 protected:
  static constexpr int kEach = kDraftAlternatives + 1;

  std::vector<DraftAlternative> run(const std::vector<float>& logits,
                                    const std::vector<int32_t>& sampled, int vocab,
                                    int row_offset = 0) {
    const int rows = static_cast<int>(logits.size()) / vocab;
    const std::vector<DraftAlternative> nothing(sampled.size() * kEach, {-5, -5});
    DraftAlternative* out = to_device(nothing);
    const StepCounts counts{0, static_cast<int32_t>(sampled.size()), 0, 0};
    draft_alternatives(queue(), {.logits = to_device(logits),
                                 .counts = to_device(std::vector<StepCounts>{counts}),
                                 .sampled = to_device(sampled),
                                 .out = out,
                                 .row_offset = row_offset,
                                 .max_rows = rows,
                                 .vocab = vocab});
    return read(out, nothing.size());
  }
};

TEST_F(DraftAlternativesTest, AreTheLikeliestIdsBesideTheDraft) {
  constexpr int kVocab = 5003, kRows = 3;
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocab * kRows);
  for (float& logit : logits) logit = normal(random);
  const std::vector<int32_t> sampled = {17, 4000, 0};
  const std::vector<DraftAlternative> out = run(logits, sampled, kVocab);
  for (int r = 0; r < kRows; ++r) {
    const float* row = logits.data() + int64_t{r} * kVocab;
    std::vector<int> ids;
    for (int id = 0; id < kVocab; ++id) {
      if (id != sampled[r]) ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end(), [&](int a, int b) { return row[a] > row[b]; });
    double sum = 0;
    for (int id = 0; id < kVocab; ++id) sum += std::exp(static_cast<double>(row[id]));
    for (int k = 0; k < kEach; ++k) {
      const DraftAlternative& found = out[r * kEach + k];
      EXPECT_EQ(found.id, k == 0 ? sampled[r] : ids[k - 1]) << r << " " << k;
      EXPECT_NEAR(found.chance, std::exp(static_cast<double>(row[found.id])) / sum * kSureDraft, 2);
    }
  }
}

TEST_F(DraftAlternativesTest, TiesGoToTheLowestIdAndWhatCannotBeIsNone) {
  const float none = -std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits = {1, 2,    2,    1,    none, nan,  //
                                     3, none, none, none, none, none};
  const std::vector<DraftAlternative> out = run(logits, {2, 0}, 6);
  const auto ids = [&](int row) {
    std::vector<int32_t> found;
    for (int k = 0; k < kEach; ++k) found.push_back(out[row * kEach + k].id);
    return found;
  };
  EXPECT_EQ(ids(0), (std::vector<int32_t>{2, 1, 0, 3, -1}));
  EXPECT_EQ(ids(1), (std::vector<int32_t>{0, -1, -1, -1, -1}));
  EXPECT_EQ(out[kEach].chance, kSureDraft);
  EXPECT_EQ(out[kEach + 1].chance, 0);
}

TEST_F(DraftAlternativesTest, RowsWithoutADraftHaveNone) {
  const std::vector<DraftAlternative> out = run({1, 2, 3, 4}, {1, -1}, 4, 1);
  EXPECT_EQ(out[0].id, -5) << "not of this tile";
  for (int k = 0; k < kEach; ++k) {
    EXPECT_EQ(out[kEach + k].id, -1);
    EXPECT_EQ(out[kEach + k].chance, 0);
  }
}

}  // namespace
}  // namespace foretoken
