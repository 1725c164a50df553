#include <gtest/gtest.h>

#include <filesystem>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

std::string meta_golden(const std::string& name) {
  return std::string(kSourceFolder) + "/tests/golden/meta/" + name;
}

std::vector<float> meta_values(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  EXPECT_TRUE(convert_tensor(tensor, DType::kF32, values.data()).ok());
  return values;
}

// Whole, and in two files that divide the embedding by columns or by rows.
class MetaLayout : public testing::TestWithParam<const char*> {};

TEST_P(MetaLayout, HasTheTensorsOfTransformers) {
  const auto own = Checkpoint::open(meta_golden(GetParam()));
  ASSERT_TRUE(own.ok()) << own.status().message();
  const auto usual = Checkpoint::open(meta_golden("model")).value();
  ASSERT_EQ(own.value().tensors().size(), usual.tensors().size());
  for (const auto& [name, tensor] : usual.tensors()) {
    const auto found = own.value().find(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->shape, tensor->shape) << name;
    EXPECT_EQ(meta_values(*found.value()), meta_values(*tensor)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MetaLayout, testing::Values("whole", "columns", "vocabulary"),
                         [](const auto& test) { return std::string(test.param); });

TEST(MetaFiles, PartsOfOtherModelsAreNamed) {
  namespace fs = std::filesystem;
  const test::ScratchFolder folder;
  const std::string columns = meta_golden("columns"), whole = meta_golden("whole");
  fs::copy(columns + "/params.json", folder.file("params.json"));
  fs::copy(columns + "/consolidated.00.pth", folder.file("consolidated.00.pth"));
  fs::copy(meta_golden("vocabulary") + "/consolidated.01.pth", folder.file("consolidated.01.pth"));
  const Status status = Checkpoint::open(folder.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("tok_embeddings.weight"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("fetch all parts of one model"), std::string::npos);
}

TEST(MetaFiles, APartThatIsMissingIsNamed) {
  namespace fs = std::filesystem;
  const test::ScratchFolder folder;
  for (const char* const name : {"/params.json", "/consolidated.00.pth"}) {
    fs::copy(meta_golden("columns") + name, folder.file(name + 1));
  }
  const Status status = Checkpoint::open(folder.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("lacks consolidated.01.pth"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace foretoken
