#include "compat/compat.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "attention/families.h"
#include "support/claimed_device.h"

namespace foretoken {
namespace {

const DeviceTraits* const kCpuType = find_device_type("cpu");
const DeviceTraits* const kCudaType = find_device_type("cuda");

TEST(Compat, NothingAskedIsNothingRefused) {
  EXPECT_TRUE(compat({}).ok());
  for (const DeviceTraits& device : device_types()) {
    EXPECT_TRUE(compat({.device = &device, .attention = &portable_attention()}).ok());
  }
  EXPECT_TRUE(compat({.structured_outputs = true, .num_ranks = 4}).ok());
}

TEST(Compat, AKvFormatNeedsADeviceAndABackendThatReadIt) {
  const auto with = [](const DeviceTraits* device, const AttentionBackend* attention) {
    return compat({.device = device,
                   .attention = attention,
                   .kv_cache_dtype = "int8",
                   .dtype = DType::kBF16});
  };
  EXPECT_TRUE(with(kCpuType, nullptr).ok());
  EXPECT_TRUE(with(kCpuType, &portable_attention()).ok());
  EXPECT_TRUE(with(kCudaType, nullptr).ok());
  EXPECT_TRUE(with(kCudaType, &flash_attention()).ok());
  EXPECT_EQ(with(kCudaType, &flashinfer_attention()).message(),
            "--kv-cache-dtype int8 is not read by --attention-backend flashinfer; leave one of "
            "them out, or use --attention-backend flash");
}

TEST(Compat, AKvFormatNeedsABackendThatReadsIt) {
  const Combination c = {.device = kCudaType,
                         .attention = &flashinfer_attention(),
                         .kv_cache_dtype = "fp8",
                         .dtype = DType::kBF16};
  EXPECT_EQ(compat(c).message(),
            "--kv-cache-dtype fp8 is not read by --attention-backend flashinfer; leave one of them "
            "out, or use --attention-backend flash");
}

TEST(Compat, AnOpenedDeviceMayLackWhatItsTypeHas) {
  const test::ClaimedDevice old(DeviceType::kCuda, false);
  const test::ClaimedDevice hopper(DeviceType::kCuda, true);
  Combination c = {.device = kCudaType, .attention = &flashinfer_attention()};
  EXPECT_TRUE(compat(c).ok());
  c.opened = &hopper;
  EXPECT_TRUE(compat(c).ok());
  c.opened = &old;
  EXPECT_NE(compat(c).message().find("needs a GPU of compute capability 9.0"), std::string::npos);
  c = {.device = kCpuType, .attention = &flashinfer_attention()};
  EXPECT_NE(compat(c).message().find("does not exist on cpu"), std::string::npos);
}

constexpr AttentionDemand kGemma = {DType::kBF16, 128, 30.0f, true};
constexpr AttentionDemand kSmallBlocks = {DType::kBF16, 576, 0, true, 512, false, 16};

struct Refusal {
  Combination combination;
  std::vector<const char*> parts;
};
const Refusal kRefusals[] = {
    {{.attention = &flashinfer_attention(), .batch_invariant = true},
     {"--attention-backend flashinfer", "--batch-invariant off"}},
    {{.attention = &flashinfer_attention(), .model = kGemma}, {"soft cap", "portable"}},
    {{.attention = &flashmla_attention(), .model = kSmallBlocks},
     {"--attention-backend flashmla", "--block-size 64", "portable_mla"}},
    {{.is_synthetic = true, .structured_outputs = true},
     {"structured_outputs", "synthetic", "another rule"}},
    {{.device = kCudaType, .uses_mpi = true}, {"--communicator mpi", "leave it out"}},
    {{.num_ranks = 4, .num_context_ranks = 3},
     {"--decode-context-parallel-size 3", "--tensor-parallel-size 4", "use 1, 2 or 4"}},
    {{.num_ranks = 1, .num_context_ranks = 2},
     {"does not divide --tensor-parallel-size 1", "use 1"}},
    {{.num_ranks = 4, .num_context_ranks = 0}, {"--decode-context-parallel-size 0"}},
    {{.num_ranks = 4, .num_stages = 2, .num_context_ranks = 4},
     {"--decode-context-parallel-size 4", "--tensor-parallel-size 2", "use 1 or 2"}},
    {{.architecture = "M", .kv_heads = {2}, .num_heads = 8, .num_ranks = 4, .num_context_ranks = 4},
     {"--decode-context-parallel-size 4: M has 2 heads of keys and values",
      "only 2 of 4 tensor parallel ranks have the same ones",
      "use --decode-context-parallel-size 2, or use --tensor-parallel-size 8"}},
    {{.architecture = "M",
      .kv_heads = {1, 2},
      .num_heads = 8,
      .num_ranks = 4,
      .num_context_ranks = 4},
     {"M has 1 head of keys and values, so that only 2 of 4"}},
    {{.architecture = "M", .hidden_size = 66, .num_ranks = 2, .num_context_ranks = 2},
     {"--decode-context-parallel-size 2: 66, the hidden size of M", "multiple of 4",
      "leave it out"}},
    {{.num_experts = 0, .expert_parallel = true},
     {"--enable-expert-parallel", "no mixture", "leave it out"}},
    {{.num_experts = 4, .num_ranks = 4, .num_engines = 2, .expert_parallel = true},
     {"--enable-expert-parallel", "4 experts", "8 ranks", "at most 4 ranks"}},
    {{.architecture = "M", .layers = LayerNeeds{.max_stages = 3}, .num_ranks = 8, .num_stages = 4},
     {"at most 3 stages", "--pipeline-parallel-size 3", "divide by --tensor-parallel-size"}},
    {{.two_lanes = true, .only_pieces = true},
     {"--enable-dbo", "--cudagraph-mode FULL", "attention backend"}},
    {{.architecture = "M", .hidden_size = 66, .num_ranks = 2, .two_lanes = true},
     {"--enable-dbo: 66, the hidden size of M", "multiple of 4", "leave it out"}},
    {{.server_per_host = true, .server_per_engine = true},
     {"--data-parallel-hybrid-lb", "--data-parallel-external-lb", "leave one of them out"}},
    {{.server_per_engine = true, .no_server = true},
     {"--headless", "--data-parallel-external-lb", "leave one of them out"}},
    {{.server_per_engine = true, .num_local_engines = 4},
     {"--data-parallel-rank", "--data-parallel-size-local is 4", "--data-parallel-hybrid-lb"}},
    {{.server_per_host = true, .num_local_engines = 0},
     {"--data-parallel-size-local 0", "--data-parallel-hybrid-lb", "leave one of them out"}},
    {{.no_server = true, .num_local_engines = 0},
     {"--data-parallel-size-local 0", "--headless", "leave one of them out"}},
    {{.logits_processors = true, .num_local_engines = 0},
     {"logits_processors", "--data-parallel-size-local 0", "give this host an engine"}},
    {{.num_ranks = 2, .parts_of_steps = true}, {"on one rank", "bench decode"}},
    {{.two_lanes = true, .parts_of_steps = true}, {"--enable-dbo", "bench decode"}},
    {{.parts_of_steps = true, .has_profile = true}, {"--profile", "bench decode"}},
    {{.host_blocks = true, .prefix_caching = false},
     {"--kv-offloading-size", "--enable-prefix-caching off"}},
    {{.chosen_positions = 128, .num_ranks = 3, .num_context_ranks = 3},
     {"--decode-context-parallel-size 3", "the 128 positions of the blocks", "leave it out"}},
    {{.whole_prompts = true, .host_blocks = true, .prefix_caching = false},
     {"--kv-offloading-size", "--flex-mask with 'prompt'", "a mask of q and kv"}},
    {{.dtype = DType::kBF16, .lora_dtype = "float32"},
     {"--lora-dtype float32", "bfloat16", "leave it out"}},
    {{.two_lanes = true, .waiting_route = "NCCL: no peers"},
     {"--enable-dbo", "NCCL: no peers", "leave it out"}},
    {{.files = "models/m",
      .method_flag = "speculative config: quantization",
      .named_method = "awq_marlin",
      .files_method = "gptq"},
     {"speculative config: quantization awq_marlin", "models/m are quantised by gptq",
      "remove it"}},
    {{.architecture = "M",
      .files = "models/m",
      .has_windows = false,
      .modules_windowed = true,
      .drafts_by_modules = true},
     {"models/m: MTP modules of M have a sliding window", "use another drafter"}},
    {{.files = "models/d", .other_vocabulary = true, .draft_has_tokenizer = false},
     {"use_heterogeneous_vocab", "models/d has no tokenizer.json", "leave the field out"}},
    {{.other_vocabulary = true, .has_tokenizer = false},
     {"the target has no tokenizer", "--skip-tokenizer-init"}},
    {{.num_engines = 2, .parts_of_steps = true}, {"--data-parallel-size", "bench decode"}},
    {{.texts = "bad_words", .has_tokenizer = false}, {"bad_words need a tokenizer", "token ids"}},
    {{.lora = false, .adapter = "a"}, {"the adapter 'a'", "--enable-lora"}},
    {{.expressions = true, .attends = false, .architecture = "RWKV7ForCausalLM"},
     {"no layer of 'RWKV7ForCausalLM' attends", "--flex-mask", "out"}},
    {{.whole_prompts = true, .chooses_blocks = true},
     {"--flex-mask", "'prompt'", "indexer", "a mask of q and kv"}},
};

TEST(Compat, EachRefusalNamesBothSidesAndTheRemedy) {
  for (const Refusal& c : kRefusals) {
    const Status status = compat(c.combination);
    ASSERT_FALSE(status.ok()) << c.parts[0];
    for (const char* part : c.parts) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  }
}

// Each is reached by its own example, and says with what remedy.
TEST(Compat, EveryRuleIsBrokenByItsExample) {
  std::set<std::string> sentences;
  for (const CompatRule& rule : compat_rules()) {
    ASSERT_TRUE(rule.is_broken(rule.example)) << rule.parts;
    const Status status = compat(rule.example);
    EXPECT_EQ(status.message(), rule.sentence(rule.example)) << rule.parts << ": an earlier rule";
    EXPECT_EQ(status.code(), rule.code) << rule.parts;
    EXPECT_NE(status.message().find("; "), std::string::npos) << status.message();
    EXPECT_TRUE(sentences.insert(status.message()).second) << status.message();
    EXPECT_FALSE(rule.is_broken({})) << rule.parts;
  }
}

// What a sentence tells to do is not refused by the next one.
TEST(Compat, ARemedyIsNotRefused) {
  const auto stages_of = [](const LayerNeeds& needs) {
    return compat({.layers = needs, .num_ranks = 2, .num_stages = 2}).message();
  };
  const std::string by_ranks = " and divide by --tensor-parallel-size";
  EXPECT_TRUE(stages_of({.max_stages = 1}).ends_with("size 1" + by_ranks));
  EXPECT_EQ(stages_of({.max_stages = 2}), "");
}

// No rule goes by what is not known, and what is known to be otherwise is not taken for unknown.
TEST(Compat, WhatIsNotKnownIsNotRefused) {
  EXPECT_TRUE(compat({.num_context_ranks = 2}).ok()) << "of how many ranks?";
  EXPECT_TRUE(compat({.num_draft_ranks = 2}).ok());
  EXPECT_TRUE(compat({.host_blocks = true}).ok());
  EXPECT_FALSE(compat({.host_blocks = true, .prefix_caching = false}).ok());
  EXPECT_TRUE(compat({.lora_modules = true}).ok());
  EXPECT_FALSE(compat({.lora = false, .lora_modules = true}).ok());
}

// 16 ranks have 8 heads twice, which 8 query heads do not divide into; another number of ranks is
// named where it is accepted alone.
TEST(Compat, MoreRanksAreNamedWhereQueriesDivideAmongThem) {
  Combination c = {
      .architecture = "M", .kv_heads = {8}, .num_heads = 8, .num_ranks = 4, .num_context_ranks = 2};
  EXPECT_TRUE(
      compat(c).message().ends_with("no two of 4 tensor parallel ranks have the same "
                                    "ones; leave it out"))
      << compat(c).message();
  c.num_heads = 32;
  EXPECT_TRUE(compat(c).message().ends_with("leave it out, or use --tensor-parallel-size 16"));
}

TEST(Compat, PartsThatFitAreNotRefused) {
  EXPECT_TRUE(compat({.kv_heads = {1}, .num_ranks = 4, .num_context_ranks = 4}).ok());
  EXPECT_TRUE(compat({.kv_heads = {2, 1}, .num_ranks = 4, .num_context_ranks = 2}).ok());
  EXPECT_TRUE(compat({.kv_heads = {8}, .num_ranks = 4, .num_context_ranks = 1}).ok());
  EXPECT_TRUE(compat({.kv_heads = {8}, .num_context_ranks = 2}).ok()) << "of how many ranks?";
  EXPECT_TRUE(compat({.hidden_size = 68, .num_ranks = 2, .num_context_ranks = 2}).ok());
  EXPECT_TRUE(compat({.hidden_size = 68, .num_ranks = 2, .two_lanes = true}).ok());
  EXPECT_TRUE(compat({.hidden_size = 65, .num_ranks = 1, .two_lanes = true}).ok());
  EXPECT_TRUE(compat({.lora = true, .lora_modules = true}).ok());
  EXPECT_TRUE(compat({.dtype = DType::kBF16, .lora_dtype = "auto"}).ok());
  EXPECT_TRUE(compat({.dtype = DType::kBF16, .lora_dtype = "bfloat16"}).ok());
  EXPECT_TRUE(compat({.has_windows = true, .num_ranks = 2, .num_context_ranks = 2}).ok());
  EXPECT_TRUE(compat({.num_draft_ranks = 1, .num_ranks = 4}).ok());
  EXPECT_TRUE(compat({.attention = &flex_attention(), .expressions = true}).ok());
  EXPECT_TRUE(compat({.whole_prompts = true, .has_windows = true}).ok());
  EXPECT_TRUE(compat({.compressed = true, .num_ranks = 2, .num_context_ranks = 2}).ok());
  EXPECT_TRUE(compat({.expressions = true, .num_ranks = 2, .num_context_ranks = 2}).ok());
  EXPECT_TRUE(compat({.named_method = "awq", .files_method = "awq"}).ok());
  EXPECT_TRUE(compat({.named_method = "awq"}).ok()) << "of files that nobody has read";
  EXPECT_TRUE(compat({.drafts = true, .step_time_table = true}).ok());
  EXPECT_TRUE(compat({.lora = true, .adapter = "a", .loads_adapter = true}).ok());
  EXPECT_TRUE(compat({.load_format = "gguf", .gguf = true}).ok());
  EXPECT_TRUE(compat({.load_format = "safetensors", .gguf = false}).ok());
  EXPECT_TRUE(
      compat({.has_windows = true, .modules_windowed = true, .drafts_by_modules = true}).ok());
  EXPECT_TRUE(compat({.expressions = true, .whole_prompts = false, .chooses_blocks = true}).ok());
  EXPECT_TRUE(
      compat({.other_vocabulary = true, .draft_has_tokenizer = true, .has_tokenizer = true}).ok());
  EXPECT_TRUE(compat({.texts = "text prompts",
                      .converts_texts = true,
                      .chats = true,
                      .fills_gaps = true,
                      .model_calls_tools = true,
                      .wants_step_times = true})
                  .ok())
      << "of an engine of which nothing is known";
  EXPECT_TRUE(compat({.drafts = true, .speculative_wish = "speculative.method is set"}).ok());
  EXPECT_TRUE(compat({.logprobs = "logprobs is 5", .texts = "bad_words", .priority = 3}).ok());
  EXPECT_TRUE(compat({.gives_logprobs = false,
                      .keeps_processor_rows = false,
                      .has_tokenizer = false,
                      .has_priorities = false})
                  .ok());
}

}  // namespace
}  // namespace foretoken
