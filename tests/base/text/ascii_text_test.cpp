#include "base/text/ascii_text.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(AsciiText, TrimmedOnBothSides) {
  EXPECT_EQ(trimmed_text(" \t\r\na \n b\r\n"), "a \n b");
  EXPECT_EQ(trimmed_text("a"), "a");
  EXPECT_EQ(trimmed_text(" \n"), "");
  EXPECT_EQ(trimmed_text(""), "");
}

TEST(AsciiText, LowerCaseOfLettersAlone) {
  EXPECT_EQ(lower_case("Q4_K_M [AZ@`{"), "q4_k_m [az@`{");
  EXPECT_EQ(lower_case("\u00c4"), "\u00c4");
}

}  // namespace
}  // namespace foretoken
