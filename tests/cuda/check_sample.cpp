#include <algorithm>
#include <map>

#include "check.h"
#include "kernels/sample_math.h"
#include "kernels/sampling/sample.h"

namespace foretoken::check {
namespace {

namespace sm = sample_math;

// The header's rule, one id after the other.
int32_t reference(std::vector<float> logits, const SlotParams& p, int position) {
  const int vocab = static_cast<int>(logits.size());
  if (position < p.min_len) {
    for (int i = 0; i < p.num_stop_ids; ++i) {
      if (p.stop_ids[i] < vocab) logits[p.stop_ids[i]] = -INFINITY;
    }
  }
  int best = 0;
  for (int i = 0; i < vocab; ++i) {
    if (sm::is_invalid_logit(logits[i])) return -1;
    if (logits[i] > logits[best]) best = i;
  }
  const float max = logits[best];
  if (max == -INFINITY) return -1;
  if (p.temperature <= 0) return best;
  std::vector<float> sorted = logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<float>());
  float threshold = -INFINITY;
  if (p.top_k > 0 && p.top_k < vocab) threshold = sorted[p.top_k - 1];
  if (p.top_p < 1.0f) {
    const auto mass = [&](float l) {
      const float weight = sm::weight_of(l, max, p.temperature);
      return weight < p.min_p ? uint64_t{0} : uint64_t{sm::mass_of(weight)};
    };
    uint64_t total = 0;
    for (const float l : logits) total += l >= threshold && l > -INFINITY ? mass(l) : 0;
    const uint64_t target = sm::top_p_mass(p.top_p, total);
    uint64_t kept = 0;
    for (int i = 0; i < vocab && kept < target; ++i) {
      const float l = sorted[i];
      kept += mass(l);
      if (kept >= target) threshold = std::max(threshold, l);
    }
  }
  int winner = -1;
  float best_score = 0;
  for (int i = 0; i < vocab; ++i) {
    if (logits[i] < threshold || logits[i] == -INFINITY) continue;
    const float w = sm::weight_of(logits[i], max, p.temperature);
    if (w <= 0 || w < p.min_p) continue;
    const Philox4 words = sm::noise_words(i / 4, position, p.choice, kSampleTarget, p.seed);
    const float score = sm::race_score(words.v[i % 4], w);
    if (winner < 0 || score < best_score) {
      winner = i;
      best_score = score;
    }
  }
  return winner;
}

std::vector<int32_t> run(Gpu& gpu, const std::vector<float>& logits, int vocab,
                         const std::vector<SlotParams>& params, const std::vector<int32_t>& slots,
                         const std::vector<int32_t>& positions) {
  Pool pool(gpu);
  const int rows = static_cast<int>(slots.size());
  std::vector<int32_t> logits_rows(rows + 2);
  for (int i = 0; i < rows; ++i) logits_rows[i + 2] = i;
  auto* sampled = pool.array<int32_t>(rows + 2);
  StepTensors tensors{};
  tensors.counts = device_counts(pool, rows, rows + 2);
  tensors.logits_rows = pool.upload(logits_rows);
  tensors.positions = pool.upload(positions);
  tensors.row_slot = pool.upload(slots);
  tensors.sampled = sampled;
  BatchState batch{};  // slots without a token: every row samples
  batch.params = pool.upload(params);
  batch.slots = pool.upload(std::vector<SlotState>(params.size()));
  gpu.queue->launch(SampleArgs{pool.upload(logits), tensors, batch, 2, rows, vocab});
  auto ids = download(gpu, sampled, rows + 2);
  return {ids.begin() + 2, ids.end()};
}

void check_ids(Gpu& gpu, int vocab) {
  std::vector<SlotParams> params;
  for (const float temperature : {0.0f, 0.3f, 1.0f, 2.0f}) {
    for (const float top_p : {1.0f, 0.9f, 0.1f, 0.999f}) {
      for (const int top_k : {0, 1, 5, 50}) {
        SlotParams p{};
        p.seed = 77 + params.size();
        p.choice = static_cast<int32_t>(params.size() % 3);
        p.temperature = temperature;
        p.top_p = top_p;
        p.top_k = top_k;
        p.min_p = params.size() % 5 == 0 ? 0.05f : params.size() % 5 == 1 ? 0.6f : 0.0f;
        p.min_len = params.size() % 2 == 0 ? 1000 : 0;
        p.num_stop_ids = 3;
        p.stop_ids[0] = vocab / 2;
        p.stop_ids[1] = vocab - 1;
        params.push_back(p);
      }
    }
  }
  const int rows = static_cast<int>(params.size()) + 3;
  auto logits = random_floats(int64_t{rows} * vocab, 41, 6.0f);
  for (int64_t i = 0; i < int64_t{rows} * vocab; i += 3) logits[i] = std::round(logits[i]);
  params.resize(rows, params[20]);
  logits[int64_t{rows - 1} * vocab + 1] = NAN;
  for (int i = 0; i < vocab; ++i) logits[int64_t{rows - 2} * vocab + i] = -INFINITY;
  logits[int64_t{rows - 3} * vocab + vocab / 3] = 80.0f;
  std::vector<int32_t> slots(rows), positions(rows);
  for (int i = 0; i < rows; ++i) {
    slots[i] = i;
    positions[i] = 500 + i;
  }
  const auto got = run(gpu, logits, vocab, params, slots, positions);
  std::vector<int32_t> want(rows);
  parallel(rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      want[i] = reference({logits.begin() + i * vocab, logits.begin() + (i + 1) * vocab}, params[i],
                          positions[i] + 1);
    }
  });
  int different = 0;
  for (int i = 0; i < rows; ++i) different += got[i] != want[i];
  report(different == 0 && got[rows - 1] == -1 && got[rows - 2] == -1, "sample ids",
         text("vocab %d: %d of %d rows differ from the host", vocab, different, rows));
}

void check_distribution(Gpu& gpu, float temperature, float min_p) {
  const int vocab = 40, rows = 4096, rounds = 24;
  const auto one_row = random_floats(vocab, 42, 2.0f);
  std::vector<float> logits;
  for (int r = 0; r < rows; ++r) logits.insert(logits.end(), one_row.begin(), one_row.end());
  std::vector<int64_t> counts(vocab, 0);
  for (int round = 0; round < rounds; ++round) {
    SlotParams p{};
    p.seed = 1000 + round;
    p.temperature = temperature;
    p.min_p = min_p;
    p.top_p = 1.0f;
    std::vector<int32_t> slots(rows, 0), positions(rows);
    for (int r = 0; r < rows; ++r) positions[r] = r;
    for (const int32_t id : run(gpu, logits, vocab, {p}, slots, positions)) ++counts[id];
  }
  const double max = *std::max_element(one_row.begin(), one_row.end());
  std::vector<double> weights;
  double sum = 0;
  for (const float l : one_row) {
    const double weight = std::exp((l - max) / temperature);
    weights.push_back(weight < min_p ? 0 : weight);
    sum += weights.back();
  }
  double chi = 0;
  int kept = 0;
  bool only_kept = true;
  for (int i = 0; i < vocab; ++i) {
    const double expected = weights[i] / sum * rows * rounds;
    only_kept = only_kept && (expected > 0 || counts[i] == 0);
    if (expected == 0) continue;
    ++kept;
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  // Mean and deviation of chi-square are n and sqrt(2n) for n degrees of freedom.
  const double freedom = kept - 1;
  report(only_kept && chi < freedom + 4 * std::sqrt(2 * freedom), "sample chi-square",
         text("temperature %.1f min_p %.2f: %.1f with %.0f degrees of freedom, %d draws",
              temperature, min_p, chi, freedom, rows * rounds));
}

}  // namespace

void check_sample(Gpu& gpu) {
  check_ids(gpu, 259);
  check_ids(gpu, 5000);
  check_ids(gpu, 128256);
  check_distribution(gpu, 1.0f, 0.0f);
  check_distribution(gpu, 0.7f, 0.0f);
  check_distribution(gpu, 1.0f, 0.1f);
}

}  // namespace foretoken::check
