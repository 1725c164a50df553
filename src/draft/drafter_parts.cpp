#include "draft/drafter_parts.h"

#include <algorithm>

namespace foretoken {
namespace {

// A field that a method has no use for, and why; an empty name: there is none.
struct IdleField {
  std::string name;
  std::string because;
};

// Of a drafter that reads no files, what is about them.
IdleField field_of_files(const SpeculativeConfig& config, const DrafterEntry& entry) {
  const Result<const DrafterEntry*> named = find_drafter(config.model);
  const bool names_itself = named.ok() && named.value() == &entry;
  if (!config.model.empty() && !names_itself) {
    return {"model", "which reads the sequence's own tokens"};
  }
  if (config.draft_vocab_size != 0) return {"draft_vocab_size", "which has no output matrix"};
  if (!config.draft_vocab_file.empty()) return {"draft_vocab_file", "which has no output matrix"};
  if (config.draft_sample_method == "probabilistic") {
    return {"draft_sample_method " + config.draft_sample_method, "which has no distribution"};
  }
  if (!config.revision.empty()) return {"revision", "which has no files"};
  if (!config.quantization.empty()) return {"quantization", "which has no weights"};
  return {};
}

IdleField idle_field_of(const SpeculativeConfig& config, const DrafterEntry& entry) {
  if (!entry.traits.reads_files) {
    IdleField found = field_of_files(config, entry);
    if (!found.name.empty()) return found;
  }
  if (config.num_branches != 0 && !entry.traits.branches) {
    return {"num_branches", "whose drafts are not chosen one after the other from logits"};
  }
  for (const DrafterEntry& other : drafters()) {
    if (&other == &entry) continue;
    for (const MethodField& field : other.fields) {
      if (!is_given(config, field)) continue;
      return {field.name, "it belongs to method " + std::string(other.name)};
    }
  }
  return {};
}

bool equal(const DraftSchedule& a, const DraftSchedule& b) {
  return a.first == b.first && a.last == b.last &&
         a.num_speculative_tokens == b.num_speculative_tokens;
}

// Empty where both configurations have the same engine-wide fields, else the name of the first one
// that differs.
const char* disagreement(const SpeculativeConfig& a, const SpeculativeConfig& b) {
  if (a.length_policy != b.length_policy) return "length_policy";
  if (!std::ranges::equal(a.num_speculative_tokens_per_batch_size,
                          b.num_speculative_tokens_per_batch_size, equal)) {
    return "num_speculative_tokens_per_batch_size";
  }
  if (a.rejection_sample_method != b.rejection_sample_method) return "rejection_sample_method";
  if (a.synthetic_acceptance_rates != b.synthetic_acceptance_rates) {
    return "synthetic_acceptance_rates";
  }
  if (a.synthetic_acceptance_length != b.synthetic_acceptance_length) {
    return "synthetic_acceptance_length";
  }
  return "";
}

}  // namespace

void add_drafter(const SpeculativeConfig& config, const DrafterEntry& entry, Combination* c) {
  c->drafts = true;
  c->drafter = entry.name;
  c->drafter_traits = &entry.traits;
  c->drafts_by_modules = entry.traits.drafts_by_modules;
  c->other_vocabulary = config.use_heterogeneous_vocab;
  c->num_draft_ranks = config.draft_tensor_parallel_size;
  c->branches = config.num_branches > 0;
  const IdleField idle = idle_field_of(config, entry);
  c->idle_field = idle.name;
  c->idle_because = idle.because;
}

Status check_combination(const Combination& known, const std::vector<SpeculativeConfig>& drafters) {
  FT_RETURN_IF_ERROR(compat(known));
  for (size_t i = 0; i < drafters.size(); ++i) {
    Combination c = known;
    if (i > 0) c.unlike_first = disagreement(drafters.front(), drafters[i]);
    const Result<const DrafterEntry*> entry = find_drafter(drafters[i].method);
    if (entry.ok()) add_drafter(drafters[i], *entry.value(), &c);
    if (drafters[i].leads && i + 1 < drafters.size()) {
      c.list = "speculative config";
      c.drafter_behind = drafters[i + 1].method;
    }
    FT_RETURN_IF_ERROR(compat(c));
  }
  return {};
}

}  // namespace foretoken
