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
  EXPECT_EQ(architecture_of_model_type("t5"), nullptr);
  EXPECT_EQ(architecture_of_model_type(""), nullptr);
  EXPECT_EQ(known_model_types_hint("lama"),
            "; did you mean 'llama'? foretoken inspect --families lists what loads");
}

TEST(ClassNames, AreThoseOfTheTableOfArchitectures) {
  EXPECT_EQ(own_class_name("XLMRobertaForMaskedLM", nullptr), "XLMRobertaModel");
  EXPECT_EQ(own_class_name("NewForSequenceClassification", nullptr), "GteModel");
  EXPECT_EQ(own_class_name("LlamaForCausalLM", nullptr), "LlamaForCausalLM");
}

TEST(ClassNames, SomeFamiliesAreSavedUnderAnothersName) {
  const nlohmann::json type = "exaone", other = "llama";
  EXPECT_EQ(own_class_name("LlamaForCausalLM", &type), "ExaoneForCausalLM");
  EXPECT_EQ(own_class_name("LlamaForCausalLM", &other), "LlamaForCausalLM");
}

TEST(ClassNames, OursLoad) {
  for (const char* name : {"AquilaModel", "BertForMaskedLM", "GritLM", "LLaMAForCausalLM",
                           "MiniMaxM3VLForConditionalGeneration", "Rnj1ForCausalLM",
                           "StableLMEpochForCausalLM", "XverseForCausalLM"}) {
    EXPECT_NE(find_architecture(own_class_name(name, nullptr)), nullptr) << name;
  }
}

}  // namespace
}  // namespace foretoken
