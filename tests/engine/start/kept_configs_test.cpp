#include "engine/start/kept_configs.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TEST(KeptConfigs, OthersThanAtTheStartAreNamed) {
  const test::ScratchFolder first, second;
  first.write("config.json", R"({"rope_theta": 1e4, "transformers_version": "5.1"})");
  const auto kept = keep_configs({first.path(), second.path()});
  EXPECT_TRUE(check_kept_configs(kept).ok());
  first.write("config.json", "{\"transformers_version\": \"5.2\",\n \"rope_theta\": 10000.0}");
  EXPECT_TRUE(check_kept_configs(kept).ok()) << "saved again by another version";
  second.write("config.json", "{}");
  const Status more = check_kept_configs(kept);
  EXPECT_EQ(more.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(more.message().find(second.path() + ": config.json is another"), 0u) << more.message();
  first.write("config.json", R"({"rope_theta": 2e4})");
  EXPECT_EQ(check_kept_configs(kept).message().find(first.path()), 0u);
  first.write("config.json", "{");
  EXPECT_FALSE(check_kept_configs(kept).ok());
}

}  // namespace
}  // namespace foretoken
