#include "serve/fields/engine_json.h"

#include <gtest/gtest.h>

#include "support/changed_field.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The field's value as JSON.
json value_of(const EngineField& field, const EngineConfig& config) {
  json value;
  visit_engine_member(field, config, [&](const auto& member) { value = member; });
  return value;
}

TEST(EngineJson, EveryRowIsRead) {
  const EngineConfig defaults;
  for (const EngineField& field : engine_fields()) {
    EngineConfig other;
    test::change_field(field, &other);
    const json object = {{field.name, value_of(field, other)}};
    JsonFields fields(object, "");
    EngineConfig config;
    read_engine_field(fields, field, &config);
    fields.refuse_unread();
    EXPECT_TRUE(fields.status().ok()) << field.name << fields.status().message();
    EXPECT_NE(engine_field_text(field, config), engine_field_text(field, defaults)) << field.name;
    EXPECT_EQ(engine_field_text(field, config), engine_field_text(field, other)) << field.name;
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
  EXPECT_EQ(fields.status().message(), "'max_num_seqs' must be an integer, not \"many\"");
}

}  // namespace
}  // namespace foretoken
