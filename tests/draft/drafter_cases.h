#pragma once
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "dialled/dialled_chains.h"
#include "dialled/dialled_heads.h"
#include "draft/draft_rig.h"

namespace foretoken::test {

// The small dialled target of these tests. Ids follow its cycle whatever stands before them, while
// every layer reads the context.
DialledShape dialled_target(DType dtype = DType::kF32,
                            const std::string& architecture = "LlamaForCausalLM");

// Folders of dialled models, written once a process and removed at its end.
std::string dialled_folder(const DialledShape& shape);
std::string dialled_head_folder(const DialledShape& target, const DialledHead& head);
std::string dialled_chain_folder(const DialledShape& target, const DialledChain& chain);

// A drafter on a dialled target.
struct DrafterCase {
  std::string name;
  std::string method = "draft_model";
  DType dtype = DType::kF32;
  std::string architecture = "LlamaForCausalLM";
  std::string draft_architecture = "LlamaForCausalLM";  // draft_model
  int num_modules = 1;                                  // mtp
  int num_layers = 1;                                   // of EAGLE heads
  int clusters = 0;                                     // of an assistant's ids
  bool probabilistic = false;
  int draft_vocab_size = 0;
  double agreement = 0.75;
  KvFormat kv_format = KvFormat::kPlain;

  std::string target() const { return dialled_folder(dialled_target(dtype, architecture)); }
  SpeculativeConfig config(int num_draft_tokens) const;
  // First position that has an entry in every layer of the drafter's KV.
  int first_entry() const { return method == "draft_model" || method == "pard" ? 0 : num_modules; }
};

inline void PrintTo(const DrafterCase& drafter, std::ostream* out) { *out << drafter.name; }

// One of each drafter, and variants of types, architectures and sampling.
std::vector<DrafterCase> drafter_cases();

// What a drafter proposes behind given ids when everything is computed from nothing, in one pass.
class Reference {
 public:
  Reference(const std::string& target, const SpeculativeConfig& config, const SlotParams& params,
            KvFormat kv_format = KvFormat::kPlain);

  // The last id need not be what the target samples.
  const std::vector<int32_t>& drafts(const std::vector<int32_t>& ids, int limit);
  // Keys and values of the drafter's entry at each position of the ids, and of the target's.
  struct Entries {
    std::vector<std::vector<std::byte>> drafter;
    std::vector<std::vector<std::byte>> target;  // without the last one
  };
  Entries entries(const std::vector<int32_t>& ids);

 private:
  RigOutput run(const std::vector<int32_t>& ids, int limit);

  DraftRig rig_;
  std::map<std::pair<std::vector<int32_t>, int>, std::vector<int32_t>> known_;
};

// The ids behind `id` in the cycle of the dialled target: `id` first.
std::vector<int32_t> cycle_from(int64_t place, int count);

// Whether the output continues a sequence as the dialled target does.
void expect_follows_cycle(const std::vector<int32_t>& ids, int prompt_len);

}  // namespace foretoken::test
