#include "config/engine_pages.h"

#include <gtest/gtest.h>

#include <string>

#include "config/engine_fields.h"
#include "config/engine_foreign_names.h"
#include "config/engine_names.h"
#include "config/generated_part.h"

namespace foretoken {
namespace {

TEST(EnginePages, TheTreeHoldsWhatTheTablesSay) {
  const std::string end = "<!-- end -->";
  test::expect_generated({"python/foretoken/_engine_fields.py", "", ""}, python_engine_fields());
  test::expect_generated({"docs/engine-fields.md", "<!-- foretoken fields docs -->", end},
                         markdown_engine_fields());
  test::expect_generated({"docs/other-engines.md", "<!-- foretoken fields names -->", end},
                         markdown_engine_names());
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
