#include "convert/to_awq.h"

#include <gtest/gtest.h>

#include "convert/golden_models.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

TEST(ToAwq, IsAModelThatLoads) {
  const test::ScratchFolder source, out;
  test::copy_golden("qwen2", source);
  ConvertOptions options;
  options.output = out.file("awq");
  const auto bytes = to_awq(source.path(), 16, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto before = Checkpoint::open(source.path()), after = Checkpoint::open(options.output);
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after.value().tensors().size(), before.value().tensors().size());
  int matrices = 0;
  for (const auto& [name, view] : before.value().tensors()) {
    const TensorView& made = *after.value().find(name).value();
    EXPECT_EQ(made.shape, view->shape) << name;
    EXPECT_EQ(made.packed != nullptr, name.find("_proj.weight") != std::string::npos) << name;
    matrices += made.packed != nullptr ? 1 : 0;
  }
  EXPECT_GT(matrices, 0);
  const auto config = read_json_file(out.file("awq/config.json")).value();
  const nlohmann::json wanted = {{"quant_method", "awq"}, {"bits", 4},
                                 {"group_size", 16},      {"zero_point", true},
                                 {"version", "gemm"},     {"modules_to_not_convert", {"lm_head"}}};
  EXPECT_EQ(wanted, config["quantization_config"]);
}

TEST(ToAwq, WhatDoesNotFitIsNamed) {
  const test::ScratchFolder source, out;
  test::copy_golden("qwen2", source);
  ConvertOptions options;
  options.output = out.file("awq");
  const auto made = to_awq(source.path(), 128, options);
  EXPECT_NE(made.status().message().find("whole groups of 128"), std::string::npos);
  EXPECT_NE(made.status().message().find("--group-size"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

}  // namespace
}  // namespace foretoken
