#include "engine/parallel/text_engine.h"

#include "engine/dialled_engine.h"

namespace foretoken {
namespace {

EngineConfig bundled() {
  EngineConfig config;
  config.model = bundled_model_folder();
  return config;
}

TEST(TextEngine, HasTheTextsOfTheModel) {
  const Result<std::unique_ptr<Engine>> loaded = TextEngine::load(bundled());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const Engine& engine = *loaded.value();
  std::vector<int32_t> ids;
  ASSERT_TRUE(engine.encode("Once upon a time", false, &ids).ok());
  ASSERT_FALSE(ids.empty());
  std::string text;
  ASSERT_TRUE(engine.decode(ids, true, &text).ok());
  EXPECT_EQ(text, "Once upon a time");
  EXPECT_TRUE(engine.adapters().empty());
}

TEST(TextEngine, RunsNoRequests) {
  const Result<std::unique_ptr<Engine>> loaded = TextEngine::load(bundled());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  Engine& engine = *loaded.value();
  Request request;
  request.prompt = "a";
  EXPECT_EQ(engine.submit(request, nullptr, nullptr).code(), StatusCode::kUnsupported);
  const auto outputs = engine.generate({request, request});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[1].finish_reason, FinishReason::kError);
  engine.abort("nobody");
  EXPECT_EQ(engine.stats().num_steps, 0);
}

TEST(TextEngine, AModelThatIsNotThereIsNamed) {
  EngineConfig missing;
  missing.model = "/nowhere/model";
  EXPECT_NE(TextEngine::load(missing).status().message().find("/nowhere/model"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
