#include "model/block_head_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/model.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

ModelConfig target_config() {
  ModelConfig target;
  target.vocab_size = 1000;
  target.num_layers = 36;
  return target;
}

// As SpecForge publishes it.
Json dflash_json() {
  return {{"block_size", 16},
          {"dflash_config", {{"mask_token_id", 990}, {"target_layer_ids", {1, 9, 17, 25, 33}}}}};
}

Result<DraftHeadConfig> read(const Json& json, std::vector<int32_t> windows = {0, 0},
                             HeadKind kind = HeadKind::kDflash) {
  DraftHeadConfig head;
  head.kind = kind;
  head.layer.vocab_size = 1000;
  for (const int32_t window : windows) head.layer.layers.push_back({.window = window});
  FT_RETURN_IF_ERROR(read_block_fields(json, {json, "config.json", false}, target_config(), &head));
  return head;
}

TEST(BlockHeadConfig, FieldsOfTheObject) {
  const DraftHeadConfig head = read(dflash_json()).value();
  // What enters the layer behind the one whose output is named.
  EXPECT_EQ(head.tap_layers, (std::vector<int32_t>{2, 10, 18, 26, 34}));
  EXPECT_EQ(head.mask_id, 990);
  EXPECT_EQ(head.block_size, 16);
  EXPECT_EQ(head.embedding_scale, 1);
  EXPECT_EQ(head.draft_vocab_size, 1000);
  EXPECT_EQ(head.is_causal, (std::vector<bool>{false, false}));
}

TEST(BlockHeadConfig, TheLastLayersOutputIsReadBeforeTheNorm) {
  Json json = dflash_json();
  json["dflash_config"]["target_layer_ids"] = {1, 35};
  EXPECT_EQ(read(json).value().tap_layers, (std::vector<int32_t>{2, TapSink::kLastLayer}));
}

TEST(BlockHeadConfig, FieldsAtTheTop) {
  const Json json = {{"mask_token_id", 7},
                     {"aux_hidden_state_layer_ids", {2, 18}},
                     {"draft_vocab_size", 500},
                     {"input_embedding_scale", 2.5},
                     {"final_logit_softcapping", 30}};
  const DraftHeadConfig head = read(json).value();
  EXPECT_EQ(head.tap_layers, (std::vector<int32_t>{2, 18}));
  EXPECT_EQ(head.draft_vocab_size, 500);
  EXPECT_EQ(head.embedding_scale, 2.5f);
  EXPECT_EQ(head.layer.logits_softcap, 30);
  EXPECT_EQ(head.block_size, 16);
}

TEST(BlockHeadConfig, LayersWithWindowsAreCausal) {
  EXPECT_EQ(read(dflash_json(), {64, 0}).value().is_causal, (std::vector<bool>{true, false}));
  Json json = dflash_json();
  json["is_causal"] = true;
  EXPECT_EQ(read(json).value().is_causal, (std::vector<bool>{true, true}));
}

TEST(BlockHeadConfig, TheFirstRowDraftsAsTheFilesSay) {
  const auto drafts = [](HeadKind kind, const Json& more) {
    Json json = dflash_json();
    json.update(more);
    json["dflash_config"].update({{"markov_rank", kind == HeadKind::kDspark ? 8 : 0},
                                  {"emb_dim", 8},
                                  {"gru_hidden_dim", 0}});
    if (kind == HeadKind::kDomino) json["dflash_config"]["gru_hidden_dim"] = 16;
    return read(json, {0}, kind).value().anchor_drafts;
  };
  EXPECT_FALSE(drafts(HeadKind::kDflash, Json::object()));
  EXPECT_TRUE(drafts(HeadKind::kDflash, {{"sample_from_anchor", true}}));
  EXPECT_TRUE(drafts(HeadKind::kDspark, Json::object()));
  EXPECT_FALSE(drafts(HeadKind::kDspark, {{"sample_from_anchor", false}}));
  EXPECT_FALSE(drafts(HeadKind::kDspark, {{"dspark_bonus_anchor", true}}));
  EXPECT_FALSE(drafts(HeadKind::kDomino, Json::object()));
  EXPECT_TRUE(drafts(HeadKind::kDomino, {{"shift_label", true}}));
}

// As SpecForge publishes it.
TEST(BlockHeadConfig, FieldsOfDomino) {
  Json json = dflash_json();
  json["dflash_config"].update({{"projector_type", "domino"},
                                {"pure_draft_prefix_len", 1},
                                {"emb_dim", 256},
                                {"gru_hidden_dim", 1024},
                                {"shift_label", true}});
  const DraftHeadConfig head = read(json, {0}, HeadKind::kDomino).value();
  EXPECT_EQ(head.gru_size, 1024);
  EXPECT_EQ(head.gru_rank, 256);
  EXPECT_EQ(head.added_rank(), 256);
  EXPECT_EQ(head.plain_drafts, 1);
  EXPECT_TRUE(head.anchor_drafts);
  json["dflash_config"].erase("gru_hidden_dim");
  EXPECT_NE(read(json, {0}, HeadKind::kDomino).status().message().find("'gru_hidden_dim'"),
            std::string::npos);
}

TEST(BlockHeadConfig, WrongFieldsAreNamed) {
  const auto refusal = [](const std::function<void(Json&)>& change) {
    Json json = dflash_json();
    change(json);
    const auto head = read(json, {64, 0});
    EXPECT_FALSE(head.ok());
    return head.ok() ? std::string() : head.status().message();
  };
  const auto expect = [&](const char* part, const std::function<void(Json&)>& change) {
    EXPECT_NE(refusal(change).find(part), std::string::npos) << part << ": " << refusal(change);
  };
  expect("'target_layer_ids'", [](Json& j) { j["dflash_config"].erase("target_layer_ids"); });
  expect("36", [](Json& j) { j["dflash_config"]["target_layer_ids"] = {1, 36}; });
  expect("'target_layer_ids'", [](Json& j) { j["dflash_config"]["target_layer_ids"] = Json{}; });
  expect("'mask_token_id'", [](Json& j) { j["dflash_config"].erase("mask_token_id"); });
  expect("'mask_token_id'", [](Json& j) { j["dflash_config"]["mask_token_id"] = 1000; });
  expect("'dflash_config'", [](Json& j) { j["dflash_config"] = 3; });
  expect("'block_size'", [](Json& j) { j["block_size"] = 1; });
  expect("projector_type", [](Json& j) { j["dflash_config"]["projector_type"] = "domino"; });
  expect("selector_rank", [](Json& j) { j["dflash_config"]["selector_rank"] = 64; });
  expect("is_causal", [](Json& j) { j["is_causal"] = false; });
  expect("'causal'", [](Json& j) { j["dflash_config"]["causal"] = false; });
  expect("sliding_window_non_causal", [](Json& j) { j["sliding_window_non_causal"] = true; });
  expect("gru_hidden_dim", [](Json& j) { j["dflash_config"]["gru_hidden_dim"] = 16; });
  expect("use_swa", [](Json& j) { j["dflash_config"]["use_swa"] = true; });
  expect("is_neox_style", [](Json& j) { j["is_neox_style"] = false; });
  expect("'draft_vocab_size'", [](Json& j) { j["draft_vocab_size"] = 1001; });
}

}  // namespace
}  // namespace foretoken
