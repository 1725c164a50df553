#include "serve/fields/engine_json.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Values that no field has by default.
json other_value(const EngineField& field) {
  json value;
  const EngineConfig defaults;
  visit_engine_member(field, defaults, [&](const auto& member) {
    using Value = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Value, bool>) {
      value = !member;
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value = "other";
    } else if constexpr (std::is_same_v<Value, std::vector<int>>) {
      value = {3, 5};
    } else {
      value = member + 1;
    }
  });
  return value;
}

TEST(EngineJson, EveryRowIsRead) {
  const EngineConfig defaults;
  for (const EngineField& field : engine_fields()) {
    const json object = {{field.name, other_value(field)}};
    JsonFields fields(object, "");
    EngineConfig config;
    read_engine_field(fields, field, &config);
    fields.refuse_unread();
    EXPECT_TRUE(fields.status().ok()) << field.name << fields.status().message();
    EXPECT_NE(engine_field_text(field, config), engine_field_text(field, defaults)) << field.name;
    EngineConfig copy;
    copy_engine_field(field, config, &copy);
    EXPECT_EQ(engine_field_text(field, copy), engine_field_text(field, config)) << field.name;
  }
}

TEST(EngineJson, WrongTypesAreNamed) {
  const json object = {{"max_num_seqs", "many"}};
  JsonFields fields(object, "");
  EngineConfig config;
  read_engine_field(fields, *find_engine_field("max_num_seqs"), &config);
  EXPECT_EQ(fields.status().message(),
            "'max_num_seqs' must be an integer of 32 bits, not \"many\"");
}

}  // namespace
}  // namespace foretoken
