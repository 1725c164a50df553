#include "model/config/model_types.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "model/config/architecture.h"
#include "model/registry.h"

namespace foretoken {
namespace {

TEST(ModelTypes, NameTheClassesOfTransformers) {
  EXPECT_STREQ(architecture_of_model_type("llama"), "LlamaForCausalLM");
  EXPECT_STREQ(architecture_of_model_type("gemma3_text"), "Gemma3ForCausalLM");
  EXPECT_STREQ(architecture_of_model_type("gemma3"), "Gemma3ForConditionalGeneration");
  EXPECT_STREQ(architecture_of_model_type("mllama_text_model"), "MllamaForConditionalGeneration");
  EXPECT_EQ(architecture_of_model_type("t5"), nullptr);
  EXPECT_EQ(architecture_of_model_type(""), nullptr);
  EXPECT_EQ(known_model_types_hint("lama"),
            "; did you mean 'llama'? foretoken inspect --families lists what loads");
}

TEST(ClassNames, AreThoseOfTheTableOfArchitectures) {
  const nlohmann::json file = nlohmann::json::object();
  EXPECT_EQ(own_class_name("XLMRobertaForMaskedLM", file), "XLMRobertaModel");
  EXPECT_EQ(own_class_name("NewForSequenceClassification", file), "GteModel");
  EXPECT_EQ(own_class_name("LlamaForCausalLM", file), "LlamaForCausalLM");
  EXPECT_EQ(own_class_name("MllamaForCausalLM", file), "MllamaForConditionalGeneration");
}

TEST(ClassNames, SomeFamiliesAreSavedUnderAnothersName) {
  EXPECT_EQ(own_class_name("LlamaForCausalLM", {{"model_type", "exaone"}}), "ExaoneForCausalLM");
  EXPECT_EQ(own_class_name("LlamaForCausalLM", {{"model_type", "llama"}}), "LlamaForCausalLM");
  EXPECT_EQ(own_class_name("XLMRobertaModel", {{"position_embedding_type", "rotary"}}),
            "JinaEmbeddingsV3Model");
  EXPECT_EQ(own_class_name("BertForMaskedLM", {{"position_embedding_type", "alibi"}}),
            "JinaBertModel");
  EXPECT_EQ(own_class_name("BertModel", {{"position_embedding_type", 3}}), "BertModel");
}

}  // namespace
}  // namespace foretoken
