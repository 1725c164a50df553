#include "serve/openai/served_adapters.h"

#include <gtest/gtest.h>

#include "support/quiet_engine.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// An engine that has what it is told to.
class ListedEngine final : public test::QuietEngine {
 public:
  std::vector<AdapterInfo> adapters() const override { return listed; }

  std::vector<AdapterInfo> listed = {{"sql", "/sql", ""}, {"poems", "/poems", ""}};
};

TEST(ServedAdapters, AListAsksForOneOfThem) {
  const std::vector<std::string> names = {"sql", "poems"};
  const auto chosen = [&](const json& list) { return adapter_of_list(list, names).value(); };
  EXPECT_EQ(chosen(json::array()), "");
  EXPECT_EQ(chosen({{{"id", 1}, {"scale", 1.0}}}), "poems");
  EXPECT_EQ(chosen({{{"id", 1}, {"scale", 0}}, {{"id", 0}, {"scale", 1}}}), "sql");
  EXPECT_EQ(chosen({{{"id", 0}}}), "sql");
  for (const json& wrong :
       {json(3), json({3}), json({{{"scale", 1}}}), json({{{"id", 2}, {"scale", 1}}}),
        json({{{"id", -1}, {"scale", 1}}}), json({{{"id", 0}, {"scale", 0.5}}}),
        json({{{"id", 0}, {"scale", "1"}}}),
        json({{{"id", 0}, {"scale", 1}}, {{"id", 1}, {"scale", 1}}})}) {
    EXPECT_EQ(adapter_of_list(wrong, names).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(ServedAdapters, TheDefaultIsOneThatIsThere) {
  ListedEngine engine;
  ServedAdapters adapters(engine);
  EXPECT_EQ(adapters.by_default(), "");
  ASSERT_TRUE(adapters.choose({{{"id", 1}, {"scale", 1}}}).ok());
  EXPECT_EQ(adapters.by_default(), "poems");
  EXPECT_EQ(adapters.list()[1]["scale"], 1.0);
  EXPECT_EQ(adapters.list()[0]["scale"], 0.0);
  EXPECT_FALSE(adapters.choose({{{"id", 5}, {"scale", 1}}}).ok());
  EXPECT_EQ(adapters.by_default(), "poems") << "a wrong list changes nothing";
  engine.listed.pop_back();
  EXPECT_EQ(adapters.by_default(), "") << "it was unloaded";
  ASSERT_TRUE(adapters.choose(json::array()).ok());
  EXPECT_EQ(adapters.list(),
            json({{{"id", 0}, {"path", "/sql"}, {"scale", 0.0}, {"name", "sql"}}}));
}

}  // namespace
}  // namespace foretoken
