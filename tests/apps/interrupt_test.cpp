#include <gtest/gtest.h>
#include <signal.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

// A model of some hundred million random parameters, which take seconds to make.
std::string slow_model(const test::ScratchFolder& scratch) {
  nlohmann::json config = nlohmann::json::parse(read_file(bundled_model() / "config.json"));
  config["hidden_size"] = 2048;
  config["intermediate_size"] = 4096;
  config["num_hidden_layers"] = 24;
  config["num_attention_heads"] = 16;
  config["num_key_value_heads"] = 16;
  config["head_dim"] = 128;
  scratch.write("config.json", config.dump());
  return scratch.path();
}

TEST(Interrupt, DuringLoad) {
  const test::ScratchFolder scratch;
  Command command({"generate", "--model", slow_model(scratch), "--load-format", "dummy", "--jsonl",
                   scratch.write("r.jsonl", "{\"prompt_token_ids\": [1, 2, 3]}\n")});
  ASSERT_TRUE(command.wait_for("loading"));
  command.send_signal(SIGINT);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 130) << "signal " << result.signal << "\n" << result.err;
  EXPECT_NE(result.err.find("foretoken: interrupted while loading"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Interrupt, DuringGenerationKeepsWhatThereIs) {
  Command command({"generate", "--model", bundled_model().string(), "--prompt",
                   "Once upon a time there was", "--max-tokens", "2000", "--ignore-eos",
                   "--cpu-threads", "1", "--log-level", "error"});
  ASSERT_TRUE(command.wait_for("Once upon a time"));
  command.send_signal(SIGINT);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 130) << "signal " << result.signal << "\n" << result.err;
  EXPECT_NE(result.err.find("foretoken: interrupted while generating"), std::string::npos)
      << result.err;
  EXPECT_GT(result.out.size(), std::string("Once upon a time there was").size());
  EXPECT_NE(result.out.find("tokens/s"), std::string::npos) << result.out;
}

TEST(Interrupt, EndsEveryRequestOfABatch) {
  const test::ScratchFolder scratch;
  std::string lines;
  for (int i = 0; i < 100; ++i) {
    lines += "{\"prompt\": \"A cat\", \"max_tokens\": 2000, \"ignore_eos\": true}\n";
  }
  Command command({"generate", "--model", bundled_model().string(), "--json", "--jsonl",
                   scratch.write("r.jsonl", "{\"prompt\": \"A\", \"max_tokens\": 2}\n" + lines)});
  ASSERT_TRUE(command.wait_for("request-0"));
  command.send_signal(SIGINT);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 130) << "signal " << result.signal << "\n" << result.err;
  const std::vector<nlohmann::json> outputs = result.json_lines();
  ASSERT_EQ(outputs.size(), 101u);
  EXPECT_EQ(outputs.back()["finish_reason"], "abort");
}

}  // namespace
}  // namespace foretoken
