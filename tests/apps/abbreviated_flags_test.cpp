#include "apps/flags/abbreviated_flags.h"

#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

using Words = std::vector<std::string>;

TEST(AbbreviatedFlags, StandForTheOnlyFlagThatBeginsSo) {
  CLI::App app("test", "foretoken");
  CLI::App* serve = app.add_subcommand("serve", "");
  std::string text;
  bool on = false;
  serve->add_option("--max-num-seqs", text);
  serve->add_option("--max-num-batched-tokens", text);
  serve->add_option("--served-model-name", text);
  serve->add_flag("--enforce-eager,!--no-enforce-eager", on);
  const auto completed = [&](Words words) { return complete_flags(app, std::move(words)); };
  EXPECT_EQ(completed({"serve", "m", "--max-num-seq", "4", "--max-num-batched-token=8"}),
            (Words{"serve", "m", "--max-num-seqs", "4", "--max-num-batched-tokens=8"}));
  EXPECT_EQ(completed({"serve", "--enforce", "--no-enf"}),
            (Words{"serve", "--enforce-eager", "--no-enforce-eager"}));
  for (const Words& same :
       {Words{"serve", "--max-num", "4"}, Words{"serve", "--served-model-name", "--max-num-seq"},
        Words{"serve", "--other"}, Words{"serve", "--", "--max-num-seq"}, Words{"--max-num-seq"}}) {
    EXPECT_EQ(completed(same), same);
  }
}

TEST(AbbreviatedFlags, AreReadByTheProgram) {
  const CommandResult result = run_command(
      {"serve", "/no/such/folder", "--tensor-parallel", "2", "--max-num-batched-token=64"});
  EXPECT_NE(result.err.find("/no/such/folder"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("unknown flag"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace foretoken
