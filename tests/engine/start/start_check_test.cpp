#include "engine/start/start_check.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "draft/drafter_parts.h"
#include "engine/start/load_format.h"
#include "engine/start/parallel_checks.h"
#include "engine/start/resolve_config.h"
#include "engine/start/speculative_checks.h"
#include "engine/step/shape/graph_mode.h"
#include "model/model_parts.h"
#include "support/claimed_device.h"

// What the matrix says of a combination without starting it is what the start of an engine says:
// for every drafter with every attention, KV type, layout and device.

namespace foretoken {
namespace {

struct Family {
  const char* architecture;
  float softcap;
  int num_experts;
  bool latent;
  int window;
};
constexpr Family kFamilies[] = {{"LlamaForCausalLM", 0, 0, false, 0},
                                {"Gemma2ForCausalLM", 50, 0, false, 64},
                                {"MixtralForCausalLM", 0, 8, false, 0},
                                {"OlmoeForCausalLM", 0, 8, false, 0},
                                {"DeepseekV3ForCausalLM", 0, 8, true, 0}};

ModelConfig model_of(const Family& family) {
  ModelConfig config;
  config.architecture = family.architecture;
  config.dtype = DType::kBF16;
  config.vocab_size = 512;
  config.hidden_size = 64;
  config.intermediate_size = 128;
  config.num_layers = 2;
  config.num_heads = 8;
  config.num_kv_heads = 4;
  config.head_dim = 64;
  config.max_position_embeddings = config.max_context = 4096;
  config.attention_softcap = family.softcap;
  config.layers.resize(2);
  config.layers[0].window = family.window;
  if (family.num_experts > 0) {
    config.experts.count = family.num_experts;
    config.experts.top_k = 2;
    config.experts.inner = 256;
    for (LayerConfig& layer : config.layers) layer.experts = true;
  }
  if (family.latent) {
    config.latent = {.kv_rank = 512, .nope_dim = 64, .rope_dim = 64, .value_dim = 64};
  }
  return config;
}

// What the engine asks one after the other before it loads anything.
Status engine_says(const EngineConfig& config, const Device& device, const ModelConfig& model) {
  FT_RETURN_IF_ERROR(check_parallel(config, [](const char*) -> const char* { return nullptr; }));
  FT_RETURN_IF_ERROR(check_speculative(config));
  FT_ASSIGN_OR_RETURN(ResolvedConfig resolved, resolve_config(config, device, model));
  const std::vector<std::string> folders(config.speculative.size());
  FT_RETURN_IF_ERROR(resolve_methods(resolved, folders, model));
  FT_RETURN_IF_ERROR(check_combination(resolved.parts, resolved.speculative));
  FT_ASSIGN_OR_RETURN(const GraphConfig graphs,
                      resolve_graphs(config, resolved.parts.attention->traits().in_graphs));
  resolved.parts.only_pieces = graphs.mode == GraphMode::kPiecewise;
  FT_RETURN_IF_ERROR(check_combination(resolved.parts, resolved.speculative));
  return choose_load_format(config.load_format, config.model).status();
}

struct Layout {
  int tp = 1, pp = 1, dp = 1, dcp = 1;
  bool experts = false, lanes = false;
  const char* graphs = "FULL";
  double offload = 0;
};
constexpr Layout kLayouts[] = {{},
                               {.tp = 2},
                               {.pp = 2},
                               {.dp = 2},
                               {.tp = 2, .dp = 2},
                               {.tp = 2, .dcp = 2},
                               {.tp = 4, .dcp = 3},
                               {.tp = 2, .pp = 2, .dcp = 2},
                               {.tp = 2, .experts = true},
                               {.tp = 2, .lanes = true},
                               {.pp = 2, .lanes = true},
                               {.tp = 2, .lanes = true, .graphs = "PIECEWISE"},
                               {.offload = 1}};

EngineConfig engine_of(const Layout& layout, const std::string& drafter) {
  EngineConfig config;
  ParallelConfig& ranks = config.parallel;
  ranks.tensor_parallel_size = layout.tp;
  ranks.pipeline_parallel_size = layout.pp;
  ranks.data_parallel_size = layout.dp;
  ranks.decode_context_parallel_size = layout.dcp;
  ranks.enable_expert_parallel = layout.experts;
  ranks.enable_dbo = layout.lanes;
  config.cudagraph_mode = layout.graphs;
  config.kv_offloading_size = layout.offload;
  if (drafter.empty()) return config;
  SpeculativeConfig& speculative = config.speculative.emplace_back();
  speculative.method = drafter;
  speculative.num_speculative_tokens = 3;
  if (declared_traits(drafter).reads_files) speculative.model = "drafter";
  return config;
}

std::vector<std::string> attentions_for(const Device& device) {
  std::vector<std::string> names = {""};
  for (const AttentionBackend* backend : attention_backends()) {
    // One that this device lacks, and others of its type have, is another matter.
    if (backend->traits().runs_on(device.type()) && !backend->runs_on(device)) continue;
    names.emplace_back(backend->traits().name);
  }
  return names;
}

std::vector<std::string> all_drafters() {
  std::vector<std::string> names = {""};
  for (const DrafterEntry& entry : drafters()) names.emplace_back(entry.name);
  return names;
}

std::string text_of(const EngineConfig& config, const Family& family) {
  const ParallelConfig& ranks = config.parallel;
  return std::string(family.architecture) + "/" +
         (config.speculative.empty() ? "none" : config.speculative.front().method) + "/" +
         config.attention_backend + "/" + config.kv_cache_dtype + "/TP" +
         std::to_string(ranks.tensor_parallel_size) + "PP" +
         std::to_string(ranks.pipeline_parallel_size) + "DP" +
         std::to_string(ranks.data_parallel_size) + "DCP" +
         std::to_string(ranks.decode_context_parallel_size);
}

class StartCheck : public testing::TestWithParam<const char*> {
 protected:
  const test::ClaimedDevice device_{find_device_type(GetParam())->type, true};
  std::map<bool, int> counts_;
  int next_ = 0;

  void compare(EngineConfig config, const Family& family, const ModelConfig& model,
               const Combination& known) {
    for (const std::string& attention : attentions_for(device_)) {
      config.attention_backend = attention;
      for (const char* kv : {"auto", "int8", "fp8", "float32", "int4"}) {
        config.kv_cache_dtype = kv;
        // Of those with drafters every eleventh, in which each drafter meets each other part.
        if (!config.speculative.empty() && next_++ % 11 != 0) continue;
        const Status said = check_start(config, known);
        const Status start = engine_says(config, device_, model);
        ASSERT_EQ(said.message(), start.message()) << text_of(config, family);
        ASSERT_EQ(said.code(), start.code()) << text_of(config, family);
        ++counts_[said.ok()];
      }
    }
  }
};

TEST_P(StartCheck, SaysWhatTheEngineSays) {
  for (const Family& family : kFamilies) {
    const ModelConfig model = model_of(family);
    Combination known;
    add_model(model, 0, 0, &known);
    for (const Layout& layout : kLayouts) {
      for (const std::string& drafter : all_drafters()) {
        EngineConfig config = engine_of(layout, drafter);
        config.device = GetParam();
        ASSERT_NO_FATAL_FAILURE(compare(config, family, model, known));
      }
    }
  }
  EXPECT_GT(counts_[true], 400);
  EXPECT_GT(counts_[false], 500);
}

// Two parts of a configuration that do not go together, and words of what is said.
struct Contradiction {
  const char* words;
  void (*ask)(EngineConfig&);
};

void add_drafter_of(const char* method, const char* model, EngineConfig& config) {
  SpeculativeConfig& drafter = config.speculative.emplace_back();
  drafter.method = method;
  drafter.model = model;
  drafter.num_speculative_tokens = 3;
}

constexpr Contradiction kContradictions[] = {
    {"--quantization fp8 rounds weights",
     [](EngineConfig& c) {
       c.quantization = "fp8";
       c.load_format = "dummy-q8_0";
     }},
    {"--load-format gguf reads", [](EngineConfig& c) { c.load_format = "gguf"; }},
    {"--load-format safetensors does not read",
     [](EngineConfig& c) {
       c.load_format = "safetensors";
       c.model = "a/model.gguf";
     }},
    {"--step-time-table is for speculation", [](EngineConfig& c) { c.step_time_table = "t"; }},
    {"--lora-modules names adapters",
     [](EngineConfig& c) { c.lora_modules.push_back({"a", "b", ""}); }},
    {"--lora-dtype float32",
     [](EngineConfig& c) {
       c.enable_lora = true;
       c.lora_dtype = "float32";
     }},
    {"--distributed-executor-backend uni",
     [](EngineConfig& c) {
       c.parallel.distributed_executor_backend = "uni";
       c.parallel.nnodes = 2;
     }},
    {"length_policy differs from the first",
     [](EngineConfig& c) {
       add_drafter_of("ngram", "", c);
       add_drafter_of("suffix", "", c);
       c.speculative.back().length_policy = "fixed";
     }},
    {"'eagle' always drafts",
     [](EngineConfig& c) {
       add_drafter_of("eagle", "head", c);
       add_drafter_of("ngram", "", c);
       c.speculative.front().leads = true;
     }},
    {"revision does nothing with method ngram",
     [](EngineConfig& c) {
       add_drafter_of("ngram", "", c);
       c.speculative.front().revision = "main";
     }},
    {"prompt_lookup_max does nothing with method eagle",
     [](EngineConfig& c) {
       add_drafter_of("eagle", "head", c);
       c.speculative.front().prompt_lookup_max = 3;
     }},
    {"--max-num-batched-tokens 1 leaves no row",
     [](EngineConfig& c) {
       add_drafter_of("ngram", "", c);
       c.max_num_batched_tokens = 1;
     }},
    {"use_heterogeneous_vocab compares two vocabularies, but the target",
     [](EngineConfig& c) {
       add_drafter_of("draft_model", "draft", c);
       c.speculative.front().use_heterogeneous_vocab = true;
       c.skip_tokenizer_init = true;
     }},
    {"use_heterogeneous_vocab is for draft models",
     [](EngineConfig& c) {
       add_drafter_of("eagle", "head", c);
       c.speculative.front().use_heterogeneous_vocab = true;
     }},
    {"draft_tensor_parallel_size 3 is neither",
     [](EngineConfig& c) {
       add_drafter_of("eagle", "head", c);
       c.speculative.front().draft_tensor_parallel_size = 3;
     }},
};

TEST_P(StartCheck, AsksAllThatAnEngineAsks) {
  const Family& family = kFamilies[0];
  const ModelConfig model = model_of(family);
  Combination known;
  add_model(model, 0, 0, &known);
  for (const Contradiction& each : kContradictions) {
    EngineConfig config;
    config.device = GetParam();
    each.ask(config);
    const Status said = check_start(config, known);
    EXPECT_NE(said.message().find(each.words), std::string::npos) << each.words << "\n"
                                                                  << said.message();
    EXPECT_EQ(said.message(), engine_says(config, device_, model).message()) << each.words;
  }
}

// Layers of MTP modules of which the model has none are told by its config.
TEST_P(StartCheck, AsksDraftersBesideTheModelsLayers) {
  ModelConfig model = model_of(kFamilies[0]);
  model.architecture = "MiMoV2FlashForCausalLM";
  Combination known;
  add_model(model, 0, 0, &known);
  EngineConfig config;
  config.device = GetParam();
  add_drafter_of("mtp", "", config);
  const Status said = check_start(config, known);
  EXPECT_NE(said.message().find("have a sliding window, and no layer"), std::string::npos)
      << said.message();
  EXPECT_EQ(said.message(), engine_says(config, device_, model).message());
  known.has_windows = true;
  EXPECT_TRUE(check_start(config, known).ok());
}

// No rule joins drafters with attention, layouts or KV types, but those that attend to what the
// target keeps.
TEST_P(StartCheck, ADrafterChangesNothingOfIt) {
  for (const Family& family : kFamilies) {
    Combination known;
    add_model(model_of(family), 0, 0, &known);
    for (const Layout& layout : kLayouts) {
      EngineConfig without = engine_of(layout, "");
      without.device = GetParam();
      const std::string said = check_start(without, known).message();
      for (const std::string& drafter : all_drafters()) {
        if (!drafter.empty() && declared_traits(drafter).reads_target_kv) continue;
        EngineConfig config = engine_of(layout, drafter);
        config.device = GetParam();
        EXPECT_EQ(check_start(config, known).message(), said) << text_of(config, family);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, StartCheck, testing::Values("cpu", "cuda"));

TEST(StartCheck, NamesOfNothingAreRefused) {
  EngineConfig config;
  config.attention_backend = "TREE_ATTN";
  EXPECT_NE(check_start(config, {}).message().find("'TREE_ATTN' does not exist on cpu"),
            std::string::npos);
  config.attention_backend = "FLASH_ATTN";
  EXPECT_NE(check_start(config, {}).message().find("for models without latents one of: portable"),
            std::string::npos);
  config.attention_backend = "TRITON_ATTN";
  EXPECT_TRUE(check_start(config, {}).ok()) << check_start(config, {}).message();
  config.speculative.emplace_back().method = "nothing";
  EXPECT_FALSE(check_start(config, {}).ok());
}

}  // namespace
}  // namespace foretoken
