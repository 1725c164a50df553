#include <string>

#include "compat/rules.h"

// Drafters, beside models and beside each other.

namespace foretoken {
namespace {

constexpr DrafterTraits kPlainHead = {.reads_files = true};

const CompatRule kDraftRules[] = {
    {"`--speculative-config`, `--max-num-batched-tokens 1`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.drafts && c.max_rows == 1; },
     [](const Combination&) -> std::string {
       return "speculative config: --max-num-batched-tokens 1 leaves no row for a draft beside a "
              "sequence's own; raise it to 2 or more";
     },
     {.drafts = true, .max_rows = 1}},
    {"`--speculative-config`, a model that sees later tokens",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.drafts && c.bidirectional; },
     [](const Combination& c) {
       return "speculative config: '" + c.architecture +
              "' writes no text that drafts could hasten; leave it out";
     },
     {.bidirectional = true, .architecture = "BertModel", .drafts = true}},
    {"`--step-time-table` without `--speculative-config`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.step_time_table && c.drafts.is_false(); },
     [](const Combination&) -> std::string {
       return "--step-time-table is for speculation; add --speculative-config or remove it";
     },
     {.drafts = false, .step_time_table = true}},
    {"a field of `--speculative-config`, a method that has no use for it",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.idle_field.empty(); },
     [](const Combination& c) {
       return "speculative config: " + c.idle_field + " does nothing with method " + c.drafter +
              ", " + c.idle_because + "; leave it out";
     },
     {.drafter = "ngram", .idle_field = "revision", .idle_because = "which has no files"}},
    {"drafters with different fields of the engine",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.unlike_first.empty(); },
     [](const Combination& c) {
       return "speculative config: " + c.unlike_first +
              " differs from the first drafter's; it holds for the whole engine, so give all "
              "drafters the same";
     },
     {.unlike_first = "length_policy"}},
    {"a list with a drafter behind one that always drafts",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.drafter_traits != nullptr && !c.drafter_traits->looks_up &&
              !c.drafter_behind.empty();
     },
     [](const Combination& c) {
       return c.list + ": '" + c.drafter + "' always drafts, so that '" + c.drafter_behind +
              "' behind it never would; put it last, or leave one of the two out";
     },
     {.drafter = "eagle",
      .drafter_traits = &kPlainHead,
      .drafter_behind = "ngram",
      .list = "speculative config"}},
};

// Whether no layer of the model sees as those of its MTP modules do.
bool lacks_module_layers(const Combination& c) {
  if (!c.drafts_by_modules || !c.modules_windowed.is_known()) return false;
  return c.modules_windowed ? c.has_windows.is_false() : c.model && !c.model->has_full_layers;
}

constexpr DrafterTraits kKvReader = {.reads_files = true, .reads_target_kv = true};

bool reads_target_kv(const Combination& c) {
  return c.drafter_traits != nullptr && c.drafter_traits->reads_target_kv;
}

std::string reads_kv_text(const Combination& c) {
  return "speculative config: method " + c.drafter + " attends to the target's keys and values, ";
}

constexpr AttentionDemand kAllWindowed = {
    .dtype = DType::kBF16, .head_dim = 128, .has_full_layers = false};

// What a drafter's model and its files allow.
const CompatRule kDraftModelRules[] = {
    {"MTP modules, layers of the model of which none sees as theirs",
     StatusCode::kUnsupported,
     lacks_module_layers,
     [](const Combination& c) {
       return c.files + ": MTP modules of " + c.architecture + " have " +
              (c.modules_windowed ? "a" : "no") +
              " sliding window, and no layer of the model is like that; use another drafter";
     },
     {.model = kAllWindowed,
      .architecture = "Model",
      .files = "the model",
      .modules_windowed = false,
      .drafts_by_modules = true}},
    {"a drafter that attends to the target's keys and values (`gemma4_assistant`), a KV cache of "
     "latents or compressed entries",
     StatusCode::kUnsupported,
     [](const Combination& c) { return reads_target_kv(c) && (c.latent || c.compressed); },
     [](const Combination& c) {
       return reads_kv_text(c) + "and the target keeps " +
              (c.latent ? "latents" : "compressed entries") + " instead; use another drafter";
     },
     {.latent = true, .drafter = "gemma4_assistant", .drafter_traits = &kKvReader}},
    {"a drafter that attends to the target's keys and values (`gemma4_assistant`), a window in all "
     "layers",
     StatusCode::kUnsupported,
     [](const Combination& c) {
       return reads_target_kv(c) && c.model && !c.model->has_full_layers;
     },
     [](const Combination& c) {
       return reads_kv_text(c) +
              "also of a layer that sees all positions, which it lacks; use another drafter";
     },
     {.model = kAllWindowed, .drafter = "gemma4_assistant", .drafter_traits = &kKvReader}},
    {"a drafter that attends to the target's keys and values (`gemma4_assistant`), "
     "`draft_tensor_parallel_size` 1 beside ranks",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return reads_target_kv(c) && c.num_draft_ranks == 1 && c.num_tensor_ranks() > 1;
     },
     [](const Combination& c) {
       return reads_kv_text(c) +
              "of which each tensor parallel rank has a part; leave draft_tensor_parallel_size 1 "
              "out";
     },
     {.drafter = "gemma4_assistant",
      .drafter_traits = &kKvReader,
      .num_draft_ranks = 1,
      .num_ranks = 2}},
    {"a drafter that attends to the target's keys and values (`gemma4_assistant`), "
     "`--pipeline-parallel-size` where another stage than the last has them",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.lends_elsewhere && c.num_stages != 1; },
     [](const Combination&) {
       return std::string(
           "the assistant attends to keys and values of a layer of the target that another "
           "pipeline stage has than the last one; use fewer stages (--pipeline-parallel-size 1)");
     },
     {.lends_elsewhere = true, .num_ranks = 2, .num_stages = 2}},
    {"`use_heterogeneous_vocab`, a drafter without a vocabulary of its own",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.drafter_traits != nullptr && !c.drafter_traits->maps_vocabulary &&
              c.other_vocabulary;
     },
     [](const Combination& c) {
       return "speculative config: use_heterogeneous_vocab is for draft models, which have a "
              "vocabulary of their own, and method " +
              c.drafter + " has the target's; leave it out";
     },
     {.drafter = "eagle", .drafter_traits = &kPlainHead, .other_vocabulary = true}},
    {"`use_heterogeneous_vocab`, no tokenizer",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.other_vocabulary &&
              (c.has_tokenizer.is_false() || c.draft_has_tokenizer.is_false());
     },
     [](const Combination& c) {
       return "speculative config: use_heterogeneous_vocab compares two vocabularies, but " +
              (c.has_tokenizer.is_false()
                   ? std::string("the target has no tokenizer (no tokenizer.json, or "
                                 "--skip-tokenizer-init)")
                   : c.files + " has no tokenizer.json") +
              "; leave the field out, or have both read";
     },
     {.files = "the draft model", .other_vocabulary = true, .draft_has_tokenizer = false}},
};

std::string branches_text(const std::string& what) {
  return "speculative config: num_branches " + what + "; leave it out";
}

// Other drafts beside those of a sequence, in slots that follow it.
const CompatRule kBranchRules[] = {
    {"`num_branches`, a model that keeps states of sequences (recurrent layers, DeepSeek V4)",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.branches && c.keeps_states; },
     [](const Combination& c) {
       return branches_text("copies keys and values, but layers of '" + c.architecture +
                            "' keep a state of each sequence, of which branches have none");
     },
     {.keeps_states = true, .architecture = "Model", .branches = true}},
    {"`num_branches`, `--pipeline-parallel-size`",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.branches && c.num_stages > 1; },
     [](const Combination&) {
       return branches_text(
           "is decided about where drafts are made, and earlier pipeline stages "
           "(--pipeline-parallel-size) do not hear of it");
     },
     {.branches = true, .num_ranks = 2, .num_stages = 2}},
    {"`num_branches`, `--enable-dbo`",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.branches && c.two_lanes; },
     [](const Combination&) {
       return branches_text("has no place in steps of two lanes (--enable-dbo)");
     },
     {.branches = true, .two_lanes = true}},
    {"`num_branches`, engines that share experts",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.branches && c.expert_parallel && c.num_engines > 1; },
     [](const Combination&) {
       return branches_text(
           "is an engine's own, and engines that share experts (--enable-expert-parallel) agree on "
           "the draft passes of each step without branches");
     },
     {.branches = true, .num_engines = 2, .expert_parallel = true}},
    {"`num_branches`, `rejection_sample_method` synthetic",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.branches && c.is_synthetic; },
     [](const Combination&) {
       return branches_text("brings nothing where drafts are accepted by given rates (synthetic)");
     },
     {.is_synthetic = true, .branches = true}},
};

}  // namespace

std::span<const CompatRule> branch_rules() { return kBranchRules; }
std::span<const CompatRule> draft_rules() { return kDraftRules; }
std::span<const CompatRule> draft_model_rules() { return kDraftModelRules; }

}  // namespace foretoken
