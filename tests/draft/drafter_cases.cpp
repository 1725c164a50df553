#include "draft/drafter_cases.h"

#include <set>

#include "support/scratch_folder.h"

namespace foretoken::test {
namespace {

// True for the first call with a name.
bool add_folder(const std::string& name, std::string* path) {
  static const ScratchFolder all;
  static std::set<std::string> names;
  *path = all.file(name);
  return names.insert(name).second;
}

std::string shape_name(const DialledShape& shape) {
  return shape.architecture + "-" + dtype_name(shape.dtype) + "-" +
         std::to_string(shape.num_layers) + "-" + std::to_string(shape.hidden_size) + "-" +
         std::to_string(shape.vocab_size) + "-" + std::to_string(shape.seed) + "-" +
         std::to_string(shape.agreement) + "-" + std::to_string(shape.num_mtp_modules) + "-" +
         std::to_string(shape.id_shift) + "-" + std::to_string(shape.mask_id) + "-" +
         std::to_string(shape.max_position_embeddings);
}

}  // namespace

DialledShape dialled_target(DType dtype, const std::string& architecture) {
  DialledShape shape;
  shape.architecture = architecture;
  shape.num_layers = 3;
  shape.vocab_size = 256;
  shape.intermediate_size = 64;
  shape.max_position_embeddings = 512;
  shape.dtype = dtype;
  return shape;
}

std::string dialled_folder(const DialledShape& shape) {
  std::string path;
  if (add_folder(shape_name(shape), &path)) {
    const Status status = write_dialled_checkpoint(path, shape);
    FT_CHECK_MSG(status.ok(), status.message());
  }
  return path;
}

std::string dialled_head_folder(const DialledShape& target, const DialledHead& head) {
  std::string path;
  const std::string name =
      shape_name(target) + "-head" + std::to_string(static_cast<int>(head.kind)) + "-" +
      std::to_string(head.agreement) + "-" + std::to_string(head.num_modules) + "-" +
      std::to_string(head.draft_vocab_size) + "-" + std::to_string(head.num_layers);
  if (add_folder(name, &path)) {
    const Status status = write_dialled_head(path, target, head);
    FT_CHECK_MSG(status.ok(), status.message());
  }
  return path;
}

std::string dialled_chain_folder(const DialledShape& target, const DialledChain& chain) {
  std::string path;
  const std::string name =
      shape_name(target) + "-chain" + std::to_string(static_cast<int>(chain.kind)) + "-" +
      std::to_string(chain.agreement) + "-" + std::to_string(chain.num_draft_tokens) + "-" +
      std::to_string(chain.clusters);
  if (add_folder(name, &path)) {
    const Status status = write_dialled_chain(path, target, chain);
    FT_CHECK_MSG(status.ok(), status.message());
  }
  return path;
}

SpeculativeConfig DrafterCase::config(int num_draft_tokens) const {
  SpeculativeConfig config;
  config.method = method;
  config.num_speculative_tokens = num_draft_tokens;
  config.draft_vocab_size = draft_vocab_size;
  if (probabilistic) config.draft_sample_method = "probabilistic";
  const DialledShape shape = dialled_target(dtype, architecture);
  if (method == "draft_model" || method == "pard") {
    DialledShape draft = dialled_target(dtype, draft_architecture);
    draft.num_layers = 2;
    draft.agreement = agreement;
    if (method == "pard") draft.mask_id = 1;
    config.model = dialled_folder(draft);
    return config;
  }
  if (method == "medusa" || method == "mlp_speculator" || method == "gemma4_assistant") {
    using Kind = DialledChain::Kind;
    config.model =
        dialled_chain_folder(shape, {.kind = method == "medusa"             ? Kind::kMedusa
                                             : method == "gemma4_assistant" ? Kind::kAssistant
                                                                            : Kind::kMlp,
                                     .agreement = agreement,
                                     .num_draft_tokens = kMaxDraftTokens,
                                     .clusters = clusters});
    return config;
  }
  DialledHead head;
  head.kind = method == "eagle"     ? HeadKind::kEagle
              : method == "eagle3"  ? HeadKind::kEagle3
              : method == "dflash"  ? HeadKind::kDflash
              : method == "dspark"  ? HeadKind::kDspark
              : method == "domino"  ? HeadKind::kDomino
              : method == "p_eagle" ? HeadKind::kPeagle
                                    : HeadKind::kMtp;
  head.agreement = agreement;
  head.num_modules = num_modules;
  head.num_layers = num_layers;
  config.model = dialled_head_folder(shape, head);
  return config;
}

std::vector<DrafterCase> drafter_cases() {
  return {
      {.name = "DraftModel", .method = "draft_model"},
      {.name = "Eagle", .method = "eagle"},
      {.name = "Eagle3", .method = "eagle3"},
      {.name = "Mtp", .method = "mtp"},
      {.name = "Mtp2", .method = "mtp", .num_modules = 2},
      {.name = "Mtp3", .method = "mtp", .num_modules = 3},
      {.name = "Dflash", .method = "dflash"},
      {.name = "Pard", .method = "pard"},
      {.name = "WindowedPard", .method = "pard", .draft_architecture = "MistralForCausalLM"},
      {.name = "Dspark", .method = "dspark"},
      {.name = "Domino", .method = "domino"},
      {.name = "PEagle", .method = "p_eagle"},
      {.name = "PEagle3LayersBf16", .method = "p_eagle", .dtype = DType::kBF16, .num_layers = 3},
      {.name = "PEagleOnLatentsReduced",
       .method = "p_eagle",
       .architecture = "DeepseekV3ForCausalLM",
       .num_layers = 2,
       .probabilistic = true,
       .draft_vocab_size = 200},
      {.name = "PEagleInt8Kv", .method = "p_eagle", .num_layers = 2, .kv_format = KvFormat::kInt8},
      {.name = "EagleOf3Layers", .method = "eagle", .num_layers = 3},
      {.name = "Eagle3Of2Layers", .method = "eagle3", .num_layers = 2},
      {.name = "Eagle3Of2LayersBf16Fp8Kv",
       .method = "eagle3",
       .dtype = DType::kBF16,
       .num_layers = 2,
       .kv_format = KvFormat::kFp8},
      {.name = "DsparkBf16", .method = "dspark", .dtype = DType::kBF16},
      {.name = "DsparkReduced", .method = "dspark", .probabilistic = true, .draft_vocab_size = 200},
      {.name = "DominoBf16", .method = "domino", .dtype = DType::kBF16},
      {.name = "DominoReduced", .method = "domino", .probabilistic = true, .draft_vocab_size = 200},
      {.name = "DflashBf16", .method = "dflash", .dtype = DType::kBF16},
      {.name = "DflashOnWindows", .method = "dflash", .architecture = "Gemma2ForCausalLM"},
      {.name = "DflashReduced", .method = "dflash", .draft_vocab_size = 200},
      {.name = "DflashInt8Kv", .method = "dflash", .kv_format = KvFormat::kInt8},
      {.name = "DraftModelBf16", .method = "draft_model", .dtype = DType::kBF16},
      {.name = "Eagle3Bf16", .method = "eagle3", .dtype = DType::kBF16},
      {.name = "Mtp2Bf16", .method = "mtp", .dtype = DType::kBF16, .num_modules = 2},
      {.name = "WindowedDraftModel",
       .method = "draft_model",
       .draft_architecture = "MistralForCausalLM"},
      {.name = "EagleOnWindows", .method = "eagle", .architecture = "Gemma2ForCausalLM"},
      {.name = "MtpOnWindows", .method = "mtp", .architecture = "Gemma3ForCausalLM"},
      {.name = "MtpOfMixture", .method = "mtp", .architecture = "Glm4MoeForCausalLM"},
      {.name = "MtpOfLatents", .method = "mtp", .architecture = "DeepseekV3ForCausalLM"},
      {.name = "Mtp2OfLatentsBf16",
       .method = "mtp",
       .dtype = DType::kBF16,
       .architecture = "DeepseekV3ForCausalLM",
       .num_modules = 2},
      {.name = "Eagle3OnLatents", .method = "eagle3", .architecture = "DeepseekV3ForCausalLM"},
      {.name = "DraftModelOfLatents",
       .method = "draft_model",
       .architecture = "MixtralForCausalLM",
       .draft_architecture = "DeepseekV3ForCausalLM"},
      {.name = "Eagle3Probabilistic", .method = "eagle3", .probabilistic = true},
      {.name = "DraftModelReduced",
       .method = "draft_model",
       .probabilistic = true,
       .draft_vocab_size = 200},
      {.name = "Eagle3Reduced", .method = "eagle3", .draft_vocab_size = 200},
      {.name = "DraftModelInt8Kv", .method = "draft_model", .kv_format = KvFormat::kInt8},
      {.name = "Eagle3Int8Kv", .method = "eagle3", .kv_format = KvFormat::kInt8},
      {.name = "Mtp2Bf16Int8Kv",
       .method = "mtp",
       .dtype = DType::kBF16,
       .num_modules = 2,
       .kv_format = KvFormat::kInt8},
      {.name = "EagleOnWindowsInt8Kv",
       .method = "eagle",
       .architecture = "Gemma2ForCausalLM",
       .kv_format = KvFormat::kInt8},
      {.name = "DraftModelFp8Kv", .method = "draft_model", .kv_format = KvFormat::kFp8},
      {.name = "Eagle3Bf16Fp8Kv",
       .method = "eagle3",
       .dtype = DType::kBF16,
       .kv_format = KvFormat::kFp8},
      {.name = "EagleOnWindowsFp8Kv",
       .method = "eagle",
       .architecture = "Gemma2ForCausalLM",
       .kv_format = KvFormat::kFp8},
      {.name = "Mtp2OfLatentsBf16Fp8Kv",
       .method = "mtp",
       .dtype = DType::kBF16,
       .architecture = "DeepseekV3ForCausalLM",
       .num_modules = 2,
       .kv_format = KvFormat::kFp8},
      {.name = "Mtp2OfLatentsBf16Int8Kv",
       .method = "mtp",
       .dtype = DType::kBF16,
       .architecture = "DeepseekV3ForCausalLM",
       .num_modules = 2,
       .kv_format = KvFormat::kInt8},
      {.name = "MtpOfLatentsFp8Kv",
       .method = "mtp",
       .architecture = "DeepseekV3ForCausalLM",
       .kv_format = KvFormat::kFp8},
      {.name = "MtpOfLatentsInt8Kv",
       .method = "mtp",
       .architecture = "DeepseekV3ForCausalLM",
       .kv_format = KvFormat::kInt8},
      {.name = "Mtp3OfLatents",
       .method = "mtp",
       .architecture = "DeepseekV3ForCausalLM",
       .num_modules = 3},
      {.name = "DraftModelOfLatentsFp8Kv",
       .method = "draft_model",
       .architecture = "MixtralForCausalLM",
       .draft_architecture = "DeepseekV3ForCausalLM",
       .kv_format = KvFormat::kFp8},
  };
}

Reference::Reference(const std::string& target, const SpeculativeConfig& config,
                     const SlotParams& params, KvFormat kv_format)
    : rig_(target, {config}, {}, "auto", kv_format) {
  rig_.params = params;
  rig_.params.drafter = 0;
}

RigOutput Reference::run(const std::vector<int32_t>& ids, int limit) {
  rig_.start(0, {ids.begin(), ids.end() - 1});
  rig_.forced[0] = {ids.back()};
  return rig_.step({.slot = 0,
                    .num_tokens = static_cast<int32_t>(ids.size()) - 1,
                    .max_verified = 0,
                    .num_draft_tokens = limit,
                    .draft_rows = DraftRig::kMaxRows});
}

const std::vector<int32_t>& Reference::drafts(const std::vector<int32_t>& ids, int limit) {
  const auto [at, is_new] = known_.try_emplace({ids, limit});
  if (is_new) {
    at->second = run(ids, limit).proposed;
    rig_.release(0);
  }
  return at->second;
}

Reference::Entries Reference::entries(const std::vector<int32_t>& ids) {
  run(ids, 1);
  Entries all;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto position = static_cast<int32_t>(i);
    all.drafter.push_back(rig_.entry(*rig_.drafter().kv_cache(), 0, position));
    if (i + 1 < ids.size()) all.target.push_back(rig_.entry(rig_.target_cache(), 0, position));
  }
  rig_.release(0);
  return all;
}

std::vector<int32_t> cycle_from(int64_t place, int count) {
  const DialledShape shape = dialled_target();
  const DialledCycle cycle(shape.vocab_size, shape.seed);
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(cycle.at(place + i));
  return ids;
}

void expect_follows_cycle(const std::vector<int32_t>& ids, int prompt_len) {
  const DialledShape shape = dialled_target();
  const DialledCycle cycle(shape.vocab_size, shape.seed);
  for (size_t i = static_cast<size_t>(prompt_len); i < ids.size(); ++i) {
    ASSERT_EQ(ids[i], cycle.next(ids[i - 1])) << "at " << i;
  }
}

}  // namespace foretoken::test
