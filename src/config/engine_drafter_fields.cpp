#include <algorithm>
#include <sstream>
#include <type_traits>

#include "config/engine_drafter_fields.h"

namespace foretoken {
namespace drafter_table {

using S = SpeculativeConfig;
using enum FieldAgreement;

constexpr bool kEngineWide = true;
constexpr bool kOfFiles = true;

constexpr DrafterField kTable[] = {
    {"method", &S::method,
     "how drafts are made, as foretoken inspect lists it; without it the model says"},
    {"model", &S::model, "folder or Hub id of the draft model or head", "", false, kModelConfig},
    {"revision", &S::revision, "branch, tag or commit of a Hub id"},
    {"quantization", &S::quantization,
     "of the drafter's own files: their method, or fp8, which rounds weights that are not "
     "quantised"},
    {"num_speculative_tokens", &S::num_speculative_tokens, "drafts of a step at most: 1 to 64", "",
     false, kValue, !kOfFiles},
    {"parallel_drafting", {}, "vLLM's word for the method pard, and beside eagle3 for p_eagle"},
    {"max_model_len", &S::max_model_len,
     "tokens up to which is drafted; without it as the drafter's model allows", "", false, kValue,
     !kOfFiles},
    {"draft_sample_method", &S::draft_sample_method,
     "greedy, or probabilistic with the target's noise", "greedy|probabilistic"},
    {"use_heterogeneous_vocab", &S::use_heterogeneous_vocab,
     "draft_model: another vocabulary, through common tokens"},
    {"draft_tensor_parallel_size", &S::draft_tensor_parallel_size,
     "ranks of the drafter: those of the target, or 1"},
    {"draft_vocab_size", &S::draft_vocab_size, "so many of the likeliest tokens are drafted alone"},
    {"draft_vocab_file", &S::draft_vocab_file,
     "their ids, best first; without it draft_vocab.txt of the target", "", false, kFileText},
    {"length_policy", &S::length_policy, "adaptive: as many drafts as pay; fixed; off",
     "adaptive|fixed|off", kEngineWide},
    {"num_branches", &S::num_branches,
     "trees: other drafts beside those of sequences, in a step at most: 0 to 32"},
    {"num_speculative_tokens_per_batch_size", &S::num_speculative_tokens_per_batch_size,
     "[[first, last, K], ...] by the number of sequences, instead of a policy", "", kEngineWide},
    // Rules that are not built are known, so that the engine can say why.
    {"rejection_sample_method", &S::rejection_sample_method,
     "coupled; synthetic accepts by given rates, for measurements",
     "coupled|synthetic|standard|strict|probabilistic|block|fly", kEngineWide},
    {"synthetic_acceptance_rates", &S::synthetic_acceptance_rates,
     "a rate for each position, none above the one before", "", kEngineWide},
    {"synthetic_acceptance_length", &S::synthetic_acceptance_length,
     "the mean length instead: 1 to K + 1", "", kEngineWide},
    {"enable_adaptive_verification", {}, "what the length policy adaptive does", "", kEngineWide},
    {"disable_padded_drafter_batch",
     {},
     "always holds: batches of drafters are never padded",
     "",
     false,
     kValue,
     !kOfFiles},
    {"disable_eagle_block_drop", {}, "always holds: no cached block is dropped"},
    {"use_local_argmax_reduction", {}, "always holds: greedy drafts never write logits"},
};

constexpr const char* kFly = "belongs to the lossy rule fly, which changes the text; remove it";
constexpr const char* kTree =
    "asks for a tree of one shape, and trees follow the chances of drafts here; remove it and give "
    "num_branches, how many leaves it has beside the first";
constexpr const char* kGone = "is gone from vLLM too and has no effect; remove it";
constexpr const char* kTypical = "belongs to typical acceptance, which changes the text; remove it";
constexpr const char* kInternal = "is set by vLLM itself, not by its users; remove it";

constexpr RefusedDrafterField kRefused[] = {
    {"acceptance_method", "\"rejection_sampler\"",
     "is gone from vLLM too, and typical acceptance changes the text; remove it"},
    {"attention_backend", "\"auto\"", "is the engine's for all models, --attention-backend", true},
    {"code_revision", "null", "chooses Python code of a repository, which is never run; remove it"},
    {"disable_by_batch_size", "null",
     "is gone from vLLM too; remove it: the adaptive length policy stops drafting where it does "
     "not "
     "pay, or give num_speculative_tokens_per_batch_size"},
    {"disable_lookahead_block_hashes", "false",
     "gives up exact draft entries of cached blocks, which cost nothing here; remove it"},
    {"disable_logprobs", "null", kGone},
    {"disable_mqa_scorer", "null", kGone},
    {"draft_lm_head_quantization", "null", "is not built yet; remove it"},
    {"draft_load_config", "null",
     "is not read: a drafter is loaded as the target is; remove it and give --load-format"},
    {"draft_model_config", "null", kInternal},
    {"draft_parallel_config", "null", kInternal},
    {"dspark_draft_topk", "null", "is not built yet; remove it"},
    {"enforce_eager", "false", "is the engine's for all models, --enforce-eager", true},
    {"fly_entropy_threshold", "null", kFly},
    {"fly_entropy_top_k", "null", kFly},
    {"fly_window_size", "null", kFly},
    {"index_share_for_mtp_iteration", "false",
     "is not built yet: a module chooses positions anew in each pass; remove it"},
    {"kv_cache_dtype", "\"auto\"",
     "is not built yet: a drafter's cache is as --kv-cache-dtype says; remove it"},
    {"moe_backend", "\"auto\"",
     "chooses kernels for mixtures of experts, of which there is one kind", true},
    {"posterior_alpha", "null", kTypical},
    {"posterior_threshold", "null", kTypical},
    {"speculative_token_tree", "null", kTree},
    {"synthetic_acceptance_rate", "null",
     "is an old name; give a rate for each position in synthetic_acceptance_rates"},
    {"target_model_config", "null", kInternal},
    {"target_parallel_config", "null", kInternal},
    {"tensor_parallel_size", "null", "is no field of a drafter in vLLM either; remove it"},
    {"token_tree", "null", kTree},
};

std::string text_of(bool value) { return value ? "1" : "0"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const DraftSchedule& part) {
  return std::to_string(part.first) + "-" + std::to_string(part.last) + ":" +
         std::to_string(part.num_speculative_tokens);
}
template <class Number>
  requires std::is_arithmetic_v<Number>
std::string text_of(Number value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
template <class Value>
std::string text_of(const std::vector<Value>& values) {
  std::string list;
  for (const Value& value : values) list += (list.empty() ? "" : " ") + text_of(value);
  return list;
}

}  // namespace drafter_table

std::span<const DrafterField> drafter_fields() { return drafter_table::kTable; }

std::span<const RefusedDrafterField> refused_drafter_fields() { return drafter_table::kRefused; }

const DrafterField* find_drafter_field(std::string_view name) {
  const std::span<const DrafterField> fields = drafter_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const DrafterField& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::string drafter_field_text(const DrafterField& field, const SpeculativeConfig& drafter) {
  return std::visit(
      [&](auto member) -> std::string {
        if constexpr (std::is_same_v<decltype(member), std::monostate>) {
          return {};
        } else {
          return drafter_table::text_of(drafter.*member);
        }
      },
      field.member);
}

}  // namespace foretoken
