#include "config/engine_variables.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace foretoken {
namespace {

TEST(EngineVariables, NamesStandOnceAndAreOthers) {
  std::set<std::string> names;
  for (const ForeignVariable& variable : foreign_variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_GT(std::string_view(variable.instead).size(), 8u) << variable.name;
  }
  for (const std::string_view name : kept_variables()) {
    EXPECT_TRUE(names.insert(std::string(name)).second) << name;
  }
  for (const std::string& name : names) {
    EXPECT_TRUE(name.starts_with("VLLM_") || name.starts_with("LLAMA_") ||
                name == "FORETOKEN_DEVICE")
        << name;
  }
}

}  // namespace
}  // namespace foretoken
