#include "hub/wanted_files.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

HubListing listing(const std::vector<std::string>& names) {
  HubListing all{.commit = std::string(40, 'a'), .files = {}};
  for (const std::string& name : names) all.files.push_back({.name = name, .etag = ""});
  return all;
}

std::vector<std::string> wanted(const std::vector<std::string>& names, bool weights = true) {
  const auto files = wanted_files(listing(names), weights, "org/name");
  EXPECT_TRUE(files.ok()) << files.status().message();
  std::vector<std::string> found;
  if (files.ok()) {
    for (const HubFile& file : files.value()) found.push_back(file.name);
  }
  return found;
}

using Names = std::vector<std::string>;

TEST(WantedFiles, WhatTheEngineReads) {
  EXPECT_EQ(wanted({".gitattributes",
                    "README.md",
                    "config.json",
                    "generation_config.json",
                    "config_sentence_transformers.json",
                    "tokenizer.json",
                    "tokenizer_config.json",
                    "special_tokens_map.json",
                    "chat_template.jinja",
                    "chat_template.json",
                    "additional_chat_templates/tool_use.jinja",
                    "additional_chat_templates/old/tool_use.jinja",
                    "model.safetensors",
                    "pytorch_model.bin",
                    "consolidated.safetensors",
                    "adapter_model.safetensors",
                    "original/consolidated.00.pth",
                    "onnx/model.onnx",
                    "sub/config.json",
                    "sub/tokenizer.json",
                    "sub/model.safetensors",
                    "tokenizer.py",
                    "x.gguf"}),
            Names({"config.json", "generation_config.json", "config_sentence_transformers.json",
                   "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                   "chat_template.jinja", "chat_template.json",
                   "additional_chat_templates/tool_use.jinja", "model.safetensors"}));
}

TEST(WantedFiles, ModulesBehindAModel) {
  EXPECT_EQ(wanted({"config.json", "model.safetensors", "modules.json", "1_Pooling/config.json",
                    "2_Dense/config.json", "2_Dense/model.safetensors", "2_Dense/README.md",
                    "2_Dense_1024/config.json", "x_Dense/config.json", "3_Normalize/config.json"}),
            Names({"config.json", "modules.json", "1_Pooling/config.json", "2_Dense/config.json",
                   "2_Dense/model.safetensors", "2_Dense_1024/config.json", "model.safetensors"}));
}

TEST(WantedFiles, LayoutsOfMakersAreFetchedByHand) {
  const Status status =
      wanted_files(listing({"params.json", "consolidated.safetensors"}), true, "org/name").status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("hf download org/name --local-dir FOLDER"), std::string::npos)
      << status.message();
}

TEST(WantedFiles, OneFileBeforeTheIndexBeforeAllShards) {
  const Names shards = {"config.json", "model-00001-of-00002.safetensors",
                        "model-00002-of-00002.safetensors", "model.safetensors.index.json"};
  EXPECT_EQ(wanted(shards), Names({"config.json", "model.safetensors.index.json"}));
  Names both = shards;
  both.push_back("model.safetensors");
  EXPECT_EQ(wanted(both), Names({"config.json", "model.safetensors"}));
  EXPECT_EQ(wanted({"config.json", "a.safetensors", "b.safetensors"}),
            Names({"config.json", "a.safetensors", "b.safetensors"}));
  EXPECT_EQ(wanted(both, false), Names({"config.json"}));
}

TEST(WantedFiles, VocabulariesWhereThereIsNoTokenizerJson) {
  const Names others = {"tokenizer.model", "tekken.json",  "vocab.json",
                        "merges.txt",      "spm.model",    "rwkv_vocab_v20230424.txt",
                        "tokenizer.jsonl", "qwen.tiktoken"};
  Names names = {"config.json", "added_tokens.json", "sub/tokenizer.model"};
  names.insert(names.end(), others.begin(), others.end());
  Names expected = {"config.json", "added_tokens.json"};
  expected.insert(expected.end(), others.begin(), others.end());
  EXPECT_EQ(wanted(names, false), expected);
  names.push_back("tokenizer.json");
  EXPECT_EQ(wanted(names, false), Names({"config.json", "added_tokens.json", "tokenizer.json"}));
}

TEST(WantedFiles, MedusaHeadsWhereThereIsNothingElse) {
  Names names = {"config.json", "medusa_lm_head.pt", "optimizer.pt"};
  EXPECT_EQ(wanted(names), Names({"config.json", "medusa_lm_head.pt"}));
  names.push_back("medusa_lm_head.safetensors");
  EXPECT_EQ(wanted(names), Names({"config.json", "medusa_lm_head.safetensors"}));
}

TEST(WantedFiles, TorchFilesWhereThereAreNoSafetensors) {
  const Names shards = {"config.json", "pytorch_model-00001-of-00002.bin",
                        "pytorch_model-00002-of-00002.bin", "training_args.bin"};
  EXPECT_EQ(wanted(shards), Names({"config.json", "pytorch_model-00001-of-00002.bin",
                                   "pytorch_model-00002-of-00002.bin"}));
  Names indexed = shards;
  indexed.push_back("pytorch_model.bin.index.json");
  EXPECT_EQ(wanted(indexed), Names({"config.json", "pytorch_model.bin.index.json"}));
  indexed.push_back("pytorch_model.bin");
  EXPECT_EQ(wanted(indexed), Names({"config.json", "pytorch_model.bin"}));
  indexed.push_back("model.safetensors");
  EXPECT_EQ(wanted(indexed), Names({"config.json", "model.safetensors"}));
}

TEST(WantedFiles, RepositoriesThatCannotBeRead) {
  const auto no_config = wanted_files(listing({"model.safetensors"}), true, "org/name");
  EXPECT_NE(no_config.status().message().find("config.json"), std::string::npos);
  const auto no_weights = wanted_files(listing({"config.json", "x.bin"}), true, "org/name");
  EXPECT_EQ(no_weights.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(no_weights.status().message().find("safetensors"), std::string::npos);
}

TEST(IndexShards, NamesOnce) {
  const test::ScratchFolder scratch;
  const std::string index = scratch.write(
      kWeightsIndex,
      R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors", "c": "2.safetensors"}})");
  EXPECT_EQ(index_shards(index, "org/name").value(), Names({"1.safetensors", "2.safetensors"}));
  EXPECT_EQ(find_shards(index, listing({"1.safetensors", "2.safetensors"}), "r").value().size(),
            2u);
  const auto missing = find_shards(index, listing({"1.safetensors"}), "org/name");
  EXPECT_NE(missing.status().message().find("2.safetensors"), std::string::npos);
}

TEST(IndexShards, OfTorchFilesAndOfOtherWeights) {
  const test::ScratchFolder scratch;
  const std::string blob = scratch.write("0123", R"({"weight_map": {"a": "1.bin"}})");
  const IndexFile index(blob, "pytorch_model.bin.index.json");
  EXPECT_EQ(find_shards(index, listing({"1.bin"}), "r").value().size(), 1u);
  // Stale: none of its shards is there, and other weights are.
  const auto others = find_shards(index, listing({"pytorch_model-1.bin", "x.safetensors"}), "r");
  ASSERT_TRUE(others.ok()) << others.status().message();
  ASSERT_EQ(others.value().size(), 1u);
  EXPECT_EQ(others.value()[0].name, "pytorch_model-1.bin");
  EXPECT_FALSE(find_shards(IndexFile(blob, kWeightsIndex), listing({"1.bin"}), "r").ok());
}

TEST(IndexShards, HostileNames) {
  const test::ScratchFolder scratch;
  const std::string deep = std::string(50000, '[') + std::string(50000, ']');
  for (const std::string shard : {"\"../x.safetensors\"", "\"/etc/x.safetensors\"",
                                  "\"a/b.safetensors\"", "\"x.bin\"", "\"\"", "7", deep.c_str()}) {
    const std::string index =
        scratch.write("index.json", "{\"weight_map\": {\"t\": " + shard + "}}");
    const auto shards = index_shards(index, "org/name");
    ASSERT_FALSE(shards.ok()) << shard.substr(0, 40);
    EXPECT_NE(shards.status().message().find("index.json of org/name"), std::string::npos);
  }
  for (const char* text : {"", "[", "{}", "{\"weight_map\": {}}", "{\"weight_map\": 3}"}) {
    EXPECT_FALSE(index_shards(scratch.write("index.json", text), "org/name").ok()) << text;
  }
}

TEST(MissingFile, NamesWhatALoadWouldMiss) {
  const test::ScratchFolder scratch;
  EXPECT_EQ(missing_file(scratch.path(), true), "config.json");
  scratch.write("config.json", "{}");
  EXPECT_EQ(missing_file(scratch.path(), false), "");
  EXPECT_EQ(missing_file(scratch.path(), true), "model.safetensors");
  scratch.write(kWeightsIndex, R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  scratch.write("1.safetensors", "x");
  EXPECT_EQ(missing_file(scratch.path(), true), "2.safetensors");
  scratch.write("2.safetensors", "x");
  EXPECT_EQ(missing_file(scratch.path(), true), "");
  scratch.write(kWeightsIndex, "broken");
  EXPECT_EQ(missing_file(scratch.path(), true), kWeightsIndex);
  scratch.write("model.safetensors", "x");
  EXPECT_EQ(missing_file(scratch.path(), true), "");
}

TEST(MissingFile, KnowsTorchFilesAndStaleIndexes) {
  const test::ScratchFolder scratch;
  scratch.write("config.json", "{}");
  scratch.write("pytorch_model.bin.index.json",
                R"({"weight_map": {"a": "pytorch_model-1.bin", "b": "pytorch_model-2.bin"}})");
  scratch.write("pytorch_model-1.bin", "x");
  EXPECT_EQ(missing_file(scratch.path(), true), "pytorch_model-2.bin");
  scratch.write("pytorch_model-2.bin", "x");
  EXPECT_EQ(missing_file(scratch.path(), true), "");
  scratch.write(kWeightsIndex, R"({"weight_map": {"a": "gone.safetensors"}})");
  EXPECT_EQ(missing_file(scratch.path(), true), "gone.safetensors");
  scratch.write("other.safetensors", "x");
  EXPECT_EQ(missing_file(scratch.path(), true), "");
}

}  // namespace
}  // namespace foretoken
