#include "serve/openapi/openapi.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "serve/flow/serve_rig.h"
#include "serve/routes/api_routes.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

void collect_references(const json& value, std::set<std::string>* references) {
  if (value.is_object() && value.contains("$ref")) references->insert(value["$ref"]);
  if (value.is_structured()) {
    for (const json& item : value) collect_references(item, references);
  }
}

class OpenApi : public test::ServeRig {};

TEST_F(OpenApi, EveryReferenceLeadsSomewhere) {
  const json document = openapi_document({.tokenizer_info = true});
  std::set<std::string> references;
  collect_references(document, &references);
  EXPECT_GT(references.size(), 20u);
  for (const std::string& reference : references) {
    EXPECT_TRUE(document.contains(json::json_pointer(reference.substr(1)))) << reference;
  }
}

TEST_F(OpenApi, AKeyIsAskedForWhereThereAreKeys) {
  EXPECT_FALSE(openapi_document({}).contains("security"));
  const json document = openapi_document({.needs_key = true});
  EXPECT_EQ(document["security"].size(), 1u);
  EXPECT_TRUE(document["paths"]["/v1/models"]["get"]["responses"].contains("401"));
  EXPECT_EQ(document["paths"]["/health"]["get"]["security"], json::array());
}

TEST_F(OpenApi, ItsNumbersAreThoseOfTheModel) {
  const json document = json::parse(send("GET", "/openapi.json")->body());
  const json& schemas = document["components"]["schemas"];
  ASSERT_TRUE(schemas.is_object());
  EXPECT_EQ(schemas["TokenId"]["maximum"], context().engine.info().vocab_size - 1);
  EXPECT_EQ(schemas["ModelName"]["enum"][0], context().model_name());
}

// Routes and document say the same.
TEST_F(OpenApi, EveryRouteIsDescribed) {
  const json document = openapi_document({.tokenizer_info = true, .fills_gaps = true});
  std::set<std::string> described;
  for (const auto& [path, operations] : document["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) described.insert(method + path);
  }
  std::set<std::string> routed;
  // What says that it cannot be done is described where its path is.
  routed.insert("post/props");
  for (const http::Route& route : api_routes(context())) {
    if (route.pattern == "/openapi.json") continue;
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    std::string path = route.pattern;
    if (const size_t rest = path.find("...}"); rest != std::string::npos) path.erase(rest, 3);
    routed.insert(method + path);
  }
  EXPECT_EQ(routed, described);
}

}  // namespace
}  // namespace foretoken
