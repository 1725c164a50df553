#include <gtest/gtest.h>

#include <vector>

#include "conformance/layouts.h"

// A mask and a score of positions and heads give the same ids with and without drafts, alone and in
// batches, on one rank and on two, which have half of the heads each.

namespace foretoken {
namespace {

constexpr const char* kFlexBackend =
    "flex(kv <= q and q - kv < (12 if h % 2 == 0 else 40); score - 0.02 * (q - kv))";

struct FlexRun {
  std::vector<std::vector<int32_t>> ids;
  int64_t accepted = 0;
};

FlexRun run_flex(const Layout& layout, const char* backend, const char* method) {
  EngineConfig config = layout_config(layout, {"eagle3"});
  config.attention_backend = backend;
  FlexRun run;
  const auto engine = start_engine(config);
  if (engine == nullptr) return run;
  EXPECT_EQ(engine->info().attention_backend, backend);
  for (const RequestOutput& output :
       run_in_batches(*engine, layout_requests(method, false, num_test_prompts(8)))) {
    run.ids.push_back(output.token_ids);
    run.accepted += output.stats.num_accepted_tokens;
  }
  return run;
}

TEST(FlexIdentity, DraftsAndRanksChangeNothing) {
  const FlexRun plain = run_flex({}, kFlexBackend, "");
  const FlexRun drafted = run_flex({}, kFlexBackend, "eagle3");
  EXPECT_EQ(drafted.ids, plain.ids);
  EXPECT_GT(drafted.accepted, 0);
  EXPECT_NE(run_flex({}, "portable", "").ids, plain.ids) << "the mask hides nothing";
  if (missing_devices(2).empty()) {
    EXPECT_EQ(run_flex({.tp = 2}, kFlexBackend, "eagle3").ids, plain.ids);
  }
}

}  // namespace
}  // namespace foretoken
