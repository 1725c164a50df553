#include <algorithm>
#include <iterator>
#include <string>

#include "compat/rules.h"

// Drafters, beside models and beside each other.

namespace foretoken {
namespace {

// Fields of the engine and of a drafter's configuration.
std::vector<CompatRule> drafting_rules() {
  return {
      {"`--speculative-config`, `--max-num-batched-tokens 1`",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return c.drafts && c.max_rows == 1; },
       [](const Combination&) -> std::string {
         return "speculative config: --max-num-batched-tokens 1 leaves no row for a draft beside a "
                "sequence's own; raise it to 2 or more";
       },
       {.drafts = true, .max_rows = 1}},
      {"`--step-time-table` without `--speculative-config`",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return c.step_time_table && !c.drafts; },
       [](const Combination&) -> std::string {
         return "--step-time-table is for speculation; add --speculative-config or remove it";
       },
       {.step_time_table = true}},
      {"a field of `--speculative-config`, a method that has no use for it",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return !c.idle_field.empty(); },
       [](const Combination& c) {
         return "speculative config: " + c.idle_field + " does nothing with method " + c.drafter +
                ", " + c.idle_because + "; leave it out";
       },
       {.drafter = "ngram", .idle_field = "revision", .idle_because = "which has no files"}},
      {"`use_heterogeneous_vocab`, a method that does not map vocabularies",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return !c.translators.empty(); },
       [](const Combination& c) {
         return "speculative config: use_heterogeneous_vocab goes with method " + c.translators +
                " only, not with " + c.drafter + "; leave it out";
       },
       {.drafter = "eagle", .translators = "draft_model or pard"}},
  };
}

// Drafters beside each other and beside models.
std::vector<CompatRule> drafter_rules() {
  return {
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
       [](const Combination& c) { return !c.drafter_behind.empty(); },
       [](const Combination& c) {
         return c.list + ": '" + c.drafter + "' always drafts, so that '" + c.drafter_behind +
                "' behind it never would; put it last, or leave one of the two out";
       },
       {.drafter = "eagle", .drafter_behind = "ngram", .list = "speculative config"}},
      {"a drafter of one pass (`pard`), a draft model with states",
       StatusCode::kUnsupported,
       [](const Combination& c) { return c.drafts_at_once && c.states_of == "a draft model"; },
       [](const Combination& c) {
         return "speculative config: the layers of " + c.files +
                " keep states of sequences, which drafts in one pass would spoil; use method "
                "draft_model";
       },
       {.files = "a draft model", .states_of = "a draft model", .drafts_at_once = true}},
      {"`quantization` of a drafter, `medusa` or `mlp_speculator`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return !c.unrounded.empty(); },
       [](const Combination& c) {
         return "speculative config: quantization " + c.unrounded +
                " does not round the weights of method " + c.drafter + "; leave it out";
       },
       {.drafter = "medusa", .unrounded = "fp8"}},
  };
}

}  // namespace

std::vector<CompatRule> draft_rules() {
  std::vector<CompatRule> rules = drafting_rules();
  std::vector<CompatRule> more = drafter_rules();
  std::move(more.begin(), more.end(), std::back_inserter(rules));
  return rules;
}

}  // namespace foretoken
