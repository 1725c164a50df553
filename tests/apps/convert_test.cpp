#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

const std::string kModel = std::string(FORETOKEN_SOURCE_DIR) + "/models/foretoken-7m";

nlohmann::json ids_of(const std::string& model) {
  const CommandResult result =
      run_command({"generate", "--model", model, "--prompt", "Once upon a time, there was a little",
                   "--max-tokens", "32", "--temperature", "0", "--dtype", "float32", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.json_lines().at(0)["token_ids"];
}

TEST(Convert, AFileOfFloatsSaysTheSame) {
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "x.gguf").string();
  const CommandResult made = run_command({"convert", kModel, "--type", "bf16", "-o", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("MiB"), std::string::npos);
  EXPECT_EQ(ids_of(file), ids_of(kModel));
  EXPECT_NE(run_command({"convert", kModel, "--type", "q8_0", "-o", file}).err.find("--force"),
            std::string::npos);
}

TEST(Convert, AQuantisedFolderLoads) {
  const ScratchFolder scratch;
  const std::string folder = (scratch.path() / "int8").string();
  const CommandResult made =
      run_command({"convert", kModel, "--type", "gptq-int8", "--group-size", "32", "-o", folder});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(ids_of(folder).size(), 32u);
}

TEST(Convert, BadFlagsAreNamed) {
  EXPECT_EQ(run_command({"convert", kModel, "--type", "q5_k", "-o", "x"}).exit_code, 2);
  EXPECT_EQ(run_command({"convert", kModel, "--type", "f32"}).exit_code, 2);
}

}  // namespace
}  // namespace foretoken
