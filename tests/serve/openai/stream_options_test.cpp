#include "serve/openai/stream_options.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

struct Options {
  const char* text;
  bool at_end;
  bool in_each;
};

// Each chunk tells its usage only where the end does, or where the server says so.
TEST(StreamOptions, UsageOfEachChunkIsOneOfTheEnd) {
  for (const Options& one :
       {Options{"{}", false, false},
        {R"({"include_usage": true})", true, false},
        {R"({"continuous_usage_stats": true})", false, false},
        {R"({"include_usage": true, "continuous_usage_stats": true})", true, true}}) {
    const json body = {{"stream", true}, {"stream_options", json::parse(one.text)}};
    for (const bool forced : {false, true}) {
      OpenAiDefaults defaults;
      defaults.force_include_usage = forced;
      OpenAiRequest request;
      JsonFields fields(body, "");
      read_stream(fields, defaults, &request);
      ASSERT_TRUE(fields.status().ok()) << fields.status().message();
      EXPECT_EQ(request.include_usage, one.at_end || forced) << one.text;
      EXPECT_EQ(request.continuous_usage, one.in_each || forced) << one.text;
    }
  }
}

TEST(StreamOptions, AreForStreamsAlone) {
  const json body = {{"stream_options", {{"include_usage", true}}}};
  OpenAiRequest request;
  JsonFields fields(body, "");
  read_stream(fields, {}, &request);
  EXPECT_NE(fields.status().message().find("\"stream\": true"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
