#include "model/files/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

#include "model/files/forms/convert.h"
#include "model/files/forms/scaled_file.h"
#include "support/folders.h"

namespace foretoken {
namespace {

using test::ScratchFolder;

void write_shard(const ScratchFolder& folder, const std::string& file,
                 const std::vector<std::string>& names) {
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : names) {
    tensors.push_back({name, FileDType::kF32, {1}, [](std::byte* out) { out[0] = std::byte{0}; }});
  }
  ASSERT_TRUE(write_safetensors(folder.file(file), tensors).ok());
}

void expect_error(const ScratchFolder& folder, StatusCode code,
                  const std::vector<std::string>& parts) {
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.status().code(), code);
  for (const std::string& part : parts) {
    EXPECT_NE(checkpoint.status().message().find(part), std::string::npos)
        << checkpoint.status().message() << "\nlacks: " << part;
  }
}

constexpr const char* kIndex = "model.safetensors.index.json";

TEST(Checkpoint, SingleFile) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors", {"a", "b"});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint.value().find("b").ok());
  const auto missing = checkpoint.value().find("c");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("'c' is missing in " + folder.path()),
            std::string::npos);
}

TEST(Checkpoint, Shards) {
  const ScratchFolder folder;
  write_shard(folder, "one.safetensors", {"a"});
  write_shard(folder, "two.safetensors", {"b"});
  folder.write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint.value().tensors().size(), 2u);
  EXPECT_EQ(checkpoint.value().find("b").value()->file, folder.file("two.safetensors"));
}

TEST(Checkpoint, FolderWithoutWeights) {
  const ScratchFolder folder;
  expect_error(folder, StatusCode::kNotFound,
               {"no model.safetensors", folder.path(), "--load-format dummy"});
}

TEST(Checkpoint, MissingShard) {
  const ScratchFolder folder;
  folder.write(kIndex, R"({"weight_map":{"a":"one.safetensors"}})");
  expect_error(folder, StatusCode::kNotFound, {"one.safetensors"});
}

TEST(Checkpoint, TensorInTwoShards) {
  const ScratchFolder folder;
  write_shard(folder, "one.safetensors", {"a"});
  write_shard(folder, "two.safetensors", {"a", "b"});
  folder.write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  expect_error(folder, StatusCode::kInvalidArgument, {"'a'", "one.safetensors", "two.safetensors"});
}

// An index that is older than its shards: the tensors are used from where they are.
TEST(Checkpoint, IndexNamesTheWrongShard) {
  const ScratchFolder folder;
  write_shard(folder, "one.safetensors", {"a"});
  write_shard(folder, "two.safetensors", {"b"});
  folder.write(kIndex, R"({"weight_map":{"a":"two.safetensors","b":"one.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint.value().find("a").value()->file, folder.file("one.safetensors"));
}

// An index that names some of the files alone; what it lacks is in the others.
TEST(Checkpoint, AnIndexThatNamesSomeFilesAlone) {
  const ScratchFolder folder;
  write_shard(folder, "one.safetensors", {"model.embed_tokens.weight"});
  write_shard(folder, "two.safetensors", {"lm_head.weight", "mtp.norm.weight"});
  write_shard(folder, "fp16.safetensors", {"model.embed_tokens.weight", "lm_head.weight"});
  write_shard(folder, "vision.safetensors", {"vision.model.embed_tokens.weight"});
  folder.write("broken.safetensors", "x");
  folder.write(kIndex, R"({"weight_map":{"model.embed_tokens.weight":"one.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto& tensors = checkpoint.value().tensors();
  EXPECT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("model.embed_tokens.weight")->file, folder.file("one.safetensors"));
  EXPECT_EQ(tensors.at("lm_head.weight")->file, folder.file("two.safetensors"));
  // Nobody need have a use for them.
  EXPECT_TRUE(checkpoint.value().may_be_left_out(*tensors.at("mtp.norm.weight")));
  EXPECT_FALSE(checkpoint.value().may_be_left_out(*tensors.at("model.embed_tokens.weight")));
}

TEST(Checkpoint, NamesLoseTheirWrappers) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors",
              {"_orig_mod.model.norm.weight", "module.lm_head.weight"});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint.value().find("model.norm.weight").ok());
  EXPECT_TRUE(checkpoint.value().find("lm_head.weight").ok());
}

TEST(Checkpoint, NamesLoseWhatStandsBeforeAll) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors",
              {"model.model.embed_tokens.weight", "model.model.norm.weight", "model.lm_head.weight",
               "v_head.summary.weight", "model.model.rotary_emb.inv_freq", "score.weight"});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto& tensors = checkpoint.value().tensors();
  for (const char* name : {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}) {
    EXPECT_TRUE(tensors.contains(name)) << name;
  }
  for (const auto& [name, tensor] : tensors) {
    const bool left = name == "v_head.summary.weight" || name == "score.weight" ||
                      name == "model.rotary_emb.inv_freq";
    EXPECT_EQ(checkpoint.value().may_be_left_out(*tensor), left) << name;
  }
}

// Of every type, with those of heads.
TEST(Checkpoint, ZeroPointsOfKeysAndValuesMayBeZero) {
  const ScratchFolder folder;
  ScaledFile file;
  file.add("a.k_zero_point", "F8_E4M3", {2, 1, 1}, std::string(2, '\0'));
  file.add("a.v_zero_point", "I8", {1}, std::string(1, '\0'));
  file.add("b.k_zero_point", "I8", {2}, std::string("\0\1", 2));
  const auto checkpoint = open_scaled(folder, file, nullptr);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto& tensors = checkpoint.value().tensors();
  EXPECT_TRUE(checkpoint.value().may_be_left_out(*tensors.at("a.k_zero_point")));
  EXPECT_TRUE(checkpoint.value().may_be_left_out(*tensors.at("a.v_zero_point")));
  EXPECT_FALSE(checkpoint.value().may_be_left_out(*tensors.at("b.k_zero_point")));
}

TEST(Checkpoint, AMissingHeadMayBeTheEmbedding) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors", {"model.embed_tokens.weight"});
  const auto head = Checkpoint::open(folder.path()).value().find("lm_head.weight");
  EXPECT_NE(head.status().message().find("tie_word_embeddings"), std::string::npos);
}

TEST(Checkpoint, AdaptersMustBeMerged) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors", {"base_model.model.model.q_proj.lora_A.weight"});
  expect_error(folder, StatusCode::kUnsupported, {"q_proj.lora_A.weight", "merge_and_unload"});
}

TEST(Checkpoint, TorchFiles) {
  const ScratchFolder folder;
  std::filesystem::copy_file(
      std::string(foretoken::kSourceFolder) + "/tests/golden/torch/plain.bin",
      folder.file("pytorch_model.bin"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint.value().find("lm_head.weight").value()->shape, (std::vector<int64_t>{4, 6}));
}

TEST(Checkpoint, BrokenIndexes) {
  const ScratchFolder folder;
  folder.write(kIndex, "{");
  expect_error(folder, StatusCode::kInvalidArgument, {kIndex, "not valid JSON"});
  folder.write(kIndex, "{}");
  expect_error(folder, StatusCode::kInvalidArgument, {"weight_map"});
  folder.write(kIndex, R"({"weight_map":{"a":"../one.safetensors"}})");
  expect_error(folder, StatusCode::kInvalidArgument, {"same folder", "../one.safetensors"});
  folder.write(kIndex, R"({"weight_map":{"a":7}})");
  expect_error(folder, StatusCode::kInvalidArgument, {"same folder"});
}

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  // In pieces that end inside rows.
  constexpr int64_t kPiece = 37;
  for (int64_t first = 0; first < tensor.num_elements(); first += kPiece) {
    const int64_t count = std::min(kPiece, tensor.num_elements() - first);
    EXPECT_TRUE(read_elements(tensor, first, count, DType::kF32, values.data() + first, raw).ok());
  }
  return values;
}

// The same models in both formats; llama's query and key rows lie in another order.
TEST(Checkpoint, GgufFilesHoldTheSameWeights) {
  const std::string golden = std::string(foretoken::kSourceFolder) + "/tests/golden/";
  for (const std::string name : {"llama", "qwen2", "qwen3"}) {
    auto folder = Checkpoint::open(golden + "architectures/" + name);
    auto file = Checkpoint::open(golden + "gguf/" + name + ".gguf");
    ASSERT_TRUE(folder.ok() && file.ok()) << file.status().message();
    ASSERT_EQ(folder.value().tensors().size(), file.value().tensors().size());
    for (const auto& [tensor, view] : folder.value().tensors()) {
      const auto found = file.value().find(tensor);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(found.value()->shape, view->shape) << tensor;
      EXPECT_EQ(floats_of(*found.value()), floats_of(*view)) << tensor;
    }
  }
}

TEST(Checkpoint, AnIdentityTakesThePlaceOfATensor) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors", {"fc.weight"});
  auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  checkpoint.value().add_identity("fc.weight", 2);
  const TensorView& made = *checkpoint.value().find("fc.weight").value();
  EXPECT_EQ(made.shape, (std::vector<int64_t>{2, 2}));
  float values[4] = {};
  ASSERT_TRUE(convert_tensor(made, DType::kF32, values).ok());
  EXPECT_EQ(std::vector<float>(values, values + 4), std::vector<float>({1, 0, 0, 1}));
}

// Products of NVFP4 matrices are multiplied by a number beside them.
TEST(Checkpoint, GgufScalesBecomePartOfTheMatrix) {
  const ScratchFolder folder;
  test::GgufBytes bytes(4, 7);
  bytes.text_value("general.architecture", "qwen2");
  const std::pair<const char*, uint32_t> sizes[] = {{"block_count", 1},
                                                    {"context_length", 8},
                                                    {"embedding_length", 2},
                                                    {"feed_forward_length", 2},
                                                    {"attention.head_count", 1}};
  for (const auto& [key, value] : sizes) bytes.u32_value(std::string("qwen2.") + key, value);
  bytes.key("qwen2.attention.layer_norm_rms_epsilon", 6).number(1e-5F);
  bytes.tensor("token_embd.weight", {2, 1}, 0, 0).tensor("blk.0.ffn_up.weight", {2, 1}, 0, 32);
  bytes.tensor("blk.0.ffn_up.scale", {1}, 0, 64).tensor("blk.0.ffn_up.input_scale", {1}, 0, 96);
  for (const auto& [first, second] : {std::pair(1.0F, 1.0F), {3.0F, -2.0F}, {0.5F, 0}, {9, 0}}) {
    bytes.align().number(first).number(second);
  }
  const auto checkpoint = Checkpoint::open(bytes.align().write(folder.file("x.gguf")));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint.value().tensors().size(), 2u);
  const auto up = checkpoint.value().find("model.layers.0.mlp.up_proj.weight");
  ASSERT_TRUE(up.ok());
  float values[2] = {};
  std::vector<std::byte> raw;
  ASSERT_TRUE(read_elements(*up.value(), 0, 2, DType::kF32, values, raw).ok());
  EXPECT_EQ(values[0], 1.5F);
  EXPECT_EQ(values[1], -1.0F);
}

// The beginning of a file of the architecture with one layer.
test::GgufBytes begin_gguf(const std::string& architecture, uint64_t num_tensors) {
  test::GgufBytes bytes(num_tensors, 7);
  bytes.text_value("general.architecture", architecture);
  const std::pair<const char*, uint32_t> sizes[] = {{"block_count", 1},
                                                    {"context_length", 8},
                                                    {"embedding_length", 2},
                                                    {"feed_forward_length", 2},
                                                    {"attention.head_count", 1}};
  for (const auto& [key, value] : sizes) bytes.u32_value(architecture + "." + key, value);
  bytes.key(architecture + ".attention.layer_norm_rms_epsilon", 6).number(1e-5F);
  return bytes;
}

// Rows for the texts of a pair belong to encoders.
TEST(Checkpoint, GgufKindsOfTextsNeedAnEncoder) {
  const ScratchFolder folder;
  test::GgufBytes bytes = begin_gguf("gpt2", 2);
  bytes.tensor("token_embd.weight", {2, 1}, 0, 0).tensor("token_types.weight", {2, 1}, 0, 32);
  for (int i = 0; i < 2; ++i) bytes.align().number(1.0F).number(1.0F);
  const Status status = Checkpoint::open(bytes.align().write(folder.file("x.gguf"))).status();
  EXPECT_NE(status.message().find("tells texts of pairs apart"), std::string::npos)
      << status.message();
}

// The same of experts, which have a number each.
TEST(Checkpoint, GgufScalesOfExperts) {
  const ScratchFolder folder;
  const auto open = [&](uint64_t numbers) {
    test::GgufBytes bytes = begin_gguf("qwen3moe", 3);
    bytes.tensor("token_embd.weight", {2, 1}, 0, 0);
    bytes.tensor("blk.0.ffn_up_exps.weight", {2, 1, 2}, 0, 32);
    bytes.tensor("blk.0.ffn_up_exps.scale", {numbers}, 0, 64).align();
    bytes.number(1.0F).number(1.0F).align();
    bytes.number(1.0F).number(2.0F).number(3.0F).number(4.0F).align();
    bytes.number(0.5F).number(10.0F).number(0.0F).align();
    return Checkpoint::open(bytes.write(folder.file("x.gguf")));
  };
  const auto checkpoint = open(2);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto up = checkpoint.value().find("model.layers.0.mlp.experts.up_proj.weight");
  ASSERT_TRUE(up.ok());
  EXPECT_EQ(up.value()->shape, (std::vector<int64_t>{2, 1, 2}));
  EXPECT_EQ(floats_of(*up.value()), (std::vector<float>{0.5F, 1, 30, 40}));
  EXPECT_NE(open(3).status().message().find("ffn_up_exps.scale' is not one number of F32 for each"),
            std::string::npos)
      << open(3).status().message();
}

// bitnet.cpp's codes with a scale behind the rows.
TEST(Checkpoint, GgufTernaryMatricesOfBitnet) {
  const ScratchFolder folder;
  const auto open = [&](float scale) {
    test::GgufBytes bytes = begin_gguf("bitnet-b1.58", 2);
    bytes.tensor("token_embd.weight", {2, 1}, 0, 0);
    bytes.tensor("blk.0.ffn_up.weight", {128, 2}, 36, 32).align();
    bytes.number(1.0F).number(1.0F).align();
    // The first row 1, 0, -1 and 0 in its quarters, the second -1.
    for (int i = 0; i < 32; ++i) bytes.number(uint8_t{0b10'01'00'01});
    for (int i = 0; i < 32; ++i) bytes.number(uint8_t{0});
    bytes.number(scale).align();
    return Checkpoint::open(bytes.write(folder.file("x.gguf")));
  };
  const auto checkpoint = open(0.75F);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto up = checkpoint.value().find("model.layers.0.mlp.up_proj.weight");
  ASSERT_TRUE(up.ok());
  const std::vector<float> values = floats_of(*up.value());
  ASSERT_EQ(values.size(), 256u);
  for (size_t i = 0; i < values.size(); ++i) {
    const float wanted = i >= 128 ? -0.75F : i < 32 ? 0.75F : i / 32 == 2 ? -0.75F : 0;
    ASSERT_EQ(values[i], wanted) << i;
  }
  EXPECT_NE(open(std::numeric_limits<float>::infinity()).status().message().find("finite scale"),
            std::string::npos);
}

// Found by the fuzzer: rows were read behind the tensor.
TEST(Checkpoint, GgufHeadsMustBeWhole) {
  const ScratchFolder folder;
  test::GgufBytes bytes(2, 8);
  bytes.text_value("general.architecture", "llama");
  const std::pair<const char*, uint32_t> sizes[] = {
      {"block_count", 1},         {"context_length", 8},       {"embedding_length", 4},
      {"feed_forward_length", 4}, {"attention.head_count", 1}, {"attention.key_length", 6}};
  for (const auto& [key, value] : sizes) bytes.u32_value(std::string("llama.") + key, value);
  bytes.key("llama.attention.layer_norm_rms_epsilon", 6).number(1e-5F);
  bytes.tensor("token_embd.weight", {1, 1}, 0, 0).tensor("blk.0.attn_q.weight", {1, 4}, 0, 32);
  bytes.align().text(std::string(64, ' '));
  const auto checkpoint = Checkpoint::open(bytes.write(folder.file("x.gguf")));
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_NE(checkpoint.status().message().find("'blk.0.attn_q.weight' has the shape [4, 1]"),
            std::string::npos)
      << checkpoint.status().message();
}

// As safetensors.torch.save_model writes a model whose output matrix is its embedding.
TEST(Checkpoint, ANameThatWasLeftOutIsTheTensorThatItShares) {
  const ScratchFolder folder;
  const std::string header =
      R"({"__metadata__":{"model.embed_tokens.weight":"lm_head.weight","format":"pt"},)"
      R"("lm_head.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  folder.write("model.safetensors", bytes + header + std::string(4, '\0'));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint.value().find("model.embed_tokens.weight").value(),
            checkpoint.value().find("lm_head.weight").value());
  EXPECT_FALSE(checkpoint.value().tensors().contains("format"));
}

TEST(Checkpoint, AHeadAloneIsTheEmbeddingOfAModelThatTiesThem) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors", {"lm_head.weight", "model.norm.weight"});
  for (const bool ties : {true, false}) {
    folder.write("config.json", ties ? R"({"tie_word_embeddings": true})" : "{}");
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    EXPECT_EQ(checkpoint.value().tensors().contains("model.embed_tokens.weight"), ties);
  }
}

// As transformers 5.24 saves OLMo's hybrid layers: convolutions of 2, 2 and 5 channels as three
// equal parts of all nine, and another name for a norm.
TEST(Checkpoint, WhatTransformersCutsElsewhereIsJoined) {
  const ScratchFolder folder;
  float next = 0;
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    const int64_t count = shape[0] * (shape.size() > 2 ? shape[2] : 1);
    tensors.push_back({name, FileDType::kF32, std::move(shape), [=](std::byte* to) {
                         for (int64_t i = 0; i < count; ++i) {
                           const float value = next + static_cast<float>(i);
                           std::memcpy(to + i * 4, &value, sizeof value);
                         }
                       }});
    next += static_cast<float>(count);
  };
  const std::string mixer = "model.layers.0.linear_attn.";
  for (const char* part : {"q", "k", "v"}) add(mixer + part + "_conv1d.weight", {3, 1, 2});
  add(mixer + "q_proj.weight", {2, 1});
  add(mixer + "k_proj.weight", {2, 1});
  add(mixer + "v_proj.weight", {5, 1});
  add("model.layers.0.feedforward_layer_norm.weight", {1});
  add("model.layers.1.self_attn.q_proj.weight", {1, 1});
  add("model.layers.1.feedforward_layer_norm.weight", {1});
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  const auto opened = Checkpoint::open(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Checkpoint& checkpoint = opened.value();
  float want = 0;
  for (const auto& [part, rows] : {std::pair{"q", 2}, std::pair{"k", 2}, std::pair{"v", 5}}) {
    const TensorView& conv = *checkpoint.find(mixer + part + "_conv1d.weight").value();
    EXPECT_EQ(conv.shape, (std::vector<int64_t>{rows, 1, 2})) << part;
    std::vector<float> values(static_cast<size_t>(rows) * 2);
    ASSERT_TRUE(convert_tensor(conv, DType::kF32, values.data()).ok());
    for (const float value : values) EXPECT_EQ(value, want++) << part;
  }
  EXPECT_TRUE(checkpoint.find("model.layers.0.feedforward_layer_norm.weight").ok());
  EXPECT_TRUE(checkpoint.find("model.layers.1.post_attention_layernorm.weight").ok());
}

// As transformers 5.24 saves Kimi Linear, whose layers without experts it names as those with.
TEST(Checkpoint, DenseLayersThatAreNamedAsMixturesAreFound) {
  const ScratchFolder folder;
  const std::string dense = "model.layers.0.", mixture = "model.layers.1.block_sparse_moe.";
  const std::string shared = mixture + "shared_experts.gate_proj.weight";
  write_shard(
      folder, "model.safetensors",
      {dense + "block_sparse_moe.gate_proj.weight", dense + "block_sparse_moe.up_proj.weight",
       dense + "block_sparse_moe.down_proj.weight", mixture + "gate.weight", shared});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  for (const char* matrix : {"gate_proj", "up_proj", "down_proj"}) {
    EXPECT_TRUE(checkpoint.value().find(dense + "mlp." + matrix + ".weight").ok()) << matrix;
  }
  EXPECT_TRUE(checkpoint.value().find(mixture + "gate.weight").ok());
  EXPECT_TRUE(checkpoint.value().find(shared).ok());
}

// As it saves Nemotron H (huggingface/transformers 48075).
TEST(Checkpoint, AnEmbeddingThatLostALetterIsFound) {
  const ScratchFolder folder;
  write_shard(folder, "model.safetensors", {"backbone.embedding.weight"});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint.value().find("backbone.embeddings.weight").ok());
}

TEST(Checkpoint, TensorsOfNoElementsMayBeLeftOut) {
  const ScratchFolder folder;
  const std::vector<TensorToWrite> tensors = {
      {"model.extra", FileDType::kF32, {0, 4}, [](std::byte*) {}}};
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint.value().may_be_left_out(*checkpoint.value().find("model.extra").value()));
}

}  // namespace
}  // namespace foretoken
