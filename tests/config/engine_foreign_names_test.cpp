#include "config/engine_foreign_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "config/engine_fields.h"

namespace foretoken {
namespace {

TEST(EngineForeignNames, EveryNameStandsOnceAndSaysSomething) {
  std::set<std::string> names;
  for (const ForeignFlag& flag : foreign_flag_table()) {
    EXPECT_TRUE(flag.uses[0] != nullptr || *flag.note != '\0') << flag.names;
    for (const std::string& name : field_choices(flag.names)) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(name.front(), '-') << name;
    }
  }
}

}  // namespace
}  // namespace foretoken
