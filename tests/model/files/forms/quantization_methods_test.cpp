#include "model/files/forms/quantization_methods.h"

#include <gtest/gtest.h>

#include <set>

#include "model/files/forms/quantization.h"

namespace foretoken {
namespace {

// A name is read or refused, never both.
TEST(QuantizationMethods, AreListedOnce) {
  std::set<std::string> names;
  for (const QuantizationMethod& method : quantization_methods()) {
    const std::string all = method.names;
    EXPECT_TRUE(names.insert(all.substr(0, all.find(','))).second) << all;
  }
  for (const RefusedMethod& method : refused_methods()) {
    EXPECT_TRUE(names.insert(std::string(method.name)).second) << method.name;
    EXPECT_EQ(find_refused_method(method.name), &method);
  }
  EXPECT_EQ(find_refused_method("gptq"), nullptr);
}

TEST(QuantizationMethods, RefusedOnesSayWhyAndWhatToUse) {
  for (const RefusedMethod& method : refused_methods()) {
    const nlohmann::json config = {{"quantization_config", {{"quant_method", method.name}}}};
    const Status status = read_quantization(config, "config.json").status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    for (const std::string& part :
         {"quant_method '" + std::string(method.name) + "' is not read: " + method.why,
          std::string("GGUF file")}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  }
}

}  // namespace
}  // namespace foretoken
