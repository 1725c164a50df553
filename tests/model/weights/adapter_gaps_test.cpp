#include "model/weights/adapter_gaps.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

const std::vector<std::string> kModules = {
    "layers.0.self_attn.q_proj", "layers.0.self_attn.v_proj", "layers.1.self_attn.q_proj",
    "layers.1.self_attn.v_proj", "layers.2.self_attn.q_proj"};  // a layer without its own values

LoraAdapter adapter_of(const std::vector<std::string>& modules, nlohmann::ordered_json more = {}) {
  nlohmann::ordered_json config = {
      {"peft_type", "LORA"}, {"r", 1}, {"target_modules", {"q_proj", "v_proj"}}};
  if (!more.is_null()) config.update(more);
  LoraAdapter adapter;
  adapter.config = PeftConfig::parse(config, "adapter_config.json").value();
  for (const std::string& module : modules) {
    LoraLinear& linear = adapter.linears.emplace_back();
    linear.module = "model." + module;
    linear.b = {std::byte{1}, std::byte{0}};
  }
  return adapter;
}

std::string gap(const LoraAdapter& adapter) { return adapter_gap(adapter, kModules).value(); }

TEST(AdapterGap, WholeAdaptersHaveNone) {
  EXPECT_EQ(gap(adapter_of(kModules)), "");
  LoraAdapter alone = adapter_of({kModules[0]});
  alone.config.reset();  // as other ranks get it
  EXPECT_EQ(gap(alone), "");
}

// Of one kind only, and of layers that the configuration names or leaves out.
TEST(AdapterGap, WhatWasNotTrainedIsNotMissed) {
  EXPECT_EQ(gap(adapter_of({kModules[1], kModules[3]})), "");
  EXPECT_EQ(gap(adapter_of({kModules[2], kModules[3]}, {{"layers_to_transform", {1}}})), "");
  EXPECT_EQ(gap(adapter_of({kModules[0], kModules[2]}, {{"exclude_modules", ".*layers\\.2\\..*"}})),
            "");
}

TEST(AdapterGap, LayersThatFilesLackAreNamed) {
  const std::string text = gap(adapter_of({kModules[0], kModules[1], kModules[4]}));
  EXPECT_NE(text.find("lack 2 of the 5 linear layers"), std::string::npos) << text;
  EXPECT_NE(text.find("'model.layers.1.self_attn.q_proj'"), std::string::npos) << text;
}

TEST(AdapterGap, ProductsOfZeroAreTold) {
  LoraAdapter adapter = adapter_of(kModules);
  adapter.dtype = DType::kBF16;
  for (LoraLinear& linear : adapter.linears) linear.b = {std::byte{0}, std::byte{0x80}};
  EXPECT_NE(gap(adapter).find("lora_B are zero"), std::string::npos);
  adapter.linears.back().b.back() = std::byte{1};
  EXPECT_EQ(gap(adapter), "");
}

}  // namespace
}  // namespace foretoken
