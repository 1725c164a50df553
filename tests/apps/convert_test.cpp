#include <gtest/gtest.h>

#include "apps/command_run.h"
#include "support/folders.h"

namespace foretoken {
namespace {

const std::string kModel = std::string(foretoken::kSourceFolder) + "/models/foretoken-7m";

CommandResult generate_from(const std::string& model, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"generate",
                                  "--model",
                                  model,
                                  "--prompt",
                                  "Once upon a time, there was a little",
                                  "--max-tokens",
                                  "32",
                                  "--temperature",
                                  "0",
                                  "--dtype",
                                  "float32",
                                  "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return run_command(all);
}

nlohmann::json ids_of(const std::string& model, const std::vector<std::string>& more = {}) {
  const CommandResult result = generate_from(model, more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.json_lines().at(0)["token_ids"];
}

TEST(Convert, AFileOfFloatsSaysTheSame) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("x.gguf");
  const CommandResult made = run_command({"convert", kModel, "--type", "bf16", "-o", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("MiB"), std::string::npos);
  EXPECT_EQ(ids_of(file), ids_of(kModel));
  EXPECT_EQ(ids_of(file, {"--load-format", "gguf"}), ids_of(kModel));
  EXPECT_NE(run_command({"convert", kModel, "--type", "q8_0", "-o", file}).err.find("--force"),
            std::string::npos);
}

void expect_error(const CommandResult& result, const std::vector<std::string>& said) {
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.errors().size(), 1u) << result.err;
  for (const std::string& part : said) {
    EXPECT_NE(result.errors()[0].find(part), std::string::npos) << result.errors()[0];
  }
}

TEST(Convert, FlagsOfFoldersAreRefusedBesideAFile) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("x.gguf", "never read");
  expect_error(generate_from(file, {"--revision", "dev"}), {"--revision 'dev'", file, "remove"});
  expect_error(generate_from(file, {"--load-format", "safetensors"}),
               {"--load-format safetensors", file, "use auto or gguf"});
  expect_error(generate_from(kModel, {"--load-format", "gguf"}),
               {"--load-format gguf", kModel, "--load-format auto"});
}

double weights_mib(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> all = {"inspect", "--json", "--model", model};
  all.insert(all.end(), more.begin(), more.end());
  const CommandResult result = run_command(all);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out)["model"]["weights_mib"];
}

TEST(Convert, WeightsOfAFileAreCountedAsTheyAreKept) {
  const test::ScratchFolder scratch;
  for (const char* type : {"bf16", "q8_0", "q4_k_m"}) {
    const std::string file = scratch.file(std::string(type) + ".gguf");
    ASSERT_EQ(run_command({"convert", kModel, "--type", type, "-o", file}).exit_code, 0);
    for (const char* dtype : {"bfloat16", "float32"}) {
      EXPECT_DOUBLE_EQ(weights_mib(file, {"--dtype", dtype, "--config-only"}),
                       weights_mib(file, {"--dtype", dtype}))
          << type << " " << dtype;
    }
  }
}

TEST(Convert, AQuantisedFolderLoads) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.file("int8");
  const CommandResult made =
      run_command({"convert", kModel, "--type", "gptq-int8", "--group-size", "32", "-o", folder});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(ids_of(folder).size(), 32u);
  EXPECT_DOUBLE_EQ(weights_mib(folder, {"--config-only"}), weights_mib(folder, {}));
}

TEST(Convert, EveryTypeOfFolderLoads) {
  const test::ScratchFolder scratch;
  for (const char* type : {"awq-int4", "w4a16", "w4a16-asym", "w8a16", "fp8-block", "fp8-tensor",
                           "modelopt-fp8", "modelopt-nvfp4"}) {
    const std::string folder = scratch.file(type);
    const CommandResult made = run_command({"convert", kModel, "--type", type, "-o", folder});
    ASSERT_EQ(made.exit_code, 0) << type << ": " << made.err;
    EXPECT_EQ(32u, ids_of(folder).size()) << type;
  }
}

TEST(Convert, BadFlagsAreNamed) {
  EXPECT_EQ(run_command({"convert", kModel, "--type", "q9_k", "-o", "x"}).exit_code, 2);
  EXPECT_EQ(run_command({"convert", kModel, "--type", "f32"}).exit_code, 2);
  expect_error(run_command({"convert", kModel, "--type", "q8_0", "--group-size", "128", "-o", "x"}),
               {"--group-size is for --type gptq-int4", "q8_0", "remove --group-size"});
  expect_error(
      run_command({"convert", kModel, "--type", "gptq-int4", "--imatrix", "m.dat", "-o", "x"}),
      {"--imatrix is for GGUF files", "gptq-int4", "remove --imatrix"});
}

}  // namespace
}  // namespace foretoken
