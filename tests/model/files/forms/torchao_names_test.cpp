#include "model/files/forms/torchao_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(TorchAoNames, BecomeThoseOfOtherTools) {
  EXPECT_EQ(name_without_torchao("a.b._weight_qdata"), "a.b.weight");
  EXPECT_EQ(name_without_torchao("a.b._weight_scale"), "a.b.weight_scale");
  EXPECT_EQ(name_without_torchao("a.b._weight_zero_point"), "a.b.weight_zero_point");
  EXPECT_EQ(name_without_torchao("a.b._weight_act_pre_scale"), "a.b.pre_quant_scale");
  EXPECT_EQ(name_without_torchao("a.b.weight_scale"), "a.b.weight_scale");
}

TensorView of_type(const char* dtype, FileDType type) {
  TensorView view;
  view.dtype_name = dtype;
  view.dtype = type;
  view.shape = {2, 4};
  return view;
}

TEST(TorchAoNames, LayoutsOfKernelsAreRefused) {
  const TensorView words = of_type("I32", FileDType::kOther);
  const TensorView bytes = of_type("I8", FileDType::kOther);
  const TensorView powers = of_type("F8_E8M0", FileDType::kOther);
  const TensorView floats = of_type("BF16", FileDType::kBF16);
  const auto check = [](const TensorView& codes, const TensorView* scales) {
    std::map<std::string, const TensorView*> tensors = {{"x._weight_qdata", &codes}};
    if (scales != nullptr) tensors["x._weight_scale"] = scales;
    return check_torchao(tensors);
  };
  EXPECT_TRUE(check(bytes, &floats).ok());
  EXPECT_TRUE(check_torchao({{"x.weight", &words}}).ok());
  for (const Status& status :
       {check(words, &floats), check(bytes, nullptr), check(bytes, &powers)}) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("torchao's matrix 'x._weight_qdata' is"), std::string::npos);
    EXPECT_NE(status.message().find("laid out for one kernel"), std::string::npos);
  }
  const TensorView scale = of_type("F32", FileDType::kF32);
  EXPECT_FALSE(check_torchao({{"x._weight_qdata", &bytes},
                              {"x._weight_scale", &floats},
                              {"x._weight_per_tensor_scale", &scale}})
                   .ok());
}

}  // namespace
}  // namespace foretoken
