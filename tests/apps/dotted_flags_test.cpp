#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

using Flags = std::vector<std::string>;

CommandResult generate_with(const Flags& flags) {
  Flags all = {"generate",    "--model", bundled_model().string(), "--prompt", "Once",
               "--log-level", "error",   "--max-tokens",           "4"};
  all.insert(all.end(), flags.begin(), flags.end());
  return run_command(all);
}

void expect_flags_refused(const Flags& flags, const std::string& part, int exit_code) {
  const CommandResult result = generate_with(flags);
  EXPECT_EQ(result.exit_code, exit_code) << flags.front();
  ASSERT_EQ(result.errors().size(), 1u) << flags.front() << result.err;
  EXPECT_NE(result.errors()[0].find(part), std::string::npos) << result.errors()[0];
}

TEST(DottedFlags, AreOneJsonValue) {
  for (const Flags& flags : std::vector<Flags>{
           {"--speculative-config.method", "ngram", "--speculative-config.num_speculative_tokens",
            "3"},
           {"--speculative_config.method=ngram", "-sc.num_speculative_tokens=3", "--seed", "1",
            "-sc.prompt_lookup_max", "4"},
           // The same once more changes nothing, and lists grow.
           {"-sc.method=ngram", "-sc.num_speculative_tokens=3", "-sc.method", "ngram",
            "-cc.cudagraph_capture_sizes=[1]", "-cc.cudagraph_capture_sizes+", "2,4"},
           {"--hf-overrides.rope_parameters.rope_theta", "10k", "--hf-overrides.x.y=a.b"}}) {
    const CommandResult result = generate_with(flags);
    EXPECT_EQ(result.exit_code, 0) << flags[0] << result.err;
  }
}

TEST(DottedFlags, ValuesAreReadAsJsonNumbersOrText) {
  expect_flags_refused({"-sc.method", "ngram", "-sc.num_speculative_tokens", "3k"}, "is 3000; give",
                       1);
  expect_flags_refused({"-sc.method", "3"}, "'method' must be a string, not 3", 1);
  expect_flags_refused({"-sc.method", "\"3\""}, "'3'", 1);
  expect_flags_refused({"-sc.method", "ngarm"}, "did you mean 'ngram'?", 1);
  expect_flags_refused({"-sc.method=ngram", "-sc.num_speculative_tokens=3", "-sc.metod", "x"},
                       "did you mean 'method'?", 1);
  expect_flags_refused({"-cc.cudagraph_capture_sizes+", "1,x"}, "not \"x\"", 1);
  expect_flags_refused({"--no-such.part", "1"}, "unknown flag --no-such", 2);
}

TEST(DottedFlags, ContradictionsAreNamed) {
  expect_flags_refused({"-sc.method=ngram", "-sc.method=eagle"},
                       "--speculative-config.method is given twice, as \"ngram\" and as \"eagle\"",
                       2);
  expect_flags_refused(
      {"-sc", "{\"method\": \"ngram\"}", "-sc.num_speculative_tokens=3"},
      "--speculative-config and --speculative-config.num_speculative_tokens contradict", 2);
  expect_flags_refused({"--hf-overrides.a=1", "--hf-overrides.a.b=2"},
                       "--hf-overrides.a has a value already", 2);
  expect_flags_refused({"--hf-overrides.a.b=1", "--hf-overrides.a=2"}, "has parts already", 2);
  expect_flags_refused({"-sc.method=ngram", "--spec-method", "ngram", "--spec-tokens", "3"},
                       "--spec-method and 'method' of --speculative-config say the same", 1);
  expect_flags_refused({"--speculative-config.method"}, "--speculative-config.method needs a value",
                       2);
}

TEST(DottedFlags, OfAFileGiveWayToTheCommandLines) {
  const test::ScratchFolder scratch;
  const std::string file =
      scratch.write("serve.yaml", "speculative_config.method: nothing\nmodel: /nowhere\n");
  const CommandResult both =
      run_command({"serve", "--config", file, "-sc.num_speculative_tokens=3"});
  EXPECT_NE(both.err.find("'nothing'"), std::string::npos) << both.err;
  const CommandResult whole =
      run_command({"serve", "--config", file, "-sc", "{\"method\": \"other\"}"});
  EXPECT_NE(whole.err.find("'other'"), std::string::npos) << whole.err;
}

}  // namespace
}  // namespace foretoken
