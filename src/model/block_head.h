#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/device.h"
#include "kernels/draft/draft_tensors.h"
#include "model/draft_head.h"
#include "model/layer/linear.h"

namespace foretoken {

// A loaded head that drafts a block at once (DFlash, Chen et al. 2026). Its layers keep keys and
// values of two kinds of rows. Of each position of the text, once the target has computed it: those
// of a projection of the target's states (`catch_up`); the layers compute nothing else of it. Of a
// block, which is the last known token and masks: those of the layers' own rows (`forward`). Entry
// i stands for position i - 1, as in DraftHead. Weights and scratch are taken at load time; the
// functions below only enqueue ops and may be captured. One queue at a time.
class BlockHead {
 public:
  virtual ~BlockHead() = default;
  virtual const DraftHeadConfig& config() const = 0;
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t scratch_bytes() const = 0;
  virtual KvGroupSpec kv_group() const = 0;

  // Enqueues the entries of the live rows: row r's of row tensors.source[r] of `taps`.
  virtual void catch_up(Queue& queue, const DraftTensors& tensors, const BatchState& batch,
                        const KvCache& cache, const DraftHead::Source& taps, int32_t max_rows) = 0;
  // Enqueues the layers for the live rows of blocks, whose entries are written too. A row sees
  // entries 1 .. last_seen[r], in causal layers those up to its own.
  virtual void forward(Queue& queue, const DraftTensors& tensors, const int32_t* last_seen,
                       const BatchState& batch, const KvCache& cache, int32_t max_rows) = 0;
  // Enqueues what the output matrix reads for the logits rows of the forward before: [max_rows,
  // hidden] of config().layer.dtype.
  virtual const void* head_input(Queue& queue, const DraftTensors& tensors, int32_t max_rows) = 0;
  virtual DraftHead::Head head() const = 0;
  // The recurrent state of the tokens before a draft (Domino). `features` reads a row and that
  // state, and is activated.
  struct Gru {
    const Linear* input = nullptr;     // [3 size, embedding's columns], as of the op gru_step
    const Linear* state = nullptr;     // [3 size, size]
    const Linear* features = nullptr;  // [rank, hidden and size]
  };
  // What logits and confidences depend on beside the rows (DSpark, Domino); weightless where they
  // do not. The token before a draft is embedded, and that or, with a Gru, the features of all
  // tokens before it are what `output` reads.
  struct Markov {
    RowTable embedding;                  // [vocab, rank, or hidden before a Gru]
    const Linear* output = nullptr;      // [rows, rank], added to the output matrix' products
    const Linear* confidence = nullptr;  // [1, hidden and, where it reads them, rank]
    Gru gru{};
    int32_t plain_drafts = 0;   // so many of the first drafts have nothing added
    float embedding_scale = 1;  // of what a Gru reads
  };
  virtual Markov markov() const = 0;
};

// `target` lends its embedding and, where the head has none, its output matrix; both must outlive
// the head. `config` is of a kind that drafts blocks.
Result<std::unique_ptr<BlockHead>> load_block_head(Device& device, const std::string& folder,
                                                   const DraftHeadConfig& config, Model& target,
                                                   const DraftHeadOptions& options);

}  // namespace foretoken
