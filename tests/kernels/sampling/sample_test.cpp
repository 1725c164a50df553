#include "kernels/sampling/sample.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "kernels/sample_math.h"
#include "support/random_data.h"
#include "support/step_data.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

namespace math = sample_math;
constexpr float kSampleInf = std::numeric_limits<float>::infinity();

SlotParams params_of(float temperature, int top_k = 0, float top_p = 1.0f, uint64_t seed = 7,
                     float min_p = 0.0f) {
  SlotParams params{};
  params.seed = seed;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  params.max_len = 1 << 30;
  return params;
}

// The rules of kernels/sampling/sample.h, written as plainly as possible.
int32_t reference_sample(std::vector<float> logits, const SlotParams& p, int position) {
  if (std::any_of(logits.begin(), logits.end(), math::is_invalid_logit)) return -1;
  if (position < p.min_len) {
    for (int i = 0; i < p.num_stop_ids; ++i) logits[p.stop_ids[i]] = -kSampleInf;
  }
  const float max = *std::max_element(logits.begin(), logits.end());
  if (max == -kSampleInf) return -1;
  if (p.temperature == 0) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  std::vector<float> sorted = logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  float floor = -kSampleInf;
  if (p.top_k > 0 && p.top_k < static_cast<int>(sorted.size())) floor = sorted[p.top_k - 1];
  if (p.top_p < 1) {
    const auto mass = [&](float l) {
      const float weight = math::weight_of(l, max, p.temperature);
      return weight < p.min_p ? 0 : math::mass_of(weight);
    };
    uint64_t total = 0, kept = 0;
    for (float l : sorted) total += l >= floor ? mass(l) : 0;
    for (float l : sorted) {
      kept += mass(l);
      if (kept >= math::top_p_mass(p.top_p, total)) {
        floor = std::max(floor, l);
        break;
      }
    }
  }
  int32_t best_id = -1;
  float best = kSampleInf;
  for (size_t id = 0; id < logits.size(); ++id) {
    const float weight = math::weight_of(logits[id], max, p.temperature);
    if (logits[id] < floor || weight <= 0 || weight < p.min_p) continue;
    const Philox4 noise =
        math::noise_words(static_cast<uint32_t>(id / 4), position, p.choice, kSampleTarget, p.seed);
    const float score = math::race_score(noise.v[id % 4], weight);
    if (score < best) {
      best = score;
      best_id = static_cast<int32_t>(id);
    }
  }
  return best_id;
}

class SampleTest : public DeviceTest {
 protected:
  // Samples rows of logits, row i for position first_position + i + 1 of slot i mod slots.
  std::vector<int32_t> sample_rows(const std::vector<float>& logits, int vocab,
                                   const std::vector<SlotParams>& params, int first_position = 0) {
    const int rows = static_cast<int>(logits.size()) / vocab;
    std::vector<int32_t> index(rows), positions(rows), slots(rows);
    for (int i = 0; i < rows; ++i) {
      index[i] = rows - 1 - i;  // token rows in another order than the logits rows
      positions[index[i]] = first_position + i;
      slots[index[i]] = i % static_cast<int>(params.size());
    }
    int32_t* sampled = allocate<int32_t>(rows);
    sample(queue(), {to_device(logits), tensors_of(rows, index, positions, slots, sampled),
                     batch_of(params), 0, rows, vocab});
    return read(sampled, rows);
  }

  StepTensors tensors_of(int logits_rows, const std::vector<int32_t>& index,
                         const std::vector<int32_t>& positions, const std::vector<int32_t>& slots,
                         int32_t* sampled) {
    StepTensors tensors{};
    tensors.counts = to_device(std::vector<StepCounts>{{logits_rows, logits_rows, 0, 0}});
    tensors.positions = to_device(positions);
    tensors.row_slot = to_device(slots);
    tensors.logits_rows = to_device(index);
    tensors.sampled = sampled;
    return tensors;
  }
  // Slots that know no token, so that every row samples.
  BatchState batch_of(const std::vector<SlotParams>& params) {
    BatchState batch{};
    batch.params = to_device(params);
    batch.slots = allocate<SlotState>(params.size());
    batch.block_tables = allocate<int32_t>(params.size());
    batch.token_pages = allocate<int32_t>(1);
    batch.max_blocks = batch.block_size = 1;
    return batch;
  }
};

TEST_F(SampleTest, GreedyTakesTheLowestIdAmongTies) {
  std::vector<float> logits(1000, 0.0f);
  logits[700] = logits[701] = logits[3] = 2.5f;
  EXPECT_EQ(sample_rows(logits, 1000, {params_of(0)}), std::vector<int32_t>{3});
  EXPECT_EQ(sample_rows({-0.0f, 0.0f, -1.0f}, 3, {params_of(0)}), std::vector<int32_t>{0});
}

TEST_F(SampleTest, RowsWithoutProbabilitySampleMinusOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0f, 1.0f}) {
    const SlotParams p = params_of(temperature, 2, 0.9f);
    EXPECT_EQ(sample_rows({1, nan, 2, -kSampleInf, -kSampleInf, -kSampleInf, 1, 2, 3}, 3, {p})[0],
              -1);
    EXPECT_EQ(sample_rows({1, 2, nan}, 3, {p})[0], -1);
    EXPECT_EQ(sample_rows({-kSampleInf, -kSampleInf, -kSampleInf}, 3, {p})[0], -1);
    EXPECT_EQ(sample_rows({-kSampleInf, 5, -kSampleInf}, 3, {p})[0], 1);
  }
}

TEST_F(SampleTest, MinLenMasksStopIds) {
  SlotParams p = params_of(0);
  p.num_stop_ids = 2;
  p.stop_ids[0] = 1;
  p.stop_ids[1] = 3;
  p.min_len = 6;
  // Positions 4, 5 and 6 are sampled; the last reaches min_len.
  const std::vector<float> row = {0, 9, 1, 8};
  std::vector<float> logits;
  for (int i = 0; i < 3; ++i) logits.insert(logits.end(), row.begin(), row.end());
  EXPECT_EQ(sample_rows(logits, 4, {p}, 3), (std::vector<int32_t>{2, 2, 1}));
  p.num_stop_ids = 4;
  p.stop_ids[2] = 0;
  p.stop_ids[3] = 2;
  EXPECT_EQ(sample_rows(row, 4, {p}, 0), std::vector<int32_t>{-1});
}

TEST_F(SampleTest, HonoursRowOffsetAndLiveCount) {
  constexpr int kSampleVocab = 5, kSampleRows = 6;
  std::vector<float> logits(4 * kSampleVocab, 0.0f);
  for (int i = 0; i < 4; ++i) logits[i * kSampleVocab + i] = 1.0f;
  int32_t* sampled = to_device(std::vector<int32_t>(kSampleRows, -7));
  sample(queue(),
         {to_device(logits), tensors_of(4, std::vector<int32_t>(kSampleRows, 0), {0}, {0}, sampled),
          batch_of({params_of(0)}), 2, 4, kSampleVocab});
  EXPECT_EQ(read(sampled, kSampleRows), (std::vector<int32_t>{-7, -7, 0, 1, -7, -7}));
}

class SampleScoredTest : public StepTest {};

// With wants_all the rows whose next token is known take it; the last row and the drafts' sample.
TEST_F(SampleScoredTest, ScoredRowsTakeTheKnownToken) {
  StepData d{StepSizes{}};
  d.set_sequence(1, {10, 11, 12, 13, 14, 15}, 1);
  d.set_drafts(1, {20, 21});
  d.set_sequence(2, {30, 31, 32, 33}, 0);
  d.add_span(1, 8, 4);
  d.add_span(2, 2, 4);
  d.spans[0].wants_all = d.spans[1].wants_all = 1;
  run_prepare(d);
  ASSERT_EQ(d.counts.num_logits_rows, 7 + 2);
  std::vector<float> logits(9 * 64, 0.0f);
  for (int i = 0; i < 9; ++i) logits[static_cast<size_t>(i * 64 + 40 + i)] = 1.0f;
  logits[1] = std::numeric_limits<float>::quiet_NaN();  // a scored row does not look
  sample(queue(), {to_device(logits), tensors_, batch_, 0, 16, 64});
  pull(d);
  EXPECT_EQ(std::vector<int32_t>(d.sampled.begin(), d.sampled.begin() + 9),
            (std::vector<int32_t>{12, 13, 14, 15, 44, 45, 46, 31, 32}));
}

TEST_F(SampleTest, EqualsThePlainRulesExactly) {
  for (const int vocab : {3, 64, 513, 5000, 40001}) {
    const int rows = vocab > 10000 ? 8 : 24;
    auto logits = random_floats(size_t(rows) * vocab, static_cast<uint64_t>(vocab), 3.0f);
    for (size_t i = 0; i < logits.size(); i += 7) logits[i] = std::round(logits[i]);  // ties
    logits[5] = -kSampleInf;
    std::vector<SlotParams> params;
    for (const float temperature : {0.0f, 0.3f, 1.0f, 2.0f}) {
      for (const int top_k : {0, 1, 2, 40, 100000}) {
        for (const float top_p : {1.0f, 0.95f, 0.5f, 0.01f}) {
          for (const float min_p : {0.0f, 0.02f, 0.3f, 1.0f}) {
            params.push_back(params_of(temperature, top_k, top_p, params.size() * 77, min_p));
            params.back().choice = static_cast<int32_t>(params.size() % 3);
          }
        }
      }
    }
    const size_t step = static_cast<size_t>(rows) * test_thinning();
    for (size_t first = 0; first + rows <= params.size(); first += step) {
      const std::vector<SlotParams> some(params.begin() + first, params.begin() + first + rows);
      const auto got = sample_rows(logits, vocab, some, 100);
      for (int i = 0; i < rows; ++i) {
        const std::vector<float> row(logits.begin() + size_t(i) * vocab,
                                     logits.begin() + size_t(i + 1) * vocab);
        ASSERT_EQ(got[i], reference_sample(row, some[i], 101 + i))
            << "vocab " << vocab << " temperature " << some[i].temperature << " top_k "
            << some[i].top_k << " top_p " << some[i].top_p << " min_p " << some[i].min_p;
      }
    }
  }
}

struct ChiCase {
  float temperature;
  int top_k;
  float top_p;
  float min_p = 0.0f;
};

class SampleChiSquareTest : public SampleTest, public testing::WithParamInterface<ChiCase> {};

TEST_P(SampleChiSquareTest, FrequenciesMatchSoftmax) {
  const ChiCase c = GetParam();
  constexpr int kSampleVocab = 12, kSampleRows = 20000;
  const std::vector<float> row = random_floats(kSampleVocab, 9, 1.5f);
  std::vector<float> logits;
  for (int i = 0; i < kSampleRows; ++i) logits.insert(logits.end(), row.begin(), row.end());
  std::vector<SlotParams> params;
  for (uint64_t s = 0; s < 50; ++s) {
    params.push_back(params_of(c.temperature, c.top_k, c.top_p, s, c.min_p));
  }
  std::map<int32_t, double> seen;
  for (int32_t id : sample_rows(logits, kSampleVocab, params)) seen[id] += 1;

  std::vector<int> order(kSampleVocab);
  for (int i = 0; i < kSampleVocab; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
  if (c.top_k > 0) order.resize(c.top_k);
  const auto weight = [&](int id) { return std::exp(double(row[id]) / c.temperature); };
  std::erase_if(order, [&](int id) { return weight(id) < c.min_p * weight(order[0]); });
  double total = 0;
  for (int id : order) total += weight(id);
  double kept = 0;
  size_t size = 0;
  while (size < order.size() && kept < c.top_p * total) kept += weight(order[size++]);
  order.resize(size);
  double chi = 0;
  for (int id : order) {
    const double expected = weight(id) / kept * kSampleRows;
    chi += (seen[id] - expected) * (seen[id] - expected) / expected;
    seen.erase(id);
  }
  EXPECT_TRUE(seen.empty()) << "an id outside the kept set was drawn";
  const double freedom = double(size) - 1;
  EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom) + 1e-9) << size << " ids kept";
}

INSTANTIATE_TEST_SUITE_P(Settings, SampleChiSquareTest,
                         testing::Values(ChiCase{1.0f, 0, 1.0f}, ChiCase{0.7f, 0, 1.0f},
                                         ChiCase{1.3f, 5, 1.0f}, ChiCase{1.0f, 0, 0.8f},
                                         ChiCase{0.9f, 6, 0.7f}, ChiCase{1.0f, 1, 1.0f},
                                         ChiCase{1.0f, 0, 1.0f, 0.1f},
                                         ChiCase{0.8f, 7, 0.9f, 0.05f},
                                         ChiCase{1.0f, 3, 1.0f, 0.3f}));

}  // namespace
}  // namespace foretoken
