#include "engine/start/resolve_attention.h"

#include <gtest/gtest.h>

#include <string>

#include "attention/backend.h"
#include "support/claimed_device.h"

namespace foretoken {
namespace {

const test::ClaimedDevice kCpu(DeviceType::kCpu, false);
const test::ClaimedDevice kGpu(DeviceType::kCuda, false);
const test::ClaimedDevice kHopper(DeviceType::kCuda, true);

ModelConfig llama() {
  ModelConfig model;
  model.dtype = DType::kBF16;
  model.head_dim = 128;
  model.layers.resize(2);
  return model;
}

EngineConfig config_of(const char* backend, const char* invariance) {
  EngineConfig config;
  config.attention_backend = backend;
  config.batch_invariant = invariance;
  config.max_model_len = 4096;
  return config;
}

// "backend, invariance" that a configuration ends with, or what is said against it.
std::string resolved(const EngineConfig& config, const Device& device,
                     const ModelConfig& model = llama()) {
  const Result<AttentionChoice> choice = resolve_attention(config, device, model);
  if (!choice.ok()) return choice.status().message();
  for (const AttentionBackend* backend : attention_backends()) {
    if (backend->traits().name != choice.value().backend) continue;
    return choice.value().text() + (backend->traits().batch_invariant ? ", on" : ", off");
  }
  return "no backend has the name " + choice.value().backend;
}

void expect_says(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(ResolveAttention, IsInvariantUnlessAskedOtherwise) {
  for (const Device* device : {&kCpu, &kGpu, &kHopper}) {
    const std::string best = device == &kHopper ? "flash, on" : "portable, on";
    for (const char* backend : {"", "auto"}) {
      EXPECT_EQ(resolved(config_of(backend, "auto"), *device), best);
      EXPECT_EQ(resolved(config_of(backend, "on"), *device), best);
    }
    EXPECT_EQ(resolved(config_of("portable", "auto"), *device), "portable, on");
    EXPECT_EQ(resolved(config_of("TRITON_ATTN", "off"), *device), "portable, on");
  }
}

TEST(ResolveAttention, OffTakesTheLibraryWhereTheDeviceHasIt) {
  EXPECT_EQ(resolved(config_of("", "off"), kHopper), "flashinfer, off");
  EXPECT_EQ(resolved(config_of("auto", "off"), kHopper), "flashinfer, off");
  EXPECT_EQ(resolved(config_of("", "off"), kGpu), "portable, on");
  EXPECT_EQ(resolved(config_of("", "off"), kCpu), "portable, on");
}

TEST(ResolveAttention, ANameDecidesTheInvariance) {
  EXPECT_EQ(resolved(config_of("FLASHINFER", "auto"), kHopper), "flashinfer, off");
  EXPECT_EQ(resolved(config_of("flashinfer", "off"), kHopper), "flashinfer, off");
  expect_says(resolved(config_of("flashinfer", "on"), kHopper),
              {"--attention-backend flashinfer", "--batch-invariant off", "flash"});
  expect_says(resolved(config_of("flashinfer", "off"), kGpu), {"needs", "./quickstart --cuda"});
  expect_says(resolved(config_of("flashinfer", "auto"), kCpu), {"does not exist on cpu"});
  expect_says(resolved(config_of("", "perhaps"), kCpu), {"--batch-invariant 'perhaps'", "off"});
}

TEST(ResolveAttention, OffStaysOnForModelsThatTheLibraryDoesNotTake) {
  ModelConfig model = llama();
  model.head_dim = 80;
  EXPECT_EQ(resolved(config_of("", "off"), kHopper, model), "portable, on");
  expect_says(resolved(config_of("flashinfer", "off"), kHopper, model),
              {"bfloat16", "64 or 128", "--attention-backend portable"});
  model = llama();
  model.attention_softcap = 50;
  EXPECT_EQ(resolved(config_of("", "off"), kHopper, model), "flash, on");
}

TEST(ResolveAttention, AWindowCountsWhereSequencesOutgrowIt) {
  ModelConfig model = llama();
  for (LayerConfig& layer : model.layers) layer.window = 1024;
  EXPECT_EQ(resolved(config_of("", "off"), kHopper, model), "flash, on");
  for (LayerConfig& layer : model.layers) layer.window = 4096;
  EXPECT_EQ(resolved(config_of("", "off"), kHopper, model), "flashinfer, off");
  model.layers[0].window = 0;
  model.layers[1].window = 1024;
  EXPECT_EQ(resolved(config_of("", "off"), kHopper, model), "flashinfer, off");
}

TEST(ResolveAttention, LatentsAreServedByTheirOwnFamilies) {
  ModelConfig model = llama();
  model.latent = {.kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  EXPECT_EQ(resolved(config_of("", "auto"), kHopper, model), "flash_mla, on");
  EXPECT_EQ(resolved(config_of("", "auto"), kGpu, model), "portable_mla, on");
  EXPECT_EQ(resolved(config_of("TRITON_MLA", "auto"), kHopper, model), "portable_mla, on");
  expect_says(resolved(config_of("FLASH_ATTN", "auto"), kHopper, model),
              {"takes attention without latents", "--attention-backend flash_mla"});
  expect_says(resolved(config_of("TRITON_MLA", "auto"), kCpu),
              {"takes latent attention", "--attention-backend portable"});
}

TEST(ResolveAttention, ExpressionsAreOfFlex) {
  const char* mask = "flex(kv <= q and q - kv < 9; )";
  EXPECT_EQ(resolved(config_of("(kv <= q and q - kv < 9)", "auto"), kCpu),
            std::string(mask) + ", on");
  EXPECT_EQ(resolved(config_of("FLEX_ATTENTION(kv <= q and q - kv < 9)", "on"), kHopper),
            std::string(mask) + ", on");
  expect_says(resolved(config_of("portable(kv <= q)", "auto"), kCpu),
              {"--flex-mask", "--attention-backend flex, not portable"});
  EXPECT_FALSE(wants_whole_prompts(read_attention_choice(mask)).value());
  EXPECT_TRUE(wants_whole_prompts(read_attention_choice("flex(kv <= q or prompt)")).value());
  EXPECT_FALSE(wants_whole_prompts(read_attention_choice("flex(kv)")).ok());
}

}  // namespace
}  // namespace foretoken
