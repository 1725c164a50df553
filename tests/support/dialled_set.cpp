#include "support/dialled_set.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "dialled/dialled_chains.h"
#include "dialled/dialled_heads.h"
#include "draft/registry.h"

namespace foretoken::test {
namespace {

constexpr int kModules = 2;  // of mtp_chained

// Of a kind.
std::string method_of(const std::string& kind) {
  if (kind == "draft_model_shifted") return "draft_model";
  return kind.starts_with("mtp_") ? "mtp" : kind;
}

void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

}  // namespace

DialledSet::DialledSet(const DialledShape& target, double agreement)
    : shape_(target), agreement_(agreement) {
  expect_ok(write_dialled_checkpoint(folder_.file("target"), shape_));
  DialledShape own = shape_;
  own.num_mtp_modules = 1;
  own.mtp_agreement = agreement;
  expect_ok(write_dialled_checkpoint(folder_.file("mtp_own"), own));
  DialledShape draft = shape_;
  draft.num_layers = 1;
  draft.agreement = agreement;
  expect_ok(write_dialled_checkpoint(folder_.file("draft_model"), draft));
  draft.mask_id = 1;
  expect_ok(write_dialled_checkpoint(folder_.file("pard"), draft));
  draft.mask_id = -1;
  draft.id_shift = 7;
  expect_ok(write_dialled_checkpoint(folder_.file("draft_model_shifted"), draft));
  const auto write_head = [&](const std::string& name, HeadKind kind, int num_modules) {
    expect_ok(
        write_dialled_head(folder_.file(name), shape_,
                           {.kind = kind, .agreement = agreement, .num_modules = num_modules}));
  };
  write_head("eagle", HeadKind::kEagle, 1);
  write_head("eagle3", HeadKind::kEagle3, 1);
  write_head("dflash", HeadKind::kDflash, 1);
  write_head("dspark", HeadKind::kDspark, 1);
  write_head("domino", HeadKind::kDomino, 1);
  write_head("p_eagle", HeadKind::kPeagle, 1);
  write_head("mtp", HeadKind::kMtp, 1);
  write_head("mtp_chained", HeadKind::kMtp, kModules);
  using Kind = DialledChain::Kind;
  const std::pair<Kind, const char*> chains[] = {{Kind::kMedusa, "medusa"},
                                                 {Kind::kMlp, "mlp_speculator"},
                                                 {Kind::kAssistant, "gemma4_assistant"}};
  for (const auto& [kind, name] : chains) {
    expect_ok(write_dialled_chain(
        folder_.file(name), shape_,
        {.kind = kind, .agreement = agreement, .num_draft_tokens = kMaxDraftTokens}));
  }
}

const DialledSet& DialledSet::of(const std::string& architecture) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<DialledSet>> sets;
  std::lock_guard lock(mutex);
  std::unique_ptr<DialledSet>& set = sets[architecture];
  if (set == nullptr) {
    DialledShape shape;
    shape.architecture = architecture;
    set = std::make_unique<DialledSet>(shape);
  }
  return *set;
}

std::vector<std::string> DialledSet::kinds() {
  std::vector<std::string> names;
  for (const DrafterEntry& entry : drafters()) names.emplace_back(entry.name);
  for (const char* name : {"draft_model_shifted", "mtp_chained", "mtp_own"})
    names.emplace_back(name);
  return names;
}

std::string DialledSet::target(const std::string& kind) const {
  return folder_.file(kind == "mtp_own" ? "mtp_own" : "target");
}

int DialledSet::drafts_of(const std::string& kind, int wanted) {
  if (kind != "mtp_chained" || wanted <= kModules) return wanted;
  return (wanted + kModules - 1) / kModules * kModules;
}

const DrafterTraits& DialledSet::traits(const std::string& kind) {
  static const DrafterTraits none;
  const Result<const DrafterEntry*> entry = find_drafter(method_of(kind));
  return entry.ok() ? entry.value()->traits : none;
}

SpeculativeConfig DialledSet::drafter(const std::string& kind, int num_draft_tokens) const {
  SpeculativeConfig config;
  config.method = method_of(kind);
  config.num_speculative_tokens = drafts_of(kind, num_draft_tokens);
  config.length_policy = "fixed";
  if (kind == "ngram") {
    config.prompt_lookup_min = 1;
    config.prompt_lookup_max = 4;
  } else if (kind != "mtp_own" && !traits(kind).looks_up) {
    config.model = folder_.file(kind);
  }
  config.use_heterogeneous_vocab = kind == "draft_model_shifted";
  return config;
}

double DialledSet::acceptance(const std::string& kind, int wanted) const {
  if (traits(kind).looks_up) return 0;
  const int num_draft_tokens = drafts_of(kind, wanted);
  // Their later drafts look at no draft before.
  if (traits(kind).drafts_apart) return agreement_ / num_draft_tokens;
  double sum = 0;
  double chance = 1;
  for (int i = 0; i < num_draft_tokens; ++i) {
    chance *= agreement_;
    sum += chance;
  }
  return sum / num_draft_tokens;
}

}  // namespace foretoken::test
