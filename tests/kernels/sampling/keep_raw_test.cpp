#include "kernels/sampling/keep_raw.h"

#include "support/random_data.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

class KeepRawTest : public StepTest {};

TEST_F(KeepRawTest, CopiesOnlyShapedRowsWithLogprobs) {
  constexpr int kRawVocab = 5003, kRawRows = 7;
  StepData d{StepSizes{}};
  for (int s = 0; s < 4; ++s) d.set_sequence(s, {1, 2, 3}, 2);
  d.set_drafts(2, {4, 5});
  d.params[0].presence_penalty = 1.0f;  // shaped, no logprobs
  d.params[1].num_logprobs = 0;         // logprobs, not shaped
  d.params[2].num_logprobs = 3;         // both
  d.params[2].processors = 9;
  for (int s = 0; s < 4; ++s) d.add_span(s, 1, 2);
  run_prepare(d);
  ASSERT_EQ(d.counts.num_logits_rows, 6);
  const auto logits = random_floats(size_t{kRawRows} * kRawVocab, 4);
  for (const int offset : {0, 3}) {
    float* raw = to_device(std::vector<float>(logits.size(), 0.5f));
    keep_raw(queue(), {to_device(logits), raw, tensors_, batch_, offset, kRawRows, kRawVocab});
    const auto got = read(raw, logits.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const int row = offset + static_cast<int>(i) / kRawVocab;
      const bool kept = row >= 2 && row <= 4;  // the rows of slot 2
      ASSERT_EQ(got[i], kept ? logits[i] : 0.5f) << "offset " << offset << " row " << row;
    }
  }
}

}  // namespace
}  // namespace foretoken
