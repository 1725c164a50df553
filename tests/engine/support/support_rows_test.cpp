#include "engine/support/support_rows.h"

#include <gtest/gtest.h>

#include "base/files/yaml_list.h"

namespace foretoken {
namespace {

constexpr int kRowsOfTheList = 21;  // those behind it are our own

TEST(SupportRows, AreNumberedAndBuilt) {
  int number = 0;
  for (const SupportRow& row : support_rows()) {
    EXPECT_EQ(row.number, ++number);
    EXPECT_EQ(row.two_lanes, number > kRowsOfTheList) << number;
    EXPECT_TRUE(check_support_row(row).ok()) << check_support_row(row).message();
  }
  EXPECT_GT(number, kRowsOfTheList);
}

// As the list names them.
TEST(SupportRows, AreThoseOfTheList) {
  const auto rows = support_rows();
  EXPECT_EQ(rows[4].attention, "TRITON_ATTN");
  EXPECT_EQ(rows[4].tp, 2);
  EXPECT_EQ(rows[9].graph_modes.size(), 3u);
  EXPECT_EQ(rows[12].kv_cache_dtype, "fp8");
  EXPECT_EQ(rows[16].context_ranks, 8);
  EXPECT_TRUE(rows[17].experts);
  EXPECT_EQ(rows[17].dp, 8);
  for (size_t i = 18; i < kRowsOfTheList; ++i) EXPECT_EQ(rows[i].hardware, "B200") << i;
}

// Its attention, device and KV type are asked together.
TEST(SupportRows, AreAskedWithTheirAttentionAndDevice) {
  SupportRow row;
  row.attention = "FLASHINFER";
  EXPECT_TRUE(check_support_row(row).ok()) << check_support_row(row).message();
  row.kv_cache_dtype = "fp8";
  EXPECT_NE(check_support_row(row).message().find("not read by --attention-backend flashinfer"),
            std::string::npos);
  row.kv_cache_dtype = "auto";
  row.device = "cpu";
  EXPECT_NE(check_support_row(row).message().find("does not exist on cpu"), std::string::npos);
}

TEST(SupportRows, NamesAreThoseOfTheBuild) {
  SupportRow row;
  row.drafter = "xpress";
  EXPECT_NE(check_support_row(row).message().find("use one of: ngram"), std::string::npos);
  row.drafter = "";
  row.architecture = "NoModel";
  EXPECT_NE(check_support_row(row).message().find("foretoken inspect lists"), std::string::npos);
}

TEST(SupportRows, FaultsNameTheField) {
  const struct {
    const char* entry;
    const char* said;
  } cases[] = {{"- rows: 1", "'rows' is unknown"},
               {"- row: 0", "'row' must be a whole number of 1 to 1024"},
               {"- tensor_parallel_size: two", "'tensor_parallel_size' must be a whole number"},
               {"- drafter: 5", "'drafter' must be a text"},
               {"- enable_dbo: yes", "'enable_dbo' must be true or false"},
               {"- cudagraph_mode: [1]", "'cudagraph_mode' must be a text or a list of texts"}};
  for (const auto& c : cases) {
    const auto row = read_support_row(parse_yaml_list(c.entry, "x").value()[0]);
    ASSERT_FALSE(row.ok()) << c.entry;
    EXPECT_NE(row.status().message().find(c.said), std::string::npos) << row.status().message();
  }
}

}  // namespace
}  // namespace foretoken
