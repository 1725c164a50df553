#include "model/files/foreign_tensors.h"

#include <gtest/gtest.h>

#include <utility>

namespace foretoken {
namespace {

TEST(ForeignTensors, AreNamedWithTheirWriter) {
  TensorView view;
  view.file = "x.safetensors";
  for (const auto& [name, writer] :
       {std::pair("a.up_proj.q_weight", "ExLlamaV2"), std::pair("a.up_proj.trellis", "ExLlamaV3"),
        std::pair("a.up_proj.codebooks", "AQLM"), std::pair("a.up_proj.centroids.weight", "VPTQ"),
        std::pair("a.up_proj.weight._data", "optimum-quanto"),
        std::pair("a.up_proj.weight._data._data", "optimum-quanto")}) {
    const Status status =
        check_foreign_tensors({{"a.weight", &view}, {"a.up_proj.indices", &view}, {name, &view}});
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << name;
    EXPECT_NE(status.message().find("x.safetensors: tensor '" + std::string(name) +
                                    "' is of a matrix that " + writer + " wrote"),
              std::string::npos)
        << status.message();
  }
  EXPECT_TRUE(check_foreign_tensors({{"a.weight", &view}, {"a.weight_scale", &view}}).ok());
  EXPECT_TRUE(check_foreign_tensors({{"masked_embedding.centroids.weight", &view}}).ok())
      << "an assistant of Gemma 4";
}

}  // namespace
}  // namespace foretoken
