#include "model/decoder_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "device/arena.h"
#include "dialled/dialled_parts.h"
#include "model/forward_harness.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::model_device;
using test::ScratchFolder;

int64_t size_of(const TensorToWrite& tensor) {
  int64_t size = 1;
  for (const int64_t extent : tensor.shape) size *= extent;
  return size;
}

class DecoderWeightsOf : public testing::TestWithParam<std::string> {
 protected:
  DecoderWeightsOf() {
    shape_.architecture = GetParam();
    shape_.vocab_size = 16;
    shape_.hidden_size = 32;
    shape_.head_dim = 16;
    shape_.intermediate_size = shape_.expert_inner = 32;
    shape_.num_experts = 4;
    shape_.experts_per_token = 2;
    const Status written = write_dialled_checkpoint(folder_.path(), shape_);
    FT_CHECK_MSG(written.ok(), written.message());
    config_ = read_model_config(folder_.path(), {}).value();
    traits_ = find_architecture(GetParam())->decoder;
    tensors_ = dialled_tensors(shape_, config_, traits_);
  }

  Result<std::unique_ptr<Model>> load(const Stages& stages = {}, bool tied = false) {
    LoadOptions options;
    options.max_rows = options.max_logits_rows = 4;
    options.stages = stages;
    nlohmann::json fields = {{"tie_word_embeddings", true}};
    if (find_architecture(GetParam())->text_config) fields = {{"text_config", fields}};
    if (tied) options.config.hf_overrides = fields.dump();
    return load_model(model_device(), folder_.path(), options);
  }

  DialledShape shape_;
  ScratchFolder folder_;
  ModelConfig config_;
  DecoderTraits traits_;
  std::vector<TensorToWrite> tensors_;
};

TEST_P(DecoderWeightsOf, BytesAreCountedBeforeAndAfterLoading) {
  const auto model = load();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model.value()->weight_bytes(), decoder_weight_bytes(config_, traits_));
  int64_t count = 0;
  for (const TensorToWrite& tensor : tensors_) count += size_of(tensor);
  EXPECT_EQ(model.value()->weight_bytes(), count * 4);
  EXPECT_EQ(model.value()->num_weights(), count);
}

// The first stage embeds, the last one has the final norm and the output matrix, which is a copy of
// the embedding where they are tied.
TEST_P(DecoderWeightsOf, StagesLoadWhatTheyUse) {
  for (const bool tied : {false, true}) {
    int64_t own[2] = {0, 0}, matrix = 0, all = 0;
    for (const TensorToWrite& tensor : tensors_) {
      const size_t at = tensor.name.find("layers.");
      const bool embeds = tensor.name.ends_with("embed_tokens.weight");
      const int stage = embeds ? 0 : at == std::string::npos ? 1 : tensor.name[at + 7] - '0';
      own[stage] += size_of(tensor);
      all += size_of(tensor);
      if (embeds) matrix = size_of(tensor);
    }
    config_.tie_word_embeddings = tied;
    for (const int32_t stage : {0, 1}) {
      const auto model = load({stage, 2}, tied);
      ASSERT_TRUE(model.ok()) << model.status().message();
      EXPECT_EQ(model.value()->config().tie_word_embeddings, tied);
      EXPECT_EQ(model.value()->weight_bytes(), own[stage] * 4) << "stage " << stage;
      EXPECT_EQ(model.value()->weight_bytes(),
                decoder_weight_bytes(config_, traits_, {}, {stage, 2}));
      EXPECT_EQ(model.value()->num_weights(), all - (tied ? matrix : 0));
    }
  }
}

// Decoders that were saved as a part of something larger, and those saved without a head of names.
TEST(FindPlace, DecodersUnderOtherNames) {
  DialledShape shape;
  shape.vocab_size = shape.hidden_size = 16;
  shape.head_dim = shape.intermediate_size = 8;
  const std::pair<const char*, const char*> places[] = {
      {"model.language_model.", "lm_head."},
      {"language_model.model.", "language_model.lm_head."},
      {"language_model.model.", "lm_head."},
      {"", "lm_head."},
  };
  for (const auto& [body, head] : places) {
    ScratchFolder folder;
    ASSERT_TRUE(write_dialled_checkpoint(folder.path(), shape).ok());
    const ModelConfig config = read_model_config(folder.path(), {}).value();
    std::vector<TensorToWrite> tensors =
        dialled_tensors(shape, config, find_architecture("LlamaForCausalLM")->decoder);
    for (TensorToWrite& tensor : tensors) {
      const bool is_head = tensor.name.starts_with("lm_head.");
      tensor.name = is_head ? head + tensor.name.substr(8) : body + tensor.name.substr(6);
    }
    TensorToWrite tower = tensors.front();
    tower.name = "vision_tower.patch.weight";
    tensors.push_back(std::move(tower));
    ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
    LoadOptions options;
    options.max_rows = options.max_logits_rows = 4;
    const auto model = load_model(model_device(), folder.path(), options);
    ASSERT_TRUE(model.ok()) << body << ": " << model.status().message();
    EXPECT_EQ(model.value()->num_weights(),
              num_decoder_weights(config, find_architecture("LlamaForCausalLM")->decoder));
  }
}

// Every stage says what one rank says, also of what others load.
TEST_P(DecoderWeightsOf, StagesMissTheSameTensors) {
  for (size_t missing = 0; missing < tensors_.size(); ++missing) {
    if (tensors_[missing].name.find("layers.") != std::string::npos) continue;
    std::vector<TensorToWrite> rest = tensors_;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(missing));
    ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), rest).ok());
    const auto whole = load();
    ASSERT_FALSE(whole.ok());
    for (const int32_t stage : {0, 1}) {
      const auto model = load({stage, 2});
      ASSERT_FALSE(model.ok()) << tensors_[missing].name;
      EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
      EXPECT_EQ(model.status().message(), whole.status().message());
    }
  }
}

TEST_P(DecoderWeightsOf, StagesNameAForeignTensor) {
  tensors_.push_back(tensors_.back());
  tensors_.back().name = traits_.places[0].body + std::string("router.weight");
  ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors_).ok());
  for (const int32_t stage : {0, 1}) {
    const auto model = load({stage, 2});
    ASSERT_FALSE(model.ok());
    EXPECT_NE(model.status().message().find("router.weight"), std::string::npos);
  }
}

TEST_P(DecoderWeightsOf, AMissingTensorIsNamed) {
  for (size_t missing = 0; missing < tensors_.size(); ++missing) {
    std::vector<TensorToWrite> rest = tensors_;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(missing));
    ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), rest).ok());
    const auto model = load();
    ASSERT_FALSE(model.ok()) << tensors_[missing].name;
    EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
    EXPECT_NE(model.status().message().find("'" + tensors_[missing].name + "'"), std::string::npos)
        << model.status().message();
    EXPECT_NE(model.status().message().find(folder_.path()), std::string::npos);
  }
}

TEST_P(DecoderWeightsOf, AForeignTensorIsNamed) {
  tensors_.push_back(tensors_.back());
  tensors_.back().name = traits_.places[0].body + std::string("layers.0.mlp.foreign.weight");
  ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors_).ok());
  const auto model = load();
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("layers.0.mlp.foreign.weight"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, DecoderWeightsOf, testing::ValuesIn(dialled_architectures()),
                         [](const auto& test) { return test.param; });

// transformers 5 may store the text part of Gemma 3 under a second name, and vision towers beside
// it, which are not read.
TEST(DecoderWeights, TheTextPartMayHaveAnotherName) {
  const ScratchFolder folder;
  DialledShape shape;
  shape.architecture = "Gemma3ForConditionalGeneration";
  ASSERT_TRUE(write_dialled_checkpoint(folder.path(), shape).ok());
  const ModelConfig config = read_model_config(folder.path(), {}).value();
  DecoderTraits traits = find_architecture(shape.architecture)->decoder;
  traits.places[0] = traits.places[1];
  std::vector<TensorToWrite> tensors = dialled_tensors(shape, config, traits);
  EXPECT_EQ(tensors[0].name, "model.language_model.embed_tokens.weight");
  tensors.push_back(tensors.back());
  tensors.back().name = "model.vision_tower.patch.weight";
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  const auto model = test::load_test_model(folder.path(), {}, 4);
  EXPECT_EQ(model->weight_bytes(), decoder_weight_bytes(config, traits));
}

// Draft modules in the files of their target are not the target's.
TEST(DecoderWeights, MtpModulesBehindTheLastLayerArePassedOver) {
  const ScratchFolder folder;
  const DialledShape shape;
  ASSERT_TRUE(write_dialled_checkpoint(folder.path(), shape).ok());
  const ModelConfig config = read_model_config(folder.path(), {}).value();
  const DecoderTraits traits = find_architecture(shape.architecture)->decoder;
  std::vector<TensorToWrite> tensors = dialled_tensors(shape, config, traits);
  tensors.push_back(tensors.back());
  tensors.back().name = "model.layers.2.eh_proj.weight";
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  LoadOptions options;
  options.max_rows = options.max_logits_rows = 4;
  const auto without = load_model(model_device(), folder.path(), options);
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.status().message().find("model.layers.2.eh_proj"), std::string::npos);
  options.config.hf_overrides = R"({"num_nextn_predict_layers": 1})";
  const auto with = load_model(model_device(), folder.path(), options);
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_EQ(with.value()->config().num_mtp_modules, 1);
  options.config.hf_overrides = R"({"num_nextn_predict_layers": 0})";
  EXPECT_FALSE(load_model(model_device(), folder.path(), options).ok());
  options.config.hf_overrides = R"({"num_nextn_predict_layers": -1})";
  EXPECT_NE(load_model(model_device(), folder.path(), options)
                .status()
                .message()
                .find("num_nextn_predict_layers"),
            std::string::npos);
}

// A tied head is a copy of the table, whatever else the file holds.
TEST(DecoderWeights, TiedHeads) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_dialled_checkpoint(folder.path(), {}).ok());
  LoadOptions options;
  options.config.hf_overrides = R"({"tie_word_embeddings": true})";
  options.max_rows = options.max_logits_rows = 4;
  const auto model = load_model(model_device(), folder.path(), options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  test::ForwardHarness harness(model_device(), *model.value(), 4, 2);
  const std::vector<int32_t> ids = {5, 9};
  // Each token's code is most like itself.
  EXPECT_EQ(test::argmax(harness.run(ids, 4)[1]), 9);
}

// Four layers on ranks that share out layers and their insides, from files or random.
class StageWeights : public testing::TestWithParam<LoadFormat> {
 protected:
  StageWeights() {
    shape_.num_layers = 4;
    const Status written = write_dialled_checkpoint(folder_.path(), shape_);
    FT_CHECK_MSG(written.ok(), written.message());
  }

  std::unique_ptr<Model> load(const Stages& stages, const Sharding& sharding = {}) const {
    LoadOptions options;
    options.max_rows = options.max_logits_rows = 4;
    options.load_format = GetParam();
    options.stages = stages;
    options.sharding = sharding;
    int64_t done = 0, all = 0;
    options.progress = [&](int64_t bytes, int64_t total) {
      done = bytes;
      all = total;
    };
    auto model = load_model(model_device(), folder_.path(), options).value();
    EXPECT_EQ(done, model->weight_bytes());
    EXPECT_EQ(all, model->weight_bytes());
    return model;
  }
  int64_t table_bytes() const { return int64_t{shape_.vocab_size} * shape_.hidden_size * 4; }

  DialledShape shape_;
  ScratchFolder folder_;
};

TEST_P(StageWeights, StagesInTheMiddleHaveLayersAlone) {
  const int64_t layer = load({1, 4})->weight_bytes();
  EXPECT_EQ(load({2, 4})->weight_bytes(), layer);
  EXPECT_EQ(load({0, 4})->weight_bytes(), layer + table_bytes());
  const int64_t head_and_norm = table_bytes() + shape_.hidden_size * 4;
  EXPECT_EQ(load({3, 4})->weight_bytes(), layer + head_and_norm);
  EXPECT_EQ(load({})->weight_bytes(), 4 * layer + table_bytes() + head_and_norm);
}

TEST_P(StageWeights, RanksOfAStageShareItsOutputMatrix) {
  for (const int32_t rank : {0, 1}) {
    const Sharding sharding{rank, 2};
    const int64_t layers = load({1, 4}, sharding)->weight_bytes() * 2;
    EXPECT_EQ(load({0, 2}, sharding)->weight_bytes(), layers + table_bytes());
    EXPECT_EQ(load({1, 2}, sharding)->weight_bytes(),
              layers + table_bytes() / 2 + shape_.hidden_size * 4);
  }
}

// The last stage reads the table where a drafter asks for it, once.
TEST_P(StageWeights, TheEmbeddingIsLent) {
  const auto first = load({0, 2}), last = load({1, 2});
  const int64_t first_bytes = first->weight_bytes(), last_bytes = last->weight_bytes();
  const RowTable own = first->shared_embedding().value();
  EXPECT_EQ(first->weight_bytes(), first_bytes);
  const Result<RowTable> lent = last->shared_embedding();
  ASSERT_TRUE(lent.ok()) << lent.status().message();
  EXPECT_EQ(last->weight_bytes(), last_bytes + table_bytes());
  EXPECT_EQ(last->shared_embedding().value().data, lent.value().data);
  EXPECT_EQ(last->weight_bytes(), last_bytes + table_bytes());
  const auto size = static_cast<size_t>(table_bytes());
  Arena pinned(model_device(), MemoryKind::kPinned);
  void* const a = pinned.take(size, "a table").value();
  void* const b = pinned.take(size, "a table").value();
  const auto queue = model_device().make_queue().value();
  queue->copy(a, own.data, size);
  queue->copy(b, lent.value().data, size);
  ASSERT_TRUE(queue->drain().ok());
  EXPECT_EQ(std::memcmp(a, b, size), 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, StageWeights,
                         testing::Values(LoadFormat::kAuto, LoadFormat::kDummy),
                         [](const auto& test) {
                           return test.param == LoadFormat::kAuto ? "Files" : "Dummy";
                         });

struct Published {
  const char* architecture;
  int32_t vocab, hidden, inner, layers, heads, kv_heads, head_dim;
  bool tied;
  int64_t num_parameters;
};

// The numbers of parameters that the models are published with, a tied head counted once.
TEST(DecoderWeights, PublishedModelsHaveTheirNumberOfParameters) {
  const Published models[] = {
      {"LlamaForCausalLM", 128256, 2048, 8192, 16, 32, 8, 64, true, 1235814400},
      {"MistralForCausalLM", 32000, 4096, 14336, 32, 32, 8, 128, false, 7241732096},
      {"Qwen2ForCausalLM", 151936, 896, 4864, 24, 14, 2, 64, true, 494032768},
      {"Qwen3ForCausalLM", 151936, 1024, 3072, 28, 16, 8, 128, true, 596049920},
      {"Gemma2ForCausalLM", 256000, 2304, 9216, 26, 8, 4, 256, true, 2614341888},
      {"Gemma3ForCausalLM", 262144, 1152, 6912, 26, 4, 1, 256, true, 999885952},
      {"Phi3ForCausalLM", 32064, 3072, 8192, 32, 32, 32, 96, false, 3821079552},
      {"SmolLM3ForCausalLM", 128256, 2048, 11008, 36, 16, 4, 128, true, 3075098624},
  };
  for (const Published& model : models) {
    const nlohmann::json json = {
        {"architectures", {model.architecture}}, {"vocab_size", model.vocab},
        {"hidden_size", model.hidden},           {"intermediate_size", model.inner},
        {"num_hidden_layers", model.layers},     {"num_attention_heads", model.heads},
        {"num_key_value_heads", model.kv_heads}, {"head_dim", model.head_dim},
        {"tie_word_embeddings", model.tied}};
    const ModelConfig config =
        parse_model_config(json, nlohmann::json::object(), {}, "config.json").value();
    const DecoderTraits& traits = find_architecture(model.architecture)->decoder;
    EXPECT_EQ(num_decoder_weights(config, traits), model.num_parameters) << model.architecture;
    int64_t count = decoder_weight_bytes(config, traits) / 4;
    if (model.tied) count -= int64_t{model.vocab} * model.hidden;
    EXPECT_EQ(count, model.num_parameters) << model.architecture;
  }
}

}  // namespace
}  // namespace foretoken
