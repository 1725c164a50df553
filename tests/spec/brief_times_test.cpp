#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "spec/policy_tables.h"
#include "spec/policy_world.h"

// Times that were measured in an instant, on a machine that is busy with something else, and steps
// of half a millisecond to four that are interrupted, too.

namespace foretoken {
namespace {

constexpr int64_t kPart = 64;  // of cpu_times()

// What something else takes of so many percent of all steps.
class OtherWork {
 public:
  OtherWork(int seed, int percent) : random_(static_cast<uint32_t>(seed)), percent_(percent) {}
  int64_t next() {
    if (static_cast<int>(random_() % 100) >= percent_) return 0;
    return 500'000 + static_cast<int64_t>(random_() % 4'000'000);
  }

 private:
  std::mt19937 random_;
  int percent_;
};

TimeCurve measured_once(const TimeCurve& truth, OtherWork& other) {
  TimeCurve curve;
  for (int size = 1; size <= 64; size *= 2) curve.add(size, truth.at(size) / kPart + other.next());
  return curve;
}

class BriefTimes : public testing::TestWithParam<int> {
 protected:
  static double speed(LengthMode mode, int drafts, double acceptance, int seed) {
    static const CostTable truth = cpu_times();
    OtherWork at_start(seed, 60), later(seed + 99, 30);
    CostTable times;
    times.is_brief = true;
    times.target = measured_once(truth.target, at_start);
    times.drafters = {{"eagle3", false, measured_once(truth.drafters[0].catch_up, at_start),
                       measured_once(truth.drafters[0].pass, at_start)}};
    LengthControllerConfig config = policy_config(mode, drafts);
    config.follows_device = true;
    const auto really = [&](int seqs, int granted, int64_t) {
      const int each = (granted + seqs - 1) / seqs;
      const int64_t ns = truth.step_ns(seqs, granted, granted) +
                         (granted > 0 ? truth.draft_ns(0, {each, seqs * (each + 1), seqs}) : 0);
      return ns / kPart + later.next();
    };
    PolicyWorld world(times, config,
                      {.batch = GetParam(),
                       .num_requests = GetParam() * 8,
                       .output_len = 200,
                       .acceptance = [=](int, int) { return acceptance; },
                       .really = really});
    return world.run().tokens_per_second();
  }
  struct OverOff {
    double mean = 0;
    double worst = std::numeric_limits<double>::max();
  };
  static OverOff over_off(LengthMode mode, int drafts, double acceptance) {
    constexpr int kSeeds = 6;
    double off = 0;
    OverOff result;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      off += speed(LengthMode::kOff, 4, acceptance, seed) / kSeeds;
      const double own = speed(mode, drafts, acceptance, seed);
      result.mean += own / kSeeds;
      result.worst = std::min(result.worst, own);
    }
    return {result.mean / off, result.worst / off};
  }
};

// A table that calls all drafts too dear is corrected: some are tried whatever it says.
TEST_P(BriefTimes, DraftsThatPayAreMadeWhateverTheySay) {
  const double fixed = over_off(LengthMode::kFixed, 4, 0.9).mean;
  const OverOff adaptive = over_off(LengthMode::kAdaptive, 4, 0.9);
  EXPECT_GT(adaptive.mean, 1 + (fixed - 1) / 4);
  EXPECT_GT(adaptive.worst, 1.05);
}

TEST_P(BriefTimes, OthersCostLittle) {
  const OverOff adaptive = over_off(LengthMode::kAdaptive, 4, 0.02);
  EXPECT_GE(adaptive.mean, 0.98);
  EXPECT_GE(adaptive.worst, 0.95) << "what interrupts it differs by 2 %, too";
}

INSTANTIATE_TEST_SUITE_P(Batches, BriefTimes, testing::Values(1, 4, 8));

}  // namespace
}  // namespace foretoken
