#include <foretoken/version.h>
#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

TEST(Bench, LatencyPrintsAndWritesJson) {
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "latency.json").string();
  const CommandResult result =
      run_command({"bench", "latency", "--model", bundled_model().string(), "--input-len", "8",
                   "--output-len", "8", "--batch-size", "2", "--num-iters-warmup", "1",
                   "--num-iters", "3", "--output-json", file, "--log-level", "error"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Avg latency: ", 0), 0u) << result.out;
  EXPECT_NE(result.out.find("99% percentile latency: "), std::string::npos) << result.out;
  const nlohmann::json written = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(written["latencies"].size(), 3u);
  EXPECT_EQ(written["drafts"]["output_tokens"], 3 * 2 * 8);
}

TEST(Bench, LengthsBeyondTheContextAreRefused) {
  const CommandResult result =
      run_command({"bench", "latency", "--model", bundled_model().string(), "--input-len", "2000",
                   "--output-len", "100", "--log-level", "error"});
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.errors().size(), 1u) << result.err;
  EXPECT_NE(result.errors()[0].find("--output-len"), std::string::npos);
}

TEST(Inspect, ListsWhatIsBuilt) {
  const CommandResult result = run_command({"inspect", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(result.out);
  EXPECT_EQ(all["version"], kVersion);
  ASSERT_EQ(all["devices"].size(), 2u);
  EXPECT_TRUE(all["devices"][0]["available"]);
  EXPECT_TRUE(all["devices"][1]["available"] == true || all["devices"][1].contains("reason"));
  EXPECT_FALSE(all["architectures"].empty());
  EXPECT_FALSE(all["drafters"].empty());
  EXPECT_FALSE(all["attention_backends"].empty());
  EXPECT_FALSE(all.contains("model"));
}

// A context of 1M positions must not cost the drafter memory of its own.
TEST(Inspect, NgramMemoryStaysSmallAtOneMillionPositions) {
  const ScratchFolder scratch;
  nlohmann::json config = nlohmann::json::parse(read_file(bundled_model() / "config.json"));
  config["max_position_embeddings"] = 1048576;
  scratch.write("config.json", config.dump());
  const CommandResult result =
      run_command({"inspect", "--json", "--model", scratch.path().string(), "--load-format",
                   "dummy", "--max-model-len", "1M", "--max-num-seqs", "256",
                   "--num-gpu-blocks-override", "64", "--speculative-config",
                   R"({"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4})"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json model = nlohmann::json::parse(result.out)["model"];
  EXPECT_EQ(model["max_model_len"], 1048576);
  EXPECT_EQ(model["max_num_seqs"], 256);
  EXPECT_LE(model["drafter_mib_beyond_kv_cache_token_pages_block_tables"], 15.0);
}

}  // namespace
}  // namespace foretoken
