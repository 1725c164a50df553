#pragma once
#include <foretoken/config.h>

#include <string>
#include <vector>

#include "compat/drafter_traits.h"
#include "dialled/dialled_writer.h"
#include "support/scratch_folder.h"

namespace foretoken::test {

// A dialled target with a drafter of every kind, in a folder of its own that is removed at the end
// of the process.
class DialledSet {
 public:
  // `agreement`: share of ids after which a drafter proposes what the target emits.
  explicit DialledSet(const DialledShape& target, double agreement = 0.8);

  // That of the architecture's default shape, written when it is first asked for.
  static const DialledSet& of(const std::string& architecture = "LlamaForCausalLM");

  // Every method of the registry, and kinds that differ in their files: draft_model_shifted
  // (another vocabulary), mtp_chained (two modules, used beyond their number), mtp_own (in the
  // target's own files).
  static std::vector<std::string> kinds();

  // The target's folder for a drafter of that kind.
  std::string target(const std::string& kind = "") const;
  const DialledShape& shape() const { return shape_; }
  double agreement() const { return agreement_; }
  // Drafts of a step: so many, but modules that are used again want a multiple of their number.
  static int drafts_of(const std::string& kind, int wanted);
  // Of its method; empty where it is none. One that looks texts up has no dial but prompts.
  static const DrafterTraits& traits(const std::string& kind);
  // drafts_of(kind, num_draft_tokens) drafts, always as many as there can be.
  SpeculativeConfig drafter(const std::string& kind, int num_draft_tokens) const;
  // Share of the drafts of that kind that a fixed number of them is accepted with, as dialled; 0
  // where it looks texts up.
  double acceptance(const std::string& kind, int num_draft_tokens) const;

 private:
  ScratchFolder folder_;
  DialledShape shape_;
  double agreement_;
};

}  // namespace foretoken::test
