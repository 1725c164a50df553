#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/dtype.h"

namespace foretoken {

// Shape of a dialled checkpoint: a model whose greedy target follows a fixed permutation of tokens,
// while every layer computes something that depends on the context.
struct DialledShape {
  std::string architecture = "LlamaForCausalLM";  // one of dialled_architectures()
  int32_t num_layers = 2;
  int32_t hidden_size = 64;
  int32_t num_heads = 4;
  int32_t num_kv_heads = 2;
  int32_t head_dim = 16;
  int32_t vocab_size = 512;  // ids 0 <unk> and 1 </s> lie outside the cycle
  int32_t intermediate_size = 128;
  int32_t max_position_embeddings = 8192;
  DType dtype = DType::kF32;  // kF32 or kBF16
  uint64_t seed = 1;          // of the permutation
  // Share of ids whose successor is that of the permutation; the others follow one another's. A
  // second checkpoint of the same seed and a smaller share drafts for the first at that rate.
  double agreement = 1;
  // MTP modules in the same files (dialled/dialled_heads.h), and the share of ids that they agree
  // on.
  int32_t num_mtp_modules = 0;
  double mtp_agreement = 0.8;
  // The words stand at ids that are shifted by so many, and the tokenizer spells them as
  // SentencePiece does: a draft model with another vocabulary.
  int32_t id_shift = 0;
  // Of a draft model: the mask behind which it is said to draft in parallel; negative: none. What
  // it drafts there is what follows the mask.
  int32_t mask_id = -1;
  // Of architectures that are mixtures of experts: the experts of a layer, how many of them a row
  // goes through, and their width (Mixtral's is intermediate_size). DeepSeek's lie in groups of
  // two.
  int32_t num_experts = 8;
  int32_t experts_per_token = 3;
  int32_t expert_inner = 128;
  // Of latent attention: head_dim is that of keys without positions, and of values.
  int32_t q_rank = 48;
  int32_t kv_rank = 32;
  int32_t rope_dim = 8;
};

// Architectures with every kind of window, position, norm, mixture and attention that steps and
// drafters meet.
std::vector<std::string> dialled_architectures();

// The order of tokens that a dialled target produces: one cycle over ids 2 .. vocab_size - 1.
class DialledCycle {
 public:
  DialledCycle(int32_t vocab_size, uint64_t seed);
  // The id after `id`; id must lie in the cycle.
  int32_t next(int32_t id) const { return next_[static_cast<size_t>(id)]; }
  int32_t length() const { return static_cast<int32_t>(order_.size()); }
  // The id at a place of the cycle; places wrap around.
  int32_t at(int64_t place) const {
    return order_[static_cast<size_t>(place % static_cast<int64_t>(order_.size()))];
  }

 private:
  std::vector<int32_t> order_;
  std::vector<int32_t> next_;
};

// What the target with this shape emits after each id (index: id); below agreement 1, or with
// shifted ids, it differs from the cycle. Entries of ids 0 and 1 are -1.
std::vector<int32_t> dialled_successors(const DialledShape& shape);

// Writes config.json, generation_config.json, model.safetensors, tokenizer.json and
// tokenizer_config.json (ids as the words "t2", "t3", ...) into `folder`, which is created.
// InvalidArgument names the size that does not work, or the file that cannot be written.
Status write_dialled_checkpoint(const std::string& folder, const DialledShape& shape);

// What a prompt for n-gram drafts is made for.
struct NgramDial {
  double acceptance = 0.7;       // wanted share of accepted drafts, 0.3 to 0.95
  int32_t num_output = 64;       // tokens that will be generated
  int32_t num_draft_tokens = 4;  // drafts a step
  int32_t min_n = 1;
  int32_t max_n = 3;
  uint64_t seed = 1;
};

struct DialledPrompt {
  std::vector<int32_t> ids;
  std::vector<int32_t> expected_output;  // num_output ids
  int64_t num_drafted = 0;  // by the n-gram rule of kernels/draft/ngram.h, one sequence
  int64_t num_accepted = 0;
  double acceptance() const {
    return num_drafted > 0 ? static_cast<double>(num_accepted) / static_cast<double>(num_drafted)
                           : 0;
  }
};

// A prompt of shuffled short pieces of the cycle: at the end of a piece the text goes on wrongly,
// so that drafts are accepted at about the dialled rate. InvalidArgument when the rate is outside
// 0.3 to 0.95 or the cycle is shorter than the output.
Result<DialledPrompt> make_dialled_prompt(const DialledCycle& cycle, const NgramDial& dial);

// The text of ids in a dialled tokenizer: " t17 t5".
std::string dialled_text(const std::vector<int32_t>& ids);

}  // namespace foretoken
