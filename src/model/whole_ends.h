#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/queue.h"
#include "kernels/lora/lora_replace.h"
#include "model/weights/lora_adapter.h"

namespace foretoken {

// The embedding or the output matrix of a rank's part of a model, which an adapter may have whole.
struct WholeEnd {
  std::string module;  // as adapters name it
  bool is_table;       // rows are looked up; else they are what a row is multiplied by
  int64_t of_file;     // rows of the whole matrix, those that adapters may add among them
  int64_t first;       // of those that are here
  int64_t count;
  int64_t width;  // of a row
  float scale;    // of what comes of it
};

// A matrix of an adapter in its image.
struct WholeCopy {
  size_t end = 0;     // its index
  size_t offset = 0;  // of the image, in bytes
  size_t bytes = 0;
  int32_t count = 0;  // rows
};

// Room for such matrices in each place of a pool of adapters.
class WholeEnds {
 public:
  struct Limits {
    int32_t num_slots = 0;  // 0: there is no room
    // An output matrix may have fewer rows than the model's: logits of other ids are minus
    // infinity.
    bool takes_fewer_ids = true;
    bool head_has_bias =
        false;              // which would be an adapter's, too: there is no room for its matrix
    int32_t added_ids = 0;  // the last of the ends' rows, which the model has not
  };
  WholeEnds(Device& device, DType dtype, const Limits& limits)
      : dtype_(dtype),
        limits_(limits),
        arena_(device, MemoryKind::kDevice),
        pinned_(device, MemoryKind::kPinned) {}

  // ResourceExhausted when memory is short.
  Status take(std::vector<WholeEnd> ends);

  // Where the matrices of an adapter are to lie in an image, from `offset` on. Unsupported for
  // others than the model has or where there is no room, InvalidArgument for another width, with
  // the remedy. `is_checked`: another stage knows all, and those of other stages are passed over.
  Result<std::vector<WholeCopy>> place(const LoraAdapter& adapter, size_t offset,
                                       bool is_checked) const;
  // Rows of the embedding, or of the output matrix, that an adapter has whole; 0: it has none.
  int64_t num_ids(const LoraAdapter& adapter, bool is_table) const;
  void fill(const std::vector<WholeCopy>& copies, const LoraAdapter& adapter,
            std::byte* image) const;

  // Enqueues the copies that bring them into a place, which no step in flight uses.
  void load(Queue& queue, int32_t slot, const std::vector<WholeCopy>& copies,
            const std::byte* image);

  // Enqueues what takes rows of y from them; nothing where there is no room. All but matrices, n
  // and k of the arguments are set.
  void replace(Queue& queue, bool is_table, LoraReplaceArgs args) const;

  int64_t device_bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }

 private:
  const WholeMatrix* of_end(const LoraAdapter& adapter, const WholeEnd& end) const;
  Status check(const WholeMatrix& whole, const WholeEnd& end) const;
  size_t end_bytes(const WholeEnd& end) const;

  const DType dtype_;
  const Limits limits_;
  Arena arena_;
  Arena pinned_;
  std::vector<WholeEnd> ends_;
  std::vector<size_t> offsets_;  // in a place, by end
  size_t slot_bytes_ = 0;
  std::byte* slots_ = nullptr;         // [num_slots, slot_bytes]
  LoraWhole* table_ = nullptr;         // [num_slots, ends]
  LoraWhole* table_pinned_ = nullptr;  // the same, as it was last copied
};

}  // namespace foretoken
