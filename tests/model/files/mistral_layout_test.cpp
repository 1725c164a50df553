#include "model/files/mistral_layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

std::vector<float> numbers_in(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  EXPECT_TRUE(convert_tensor(tensor, DType::kF32, values.data()).ok());
  return values;
}

// A folder of Mistral's own layout has the tensors of the folder of transformers that it stands
// for.
TEST(MistralLayout, IsThatOfTransformers) {
  for (const test::MistralGolden& golden : test::kMistralGoldens) {
    if (golden.head == 0) continue;
    const test::ScratchFolder folder;
    test::write_own_layout(golden, folder);
    const auto own = Checkpoint::open(folder.path());
    ASSERT_TRUE(own.ok()) << own.status().message();
    const auto usual = Checkpoint::open(test::mistral_model(golden)).value();
    ASSERT_EQ(own.value().tensors().size(), usual.tensors().size());
    for (const auto& [name, tensor] : usual.tensors()) {
      const auto found = own.value().find(name);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(numbers_in(*found.value()), numbers_in(*tensor)) << golden.model << " " << name;
    }
  }
}

}  // namespace
}  // namespace foretoken
