#include "model/weights/lora_adapter.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "dialled/safetensors_writer.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using json = nlohmann::json;

constexpr const char* kModule = "base_model.model.model.layers.0.self_attn.q_proj";

TensorToWrite tensor(const std::string& name, std::vector<int64_t> shape) {
  return {name, FileDType::kF32, shape, [shape](std::byte* to) {
            for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
              const auto value = static_cast<float>(i);
              std::memcpy(to + 4 * i, &value, sizeof value);
            }
          }};
}

class LoraAdapterFolder : public testing::Test {
 protected:
  void write(const json& more, const std::vector<TensorToWrite>& tensors) {
    json config = {
        {"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 4}, {"target_modules", {"q_proj"}}};
    if (!more.is_null()) config.update(more);
    folder_.write("adapter_config.json", config.dump());
    ASSERT_TRUE(write_safetensors(folder_.file("adapter_model.safetensors"), tensors).ok());
  }
  Result<LoraAdapter> read(int32_t max_rank = 16) {
    return read_peft_adapter(folder_.path(), DType::kF32, max_rank);
  }
  void expect_error(StatusCode code, const std::string& part, int32_t max_rank = 16) {
    const auto adapter = read(max_rank);
    ASSERT_FALSE(adapter.ok()) << part;
    EXPECT_EQ(adapter.status().code(), code) << adapter.status().message();
    EXPECT_NE(adapter.status().message().find(part), std::string::npos)
        << adapter.status().message();
  }

  const std::string a_ = std::string(kModule) + ".lora_A.weight";
  const std::string b_ = std::string(kModule) + ".lora_B.weight";
  test::ScratchFolder folder_;
};

TEST_F(LoraAdapterFolder, HoldsTheMatricesAndTheirScale) {
  write({}, {tensor(a_, {2, 3}), tensor(b_, {5, 2})});
  const LoraAdapter adapter = read().value();
  ASSERT_EQ(adapter.linears.size(), 1u);
  const LoraLinear& linear = adapter.linears.front();
  EXPECT_EQ(linear.module, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(linear.rank, 2);
  EXPECT_EQ(linear.inputs, 3);
  EXPECT_EQ(linear.outputs, 5);
  EXPECT_EQ(linear.scale, 2.0f);
  float last = 0;
  std::memcpy(&last, linear.b.data() + 9 * sizeof last, sizeof last);
  EXPECT_EQ(last, 9.0f);
  const LoraAdapter again = unpack_adapter(pack_adapter(adapter)).value();
  EXPECT_EQ(again.linears.front().a, linear.a);
  EXPECT_EQ(again.linears.front().module, linear.module);
  for (const size_t bytes : {0, 3, 11, 40, 90}) {
    std::vector<std::byte> cut = pack_adapter(adapter);
    cut.resize(bytes);
    EXPECT_FALSE(unpack_adapter(cut).ok()) << bytes;
  }
}

// torch.compile, DistributedDataParallel and FSDP write names of their own; the modules may be
// those of the file.
TEST_F(LoraAdapterFolder, WrappersAndModulesThatAreNotNamed) {
  for (const std::string name : {"base_model.model._orig_mod.model.layers.0.self_attn.q_proj",
                                 "module.base_model.model.model.layers.0.self_attn.q_proj",
                                 "base_model.model.model.layers.0._orig_mod.self_attn.q_proj"}) {
    write({{"target_modules", nullptr}},
          {tensor(name + ".lora_A.weight", {2, 3}), tensor(name + ".lora_B.weight", {5, 2})});
    const auto adapter = read();
    ASSERT_TRUE(adapter.ok()) << adapter.status().message();
    EXPECT_EQ(adapter.value().linears.front().module, "model.layers.0.self_attn.q_proj");
  }
}

TEST_F(LoraAdapterFolder, MissingFilesAreNamed) {
  expect_error(StatusCode::kNotFound, "adapter_config.json cannot be found; an adapter is a PEFT");
  const auto nowhere = read_peft_adapter(folder_.file("nowhere"), DType::kF32, 1).status();
  EXPECT_EQ(nowhere.code(), StatusCode::kNotFound);
  EXPECT_NE(nowhere.message().find("/nowhere cannot be found; an adapter is a PEFT folder with"),
            std::string::npos)
      << nowhere.message();
  folder_.write("adapter_config.json", R"({"fine_tune_type": "lora"})");
  folder_.write("adapters.safetensors", "");
  expect_error(StatusCode::kUnsupported, "adapter of MLX");
  std::filesystem::remove(folder_.file("adapters.safetensors"));
  folder_.write("adapter_config.json", R"({"peft_type": "LORA"})");
  expect_error(StatusCode::kNotFound, "adapter_model.safetensors");
  folder_.write("adapter_model.bin", "short");
  expect_error(StatusCode::kInvalidArgument, "adapter_model.bin");
  folder_.write("adapter_model.safetensors", "short");
  expect_error(StatusCode::kInvalidArgument, "adapter_model.safetensors");
  for (const char* text : {"{", "[1]"}) {
    folder_.write("adapter_config.json", text);
    expect_error(StatusCode::kInvalidArgument, "; save the adapter again with PEFT's");
  }
}

// Older exports have a file of torch.save, and Python writes numbers that JSON does not know.
TEST_F(LoraAdapterFolder, TorchFilesAndPythonsNumbers) {
  const std::string source = std::string(foretoken::kSourceFolder) + "/tests/golden/torch/";
  write({}, {tensor(a_, {2, 3}), tensor(b_, {5, 2})});
  const std::vector<std::byte> expected = pack_adapter(read().value());
  std::filesystem::remove(folder_.file("adapter_model.safetensors"));
  std::filesystem::copy_file(source + "adapter.bin", folder_.file("adapter_model.bin"));
  const auto adapter = read();
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_EQ(pack_adapter(adapter.value()), expected);
  folder_.write("adapter_config.json",
                R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"],
                    "lora_dropout": NaN, "other": [-Infinity]})");
  EXPECT_EQ(pack_adapter(read().value()), expected);
  folder_.write("adapter_config.json", R"({"peft_type": "LORA", "r": 2, "lora_alpha": Infinity})");
  expect_error(StatusCode::kInvalidArgument, "lora_alpha must be a finite number");
  std::filesystem::copy_file(source + "hostile.bin", folder_.file("adapter_model.bin"),
                             std::filesystem::copy_options::overwrite_existing);
  folder_.write("adapter_config.json", R"({"peft_type": "LORA", "target_modules": ["q_proj"]})");
  EXPECT_EQ(read().status().code(), StatusCode::kUnsupported) << read().status().message();
}

TEST_F(LoraAdapterFolder, WhatDoesNotFitTogetherIsNamed) {
  write({}, {tensor(a_, {2, 3})});
  expect_error(StatusCode::kInvalidArgument, "q_proj' lacks lora_B; save the adapter again");
  write({}, {tensor(a_, {3, 3}), tensor(b_, {5, 3})});
  expect_error(StatusCode::kInvalidArgument,
               "but adapter_config.json says rank 2 for 'model.layers.0.self_attn.q_proj'; "
               "correct r or rank_pattern there");
  write({}, {tensor(a_, {2, 3}), tensor(b_, {5, 2})});
  expect_error(StatusCode::kInvalidArgument, "--max-lora-rank is 1; raise it to 2", 1);
  write({{"target_modules", {"v_proj"}}}, {tensor(a_, {2, 3}), tensor(b_, {5, 2})});
  expect_error(StatusCode::kInvalidArgument,
               "which adapter_config.json does not target; name it in target_modules");
  write({}, {tensor(a_, {2, 3}), tensor(b_, {5, 2}),
             tensor(std::string(kModule) + ".lora_A.default.weight", {2, 3})});
  expect_error(StatusCode::kInvalidArgument, "is there twice");
}

// As of a model's own state_dict, or of two adapters in one file.
TEST_F(LoraAdapterFolder, NamesOfTheAdapterAreLeftOut) {
  const std::string base = kModule;
  for (const char* name : {"default", "my-adapter", "sft_v2"}) {
    write({}, {tensor(base + ".lora_A." + name + ".weight", {2, 3}),
               tensor(base + ".lora_B." + name + ".weight", {5, 2})});
    const Result<LoraAdapter> adapter = read();
    ASSERT_TRUE(adapter.ok()) << adapter.status().message();
    EXPECT_EQ(adapter.value().linears.size(), 1u);
  }
  write({},
        {tensor(base + ".lora_A.one.weight", {2, 3}), tensor(base + ".lora_B.one.weight", {5, 2}),
         tensor(base + ".lora_A.two.weight", {2, 3})});
  expect_error(StatusCode::kInvalidArgument, "is there twice");
}

// PEFT saves them without being asked; whether they are the model's own is judged elsewhere.
TEST_F(LoraAdapterFolder, SavedBasesAreNamedAndNotRead) {
  const std::string table = "base_model.model.model.embed_tokens.weight";
  const std::string head = "base_model.model.lm_head.base_layer.weight";
  write({}, {tensor(a_, {2, 3}), tensor(b_, {5, 2}), tensor(table, {4, 3}), tensor(head, {4, 3})});
  const LoraAdapter adapter = read().value();
  EXPECT_EQ(adapter.linears.size(), 1u);
  ASSERT_EQ(adapter.bases.size(), 2u);
  EXPECT_EQ(adapter.bases[0].tensor, head);
  EXPECT_EQ(adapter.bases[0].name, "lm_head.weight");
  EXPECT_EQ(adapter.bases[1].name, "model.embed_tokens.weight");
}

// Requests of such an adapter would end with NaN logits, of which nobody knows whence they come.
TEST_F(LoraAdapterFolder, ValuesThatAreNotFiniteAreRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const TensorToWrite b = {b_, FileDType::kF32, {5, 2}, [bad](std::byte* to) {
                               const std::array<float, 10> values{1, 2, 3, 4, 5, 6, 7, 8, 9, bad};
                               std::memcpy(to, values.data(), sizeof values);
                             }};
    write({}, {tensor(a_, {2, 3}), b});
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const auto adapter = read_peft_adapter(folder_.path(), dtype, 16);
      ASSERT_FALSE(adapter.ok());
      EXPECT_NE(adapter.status().message().find("lora_B.weight' holds infinite values"),
                std::string::npos)
          << adapter.status().message();
    }
  }
}

// Whose inputs are its ids; PEFT also saves the adapter of a head that is tied to it.
TEST_F(LoraAdapterFolder, AdaptersOfEmbeddingsAreLinearLayers) {
  const std::string table = "base_model.model.model.embed_tokens.lora_embedding_";
  const std::string head = "base_model.model.lm_head.lora_";
  const std::vector<TensorToWrite> tensors = {
      tensor(table + "A", {2, 7}), tensor(table + "B", {3, 2}), tensor(head + "A.weight", {2, 3}),
      tensor(head + "B.weight", {7, 2})};
  write({{"target_modules", {"embed_tokens"}}, {"ensure_weight_tying", true}}, tensors);
  const LoraAdapter adapter = read().value();
  ASSERT_EQ(adapter.linears.size(), 2u);
  const LoraLinear& embedding = adapter.linears.back();
  EXPECT_EQ(embedding.module, "model.embed_tokens");
  EXPECT_EQ(embedding.inputs, 7);
  EXPECT_EQ(embedding.outputs, 3);
  EXPECT_EQ(adapter.linears.front().module, "lm_head");
  EXPECT_EQ(adapter.linears.front().outputs, 7);
  write({{"target_modules", {"embed_tokens"}}}, tensors);
  expect_error(StatusCode::kInvalidArgument, "'lm_head', which adapter_config.json does not");
}

TEST_F(LoraAdapterFolder, WholeMatricesAreReadWithWhatTheyMean) {
  const auto base_of = [&](const nlohmann::ordered_json& more, const char* name) {
    write(more, {tensor(a_, {2, 3}), tensor(b_, {5, 2}), tensor(name, {7, 3})});
    const LoraAdapter adapter = read().value();
    FT_CHECK(adapter.bases.size() == 1);
    return adapter.bases[0];
  };
  const char* const head = "base_model.model.lm_head.weight";
  const char* const wrapped = "base_model.model.model.embed_tokens.modules_to_save.default.weight";
  EXPECT_FALSE(base_of({}, head).was_trained);
  EXPECT_TRUE(base_of({}, head).ties);
  EXPECT_TRUE(base_of({{"modules_to_save", {"lm_head"}}}, head).was_trained);
  EXPECT_FALSE(base_of({{"modules_to_save", {"lm_head"}}}, head).ties);
  const LoraBase table =
      base_of({{"modules_to_save", {"embed_tokens"}}, {"ensure_weight_tying", true}}, wrapped);
  EXPECT_EQ(table.name, "model.embed_tokens.weight");
  EXPECT_TRUE(table.was_trained && table.ties);
  LoraAdapter adapter = read().value();
  ASSERT_TRUE(read_wholes(folder_.path(), {table}, &adapter).ok());
  const LoraAdapter packed = unpack_adapter(pack_adapter(adapter)).value();
  ASSERT_EQ(packed.wholes.size(), 1u);
  EXPECT_EQ(packed.wholes[0].module, "model.embed_tokens");
  EXPECT_EQ(packed.wholes[0].rows, 7);
  EXPECT_EQ(packed.wholes[0].columns, 3);
  EXPECT_EQ(packed.wholes[0].values, adapter.wholes[0].values);
  EXPECT_EQ(packed.linears.size(), 1u);
}

// save_embedding_layers copies all that PEFT keeps of a module that was trained.
TEST_F(LoraAdapterFolder, WholeMatricesUnderSeveralNamesAreRead) {
  const std::string table = "base_model.model.model.embed_tokens.";
  const json trained = {{"modules_to_save", {"embed_tokens"}}};
  const TensorToWrite a = tensor(a_, {2, 3}), b = tensor(b_, {5, 2});
  const TensorToWrite original = tensor(table + "original_module.weight", {7, 3});
  for (const char* const copy : {"weight", "modules_to_save.weight"}) {
    write(trained, {a, b, original, tensor(table + copy, {7, 3})});
    const auto adapter = read();
    ASSERT_TRUE(adapter.ok()) << adapter.status().message();
    ASSERT_EQ(adapter.value().bases.size(), 1u);
    EXPECT_EQ(adapter.value().bases[0].tensor, table + copy);
    EXPECT_EQ(adapter.value().bases[0].name, "model.embed_tokens.weight");
  }
  write(trained, {a, b, original, tensor(table + "modules_to_save.weight", {7, 3}),
                  tensor(table + "weight", {7, 3})});
  EXPECT_EQ(read().value().bases.size(), 1u);
  write(trained, {a, b, original});
  expect_error(StatusCode::kUnsupported, "original_module.weight': it is the model's own");
}

TEST_F(LoraAdapterFolder, WholeMatricesThatAreNamedMustBeThere) {
  const std::vector<TensorToWrite> tensors = {
      tensor(a_, {2, 3}), tensor(b_, {5, 2}),
      tensor("base_model.model.model.embed_tokens.weight", {7, 3})};
  write({{"modules_to_save", {"embed_tokens", "lm_head"}}}, tensors);
  expect_error(StatusCode::kInvalidArgument, "it lacks the matrix of 'lm_head'");
  write({{"modules_to_save", {"embed_tokens", "lm_head"}}, {"ensure_weight_tying", true}}, tensors);
  EXPECT_TRUE(read().ok());
  write({{"modules_to_save", {"norm"}}}, tensors);
  expect_error(StatusCode::kInvalidArgument, "it lacks the matrix of 'norm'");
}

TEST_F(LoraAdapterFolder, RowsOfTokensAreNamedWithTheirIds) {
  const std::vector<TensorToWrite> tensors = {
      tensor(a_, {2, 3}), tensor(b_, {5, 2}),
      tensor("base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta", {2, 3})};
  write({{"trainable_token_indices", {4, 1}}, {"alora_invocation_tokens", {9}}}, tensors);
  const auto adapter = read();
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  ASSERT_EQ(adapter.value().tokens.size(), 1u);
  EXPECT_EQ(adapter.value().tokens[0].module, "model.embed_tokens");
  EXPECT_EQ(adapter.value().tokens[0].ids, (std::vector{4, 1}));
  EXPECT_EQ(adapter.value().invocation, std::vector{9});
  std::vector<TensorToWrite> resized = tensors;
  resized.push_back(
      tensor("base_model.model.model.embed_tokens.token_adapter.base_layer.weight", {7, 3}));
  write({{"trainable_token_indices", {4, 1}}}, resized);
  ASSERT_EQ(read().value().bases.size(), 1u);
  EXPECT_EQ(read().value().bases[0].name, "model.embed_tokens.weight");
  write({}, tensors);
  expect_error(StatusCode::kInvalidArgument, "rows of 'model.embed_tokens'");
  write({{"trainable_token_indices", {4, 1}}}, {tensor(a_, {2, 3}), tensor(b_, {5, 2})});
  expect_error(StatusCode::kInvalidArgument, "it lacks the rows");
}

TEST_F(LoraAdapterFolder, WhatTrainingAloneNeedsIsPassedOver) {
  const std::string sampler = std::string(kModule) + ".lora_monteclora_sampler.std_prior";
  write({{"monteclora_config", {{"num_samples", 8}}}, {"velora_config", {{"num_groups", 4}}}},
        {tensor(a_, {2, 3}), tensor(b_, {5, 2}), tensor(sampler, {1, 2})});
  const auto adapter = read();
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_EQ(adapter.value().linears.size(), 1u);
}

TEST_F(LoraAdapterFolder, PackedBytesTakeLittleMoreThanTheyAre) {
  write({}, {tensor(a_, {2, 300}), tensor(b_, {500, 2})});
  LoraAdapter adapter = read().value();
  adapter.wholes.push_back({"lm_head", 1000, 3, std::vector<std::byte>(12000)});
  const std::vector<std::byte> packed = pack_adapter(adapter);
  EXPECT_LE(packed.capacity(), packed.size() + 256);
}

TEST_F(LoraAdapterFolder, MagnitudesBelongToDora) {
  const std::string base = kModule;
  for (const char* ending : {".lora_magnitude_vector", ".lora_magnitude_vector.weight"}) {
    const std::vector<TensorToWrite> tensors = {tensor(a_, {2, 3}), tensor(b_, {5, 2}),
                                                tensor(base + ending, {1, 5})};
    write({{"use_dora", true}}, tensors);
    LoraAdapter adapter = read().value();
    EXPECT_EQ(adapter.linears[0].magnitude, base + ending);
    adapter.linears[0].factors = {1, 2, 3, 4, 5};
    const LoraAdapter packed = unpack_adapter(pack_adapter(adapter)).value();
    EXPECT_EQ(packed.linears[0].factors, adapter.linears[0].factors);
    write({}, tensors);
    expect_error(StatusCode::kInvalidArgument, "holds magnitudes of");
  }
  write({{"use_dora", true}}, {tensor(a_, {2, 3}), tensor(b_, {5, 2})});
  expect_error(StatusCode::kInvalidArgument, "lacks magnitudes of");
}

TEST_F(LoraAdapterFolder, TensorsThatAreNotAppliedAreRefusedByName) {
  for (const auto& [name, why] :
       {std::pair{"base_model.model.score.weight", "modules_to_save"},
        std::pair{"base_model.model.model.norm.modules_to_save.default.weight", "modules_to_save"},
        std::pair{"other", "no matrix of a LoRA adapter"}}) {
    write({}, {tensor(a_, {2, 3}), tensor(b_, {5, 2}), tensor(name, {2, 2})});
    expect_error(StatusCode::kUnsupported, name);
    expect_error(StatusCode::kUnsupported, why);
    if (std::string(name) == "other") continue;
    expect_error(StatusCode::kUnsupported, "merge the adapter into its model");
  }
}

}  // namespace
}  // namespace foretoken
