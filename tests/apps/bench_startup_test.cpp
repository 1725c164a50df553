#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

CommandResult startup(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"bench",       "startup", "--model", bundled_model().string(),
                                  "--log-level", "error"};
  all.insert(all.end(), more.begin(), more.end());
  return run_command(all);
}

TEST(BenchStartup, EveryIterationIsAProcessOfItsOwn) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("startup.json");
  const CommandResult result =
      startup({"--num-iters-warmup", "1", "--num-iters", "2", "--output-json", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Avg time from process start to first token: ", 0), 0u) << result.out;
  EXPECT_NE(result.out.find("\n  weights "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" GB/s)"), std::string::npos) << result.out;
  const nlohmann::json written = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(written["runs"].size(), 2u);
  for (const auto& run : written["runs"]) {
    EXPECT_GT(run["startup_time"], 0.0);
    EXPECT_GT(run["time_to_first_token"], run["startup_time"]);
    double sum = run["process_time"];
    for (const auto& seconds : run["phases"]) sum += seconds.get<double>();
    EXPECT_NEAR(sum, run["startup_time"].get<double>(), 1e-6);
  }
}

TEST(BenchStartup, AFailedStartIsAnError) {
  const CommandResult result = startup({"--num-iters", "1", "--input-len", "100000"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("its message is above"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace foretoken
