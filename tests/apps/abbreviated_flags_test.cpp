#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

std::string told_of(const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"serve", "/no/such/folder"};
  words.insert(words.end(), flags.begin(), flags.end());
  return run_command(words).err;
}

TEST(AbbreviatedFlags, StandForTheOnlyFlagThatBeginsSo) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--max-num-batched-token=64"},
        {"--tensor-parallel", "2"},
        {"--max-num-seq", "4", "--enforce-e"},
        {"--disable-log-request"}}) {
    const std::string error = told_of(flags);
    EXPECT_NE(error.find("'/no/such/folder' is neither"), std::string::npos) << error;
  }
  EXPECT_NE(told_of({"--max-num-seq", "none"}).find("--max-num-seqs"), std::string::npos);
}

TEST(AbbreviatedFlags, OthersStayAsTheyAre) {
  EXPECT_NE(told_of({"--max-num", "4"}).find("unknown flag --max-num"), std::string::npos);
  EXPECT_NE(told_of({"--temp", "4"}).find("--temp 4"), std::string::npos) << "llama.cpp's";
  EXPECT_NE(told_of({"--served-model-name=--max-num-seq"}).find("'/no/such/folder' is neither"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
