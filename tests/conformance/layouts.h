#pragma once
#include <foretoken/engine.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/harness.h"
#include "support/test_device.h"

namespace foretoken {

// How ranks share the work of a configuration.
struct Layout {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  bool ep = false;  // whole experts are dealt out to the ranks that share layers
  int dcp = 1;      // of tp, that share the positions of sequences
  // Rows of a step go in two lanes wherever it has two sequences.
  bool dbo = false;

  int num_ranks() const { return tp * pp * dp; }
  // "TP2xDP2", "TP2EP", "TP2xDCP2", "TP2DBO"; "one rank" where nothing is shared.
  std::string name() const;
  // One thread a rank on a CPU.
  void apply(EngineConfig& config) const;
};
void PrintTo(const Layout& layout, std::ostream* out);

// Why the test device cannot run it: too few devices, or a combination that is refused there.
std::string missing_for(const Layout& layout);

inline std::string missing_for(int num_ranks) { return missing_devices(num_ranks); }

// Skipped where missing_for(Param) says why.
template <class Param>
class RankTest : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    const std::string missing = missing_for(this->GetParam());
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

// Every layout of several ranks that the tests run.
std::vector<Layout> test_layouts();

// The bundled model in float32 with the bundled drafters of these methods, which requests choose
// from; two steps in flight, fixed lengths, prefix caching.
EngineConfig layout_config(const Layout& layout, const std::vector<std::string>& methods);

// An engine, or null and a failure of the test.
std::unique_ptr<Engine> start_engine(const EngineConfig& config);

// `count` of the bench prompts for the drafter of that method (empty: none), 24 tokens each with
// the two likeliest beside them; sampled ones have temperature 0.8, top_k 50 and seeds.
std::vector<Request> layout_requests(const std::string& method, bool sampled, int count);

// Eight requests at a time. A request that fails is a failure of the test.
std::vector<RequestOutput> run_in_batches(Engine& engine, const std::vector<Request>& requests);

RequestStats sum_of_stats(const std::vector<RequestOutput>& outputs);

// Requests whose ids differ. Where greedy ones first do, the reference must have been undecided: a
// gap of less than `max_gap` between the logits of its two likeliest, by default one that the
// order of a sum of floats decides.
int count_undecided(const std::vector<RequestOutput>& one,
                    const std::vector<RequestOutput>& several, bool sampled,
                    const std::string& what, double max_gap = 1e-4);

}  // namespace foretoken
