#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/command_run.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

std::string page_text(const std::string& page) {
  std::ifstream file(std::string(foretoken::kSourceFolder) + "/docs/" + page);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What a page of docs/ holds between the mark of a command and the next end.
std::string marked_part(const std::string& page, const std::string& command) {
  const std::string text = page_text(page);
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

// The tables of runs: of each mark the reports, which stand in bench/results.
TEST(SupportReports, ThePageHasTheTablesOfTheReports) {
  const std::string page = page_text("support-matrix.md");
  const std::string mark = "<!-- foretoken matrix --print-reports ";
  int num_marks = 0;
  for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    const std::string names = page.substr(begin, page.find(" -->", begin) - begin);
    std::vector<std::string> arguments = {"matrix", "--print-reports"};
    std::istringstream words(names);
    for (std::string word; words >> word;) {
      arguments.push_back(std::string(kSourceFolder) + "/" + word);
    }
    const CommandResult result = run_command(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(marked_part("support-matrix.md", "foretoken matrix --print-reports " + names),
              result.out)
        << "tools/write_tables PROGRAM writes it";
    ++num_marks;
  }
  EXPECT_GE(num_marks, 3);
}

TEST(SupportReports, WhatIsNoReportIsRefused) {
  const test::ScratchFolder scratch;
  const std::string facts = R"({"version": "1", "device": "CPU", "date": "d", "size": "tiny")";
  for (const char* rest :
       {"}", R"(, "cells": {}})", R"(, "cells": [7]})", R"(, "cells": [{"status": "red"}]})",
        R"(, "cells": [{"status": "red", "evidence": "", "cell": {"drafterr": ""}}]})"}) {
    const std::string path = scratch.write("report.json", facts + rest);
    const CommandResult result = run_command({"matrix", "--print-reports", path});
    EXPECT_EQ(result.exit_code, 1) << rest;
    ASSERT_EQ(result.errors().size(), 1U) << result.err;
    EXPECT_NE(result.err.find("is no report of foretoken matrix"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace foretoken
