#include "model/weights/module_key.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ModuleKey, IsWhatStandsFromTheLayersOn) {
  for (const char* name :
       {"layers.3.self_attn.q_proj", "model.layers.3.self_attn.q_proj",
        "language_model.model.layers.3.self_attn.q_proj",
        "language_model.backbone.layers.3.self_attn.q_proj",
        "model.text_model.layers.3.self_attn.q_proj", "thinker.model.layers.3.self_attn.q_proj",
        "llm.model.layers.3.self_attn.q_proj"}) {
    EXPECT_EQ(module_key(name), "layers.3.self_attn.q_proj");
  }
  EXPECT_EQ(module_key("model.layers.layers.3.mixer.o_proj"), "layers.3.mixer.o_proj");
  EXPECT_EQ(module_key("transformer.h.0.attn.c_attn"), "h.0.attn.c_attn");
  EXPECT_EQ(module_key("vision_tower.layers.3.self_attn.q_proj"), "");
  EXPECT_EQ(module_key("thinker.audio_tower.layers.3.self_attn.q_proj"), "");
  EXPECT_EQ(module_key("talker.model.layers.3.self_attn.q_proj"), "");
}

TEST(ModuleKey, OfTheEndsIsTheirLastPart) {
  EXPECT_EQ(module_key("lm_head"), "lm_head");
  EXPECT_EQ(module_key("thinker.lm_head"), "lm_head");
  EXPECT_EQ(module_key("llm.lm_head"), "lm_head");
  EXPECT_EQ(module_key("model.embed_tokens"), "embed_tokens");
  EXPECT_EQ(module_key("vision_tower.embed_tokens"), "");
}

TEST(ModuleKey, BehindTheNumberStandsTheKind) {
  EXPECT_EQ(behind_number("layers.3.self_attn.q_proj"), "self_attn.q_proj");
  EXPECT_EQ(behind_number("lm_head"), "");
}

}  // namespace
}  // namespace foretoken
