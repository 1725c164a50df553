#include "config/engine_pages.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "config/engine_fields.h"
#include "config/engine_foreign_names.h"
#include "config/engine_names.h"

namespace foretoken {
namespace {

std::string file_of_tree(const std::string& path) {
  std::ifstream file(std::string(FORETOKEN_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What stands between the marks of a page.
std::string marked(const std::string& path, const std::string& command) {
  const std::string page = file_of_tree(path);
  const std::string begin = "<!-- " + command + " -->\n";
  const size_t at = page.find(begin);
  const size_t end = page.find("<!-- end -->");
  if (at == std::string::npos || end == std::string::npos) return "no marks in " + path;
  return page.substr(at + begin.size(), end - at - begin.size());
}

TEST(EnginePages, TheTreeHoldsWhatTheTablesSay) {
  EXPECT_EQ(file_of_tree("python/foretoken/_engine_fields.py"), python_engine_fields())
      << "run tools/write_fields";
  EXPECT_EQ(marked("docs/engine-fields.md", "foretoken fields docs"), markdown_engine_fields())
      << "run tools/write_fields";
  EXPECT_EQ(marked("docs/other-engines.md", "foretoken fields names"), markdown_engine_names())
      << "run tools/write_fields";
}

TEST(EnginePages, EveryRowIsInThePagesOfItsDoors) {
  const std::string python = python_engine_fields();
  const std::string docs = markdown_engine_fields();
  for (const EngineField& field : engine_fields()) {
    const std::string name = field.name;
    const bool in_python = python.find("\n    " + name + ": ") != std::string::npos;
    EXPECT_EQ(in_python, (field.doors & kPython) != 0) << name;
    const bool is_flag = docs.find("| `" + engine_flag(field) + "` |") != std::string::npos;
    EXPECT_EQ(is_flag, (field.doors & kCommandLine) != 0) << name;
    EXPECT_EQ(docs.find("| `" + name + "` |") != std::string::npos, in_python) << name;
  }
}

TEST(EnginePages, EveryNameIsInItsPage) {
  const std::string page = markdown_engine_names();
  for (const VllmName& row : vllm_names()) {
    EXPECT_NE(page.find("| `" + std::string(row.name) + "` |"), std::string::npos) << row.name;
  }
  for (const ForeignFlag& flag : foreign_flag_table()) {
    for (const std::string& name : field_choices(flag.names)) {
      EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
    }
  }
}

}  // namespace
}  // namespace foretoken
