#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "apps/command_run.h"
#include "support/folders.h"

namespace foretoken {
namespace {

// What a page of docs/ holds between the mark of a command and the next end.
std::string marked_part(const std::string& page, const std::string& command) {
  std::ifstream file(std::string(foretoken::kSourceFolder) + "/docs/" + page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string begin = "<!-- " + command + " -->\n";
  const size_t at = text.find(begin);
  const size_t end = text.find("<!-- end -->", at);
  if (at == std::string::npos || end == std::string::npos) return "no marks of " + command;
  return text.substr(at + begin.size(), end - at - begin.size());
}

struct Table {
  const char* page;
  const char* flag;
};

class SupportTables : public ::testing::TestWithParam<Table> {};

TEST_P(SupportTables, ThePageHasWhatTheProgramPrints) {
  const CommandResult result = run_command({"inspect", GetParam().flag});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string command = std::string("foretoken inspect ") + GetParam().flag;
  EXPECT_EQ(marked_part(GetParam().page, command), result.out)
      << "put the output of `" << command << "` between the marks of docs/" << GetParam().page;
}

INSTANTIATE_TEST_SUITE_P(Pages, SupportTables,
                         ::testing::Values(Table{"models.md", "--families"},
                                           Table{"formats.md", "--formats"},
                                           Table{"speculation.md", "--drafters"}));

}  // namespace
}  // namespace foretoken
