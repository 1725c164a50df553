// Every row of config/sampling_fields.h has its flag where it is promised, as the help shows.
#include <gtest/gtest.h>

#include "apps/command_run.h"
#include "config/sampling_fields.h"

namespace foretoken {
namespace {

std::string help_of(std::vector<std::string> command) {
  command.emplace_back("--help");
  const CommandResult result = run_command(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

// Behind the flag the help has a blank, a comma or the end of the line: --n is no --num-prompts.
bool shows(const std::string& help, const SamplingField& field) {
  const std::string flag = "  " + sampling_flag(field);
  for (size_t at = help.find(flag); at != std::string::npos; at = help.find(flag, at + 1)) {
    const char after = help[at + flag.size()];
    if (after == ' ' || after == ',' || after == '\n') return true;
  }
  return false;
}

TEST(SamplingFlags, EveryRowHasItsFlag) {
  for (const char* command : {"generate", "chat"}) {
    const std::string help = help_of({command});
    for (const SamplingField& field : sampling_fields()) {
      EXPECT_TRUE(shows(help, field)) << command << " " << sampling_flag(field);
    }
  }
}

TEST(SamplingFlags, BenchServeHasWhatShapesDraws) {
  const std::string help = help_of({"bench", "serve"});
  for (const SamplingField& field : sampling_fields()) {
    if (!shapes_draws(field)) continue;
    EXPECT_TRUE(shows(help, field)) << sampling_flag(field);
  }
}

// The whole way of one value: flag, check, sentence.
TEST(SamplingFlags, RangesAreCheckedBeforeAModelLoads) {
  for (const SamplingField& field : sampling_fields()) {
    if (!shapes_draws(field)) continue;
    const CommandResult result = run_command(
        {"generate", "--model", "/nonexistent", "--prompt", "A", sampling_flag(field), "-5"});
    EXPECT_EQ(result.exit_code, 1) << field.name;
    EXPECT_NE(result.err.find(field.name + std::string(" is -5; it must be ")), std::string::npos)
        << result.err;
  }
}

}  // namespace
}  // namespace foretoken
