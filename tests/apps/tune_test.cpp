#include <gtest/gtest.h>

#include <set>

#include "apps/command_run.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::vector<std::string> short_tune(const test::ScratchFolder& folder,
                                    std::vector<std::string> more = {}) {
  folder.write("prompts.txt", "Once upon a time\nThe little dog\n\nOne day a boy\n");
  std::vector<std::string> arguments = {"tune",
                                        "--prompts",
                                        folder.file("prompts.txt"),
                                        "--num-prompts",
                                        "3",
                                        "--output-len",
                                        "8",
                                        "--lengths",
                                        "2",
                                        "--batch-sizes",
                                        "1,2",
                                        "--minutes",
                                        "0.01",
                                        "--output",
                                        folder.file("t.yaml")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Tune, MeasuresEveryDrafterAndWritesTheConfiguration) {
  const test::ScratchFolder folder;
  const CommandResult result = run_command(
      short_tune(folder, {"--output-json", folder.file("t.json"), "--plot", folder.file("t.svg")}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(read_file(folder.file("t.json")));
  EXPECT_EQ(all["num_differing_outputs"], 0);
  std::set<std::string> methods;
  for (const nlohmann::json& length : all["lengths"]) {
    methods.insert(length["method"].get<std::string>());
    EXPECT_EQ(length["num_speculative_tokens"], 2);
    EXPECT_GT(length["tokens_per_second"].get<double>(), 0);
    EXPECT_LE(length["mean_output_len"].get<double>(), 8);
  }
  for (const char* method : {"ngram", "suffix", "draft_model", "eagle", "eagle3", "mtp",
                             "ngram+eagle3", "ngram+mtp", "suffix+eagle", "suffix+mtp"}) {
    EXPECT_TRUE(methods.count(method) == 1) << method;
  }
  // Where no length is faster than none nothing is checked.
  EXPECT_EQ(all["checks"].size(), all["by_batch_size_checks"].size());
  if (!all["checks"].empty()) {
    EXPECT_EQ(all["checks"].size(), 2u);
    EXPECT_EQ(all["by_batch_size"].front().front(), 1);
    EXPECT_EQ(all["by_batch_size"].back()[1], 2);
  }
  EXPECT_NE(read_file(folder.file("t.svg")).find("2 at once"), std::string::npos);
  const std::string config = read_file(folder.file("t.yaml"));
  EXPECT_EQ(config.find("speculative-config: '{") == 0, !all["speculative_config"].is_null())
      << config;
}

TEST(Tune, DraftersAreNamedByTheirFoldersToo) {
  const test::ScratchFolder folder;
  const std::string medusa =
      std::string(foretoken::kSourceFolder) + "/tests/golden/heads/foretoken-7m-medusa";
  const CommandResult result = run_command(
      short_tune(folder, {"--drafter", medusa, "--output-json", folder.file("t.json")}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(read_file(folder.file("t.json")));
  EXPECT_EQ(all["num_differing_outputs"], 0);
  std::multiset<std::string> methods;
  for (const nlohmann::json& length : all["lengths"]) {
    methods.insert(length["method"].get<std::string>());
  }
  for (const char* method : {"ngram", "medusa", "ngram+medusa", "suffix+medusa"}) {
    EXPECT_EQ(methods.count(method), 2u) << method << ": once at each batch size";
  }
}

TEST(Tune, SaysWhatIsWrong) {
  const test::ScratchFolder folder;
  CommandResult result =
      run_command(short_tune(folder, {"--speculative-config", R"({"method": "ngram"})"}));
  EXPECT_NE(result.exit_code, 0);
  result = run_command(short_tune(folder, {"--drafter", folder.file("nowhere")}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("nowhere"), std::string::npos) << result.err;
  result = run_command(short_tune(folder, {"--drafter", R"({"method": ["ngram", "mtp"]})"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("--drafter"), std::string::npos) << result.err;
  const std::string eagle = (bundled_model().parent_path() / "foretoken-7m-eagle").string();
  result = run_command(short_tune(folder, {"--drafter", eagle, "--drafter", eagle}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("two of them have the method eagle"), std::string::npos) << result.err;
  result = run_command(short_tune(folder, {"--lengths", "0"}));
  EXPECT_EQ(result.exit_code, 2) << result.err;
}

}  // namespace
}  // namespace foretoken
