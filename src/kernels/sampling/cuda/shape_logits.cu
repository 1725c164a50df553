#include "kernels/sampling/shape_logits.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/logits_row.h"
#include "kernels/sampling/shape_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kCounted = 2048;  // output tokens counted at once
constexpr int kPlaces = 2 * kCounted;

// Occurrences of the ids among some output tokens: a hash table with linear probing. Or the bad
// words, which come before.
union Scratch {
  struct {
    int32_t ids[kPlaces];  // -1: free
    int32_t counts[kPlaces];
  } table;
  int32_t bad_words[kMaxBadWordInts];
};

// One logits row on its way through the rules; the whole block works on it.
struct Row {
  const BatchState& batch;
  const SlotParams& params;
  int slot;
  int history_len;
  float* logits;
  int vocab;

  __device__ int32_t history(int position) const { return history_id(batch, slot, position); }
  __device__ bool holds(int32_t id) const { return id >= 0 && id < vocab; }
};

__device__ void mask_disallowed(const Row& row) {
  const SlotLists& lists = row.batch.lists;
  const uint32_t* allowed =
      lists.allowed_ids + int64_t{text_slot(row.batch, row.slot)} * lists.mask_words;
#pragma unroll 4
  for (int id = threadIdx.x; id < row.vocab; id += kThreads) {
    if ((allowed[id / 32] >> (id % 32) & 1u) == 0) row.logits[id] = -INFINITY;
  }
}

// Whether the output ends in the first `count` ids of `word`.
__device__ bool output_ends_in(const Row& row, const int32_t* word, int count) {
  if (count > max(row.history_len - row.params.prompt_len, 0)) return false;
  for (int i = 0; i < count; ++i) {
    if (row.history(row.history_len - count + i) != word[i]) return false;
  }
  return true;
}

// Every thread walks along the list; word n is looked at by thread n mod kThreads.
__device__ void mask_bad_words(const Row& row, int32_t* ints) {
  const int count_all = row.params.num_bad_word_ints;
  const int32_t* list =
      row.batch.lists.bad_words + int64_t{text_slot(row.batch, row.slot)} * kMaxBadWordInts;
  for (int i = threadIdx.x; i < count_all; i += kThreads) ints[i] = list[i];
  __syncthreads();
  int index = 0;
  for (int at = 0; at < count_all; ++index) {
    const int count = ints[at];
    const int32_t* word = ints + at + 1;
    if (count <= 0 || count > count_all - at - 1) break;
    at += 1 + count;
    if (index % kThreads != threadIdx.x) continue;
    const int32_t last = word[count - 1];
    if (row.holds(last) && output_ends_in(row, word, count - 1)) row.logits[last] = -INFINITY;
  }
}

__device__ void add_biases(const Row& row) {
  const LogitBias* biases =
      row.batch.lists.logit_bias + int64_t{text_slot(row.batch, row.slot)} * kMaxLogitBias;
  for (int i = threadIdx.x; i < row.params.num_logit_bias; i += kThreads) {
    const LogitBias bias = biases[i];
    if (row.holds(bias.id)) {
      row.logits[bias.id] = sample_math::add(row.logits[bias.id], bias.bias);
    }
  }
}

// Sets the id's bit; whether it was clear. One thread of the block gets true for each id.
__device__ bool is_first(uint32_t* seen, int32_t id) {
  const uint32_t bit = 1u << (id % 32);
  return (atomicOr(&seen[id / 32], bit) & bit) == 0;
}

__device__ void clear_seen(const Row& row, uint32_t* seen) {
  for (int i = threadIdx.x; i < row.batch.lists.mask_words; i += kThreads) seen[i] = 0;
  __syncthreads();
}

__device__ void penalise_repetition(const Row& row, uint32_t* seen) {
  clear_seen(row, seen);
  for (int position = threadIdx.x; position < row.history_len; position += kThreads) {
    const int32_t id = row.history(position);
    if (!row.holds(id) || !is_first(seen, id)) continue;
    row.logits[id] = shape_math::repeated(row.logits[id], row.params.repetition_penalty);
  }
}

__device__ void count_id(Scratch& scratch, int32_t id) {
  uint32_t place = static_cast<uint32_t>(id) * 2654435769u % kPlaces;
  for (;;) {
    const int32_t holder = atomicCAS(&scratch.table.ids[place], -1, id);
    if (holder == -1 || holder == id) break;
    place = (place + 1) % kPlaces;
  }
  atomicAdd(&scratch.table.counts[place], 1);
}

// Equal ids are counted first, so that one thread does an id's subtractions, one after the other.
__device__ void penalise_output(const Row& row, uint32_t* seen, Scratch& scratch) {
  clear_seen(row, seen);
  for (int begin = row.params.prompt_len; begin < row.history_len; begin += kCounted) {
    for (int i = threadIdx.x; i < kPlaces; i += kThreads) {
      scratch.table.ids[i] = -1;
      scratch.table.counts[i] = 0;
    }
    __syncthreads();
    const int end = min(begin + kCounted, row.history_len);
    for (int position = begin + threadIdx.x; position < end; position += kThreads) {
      const int32_t id = row.history(position);
      if (row.holds(id)) count_id(scratch, id);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kPlaces; i += kThreads) {
      const int32_t id = scratch.table.ids[i];
      if (id < 0) continue;
      float logit = row.logits[id];
      if (is_first(seen, id)) {
        logit = shape_math::lowered(logit, row.params.presence_penalty, 1);
      }
      row.logits[id] =
          shape_math::lowered(logit, row.params.frequency_penalty, scratch.table.counts[i]);
    }
    __syncthreads();
  }
}

// One block: one logits row.
__global__ void __launch_bounds__(kThreads) shape_logits_kernel(ShapeLogitsArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x;
  if (i >= live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const LogitsRow at = logits_row(args.tensors, args.batch.slots, args.row_offset + i);
  const SlotParams& params = args.batch.params[at.slot];
  if (at.scored || !shapes_logits(params)) return;
  __shared__ Scratch scratch;
  const Row row{args.batch, params, at.slot, at.position + 1, args.logits + int64_t{i} * args.vocab,
                args.vocab};
  const int mask_words = args.batch.lists.mask_words;
  uint32_t* seen = args.seen + int64_t{i} * 2 * mask_words;
  if (params.has_allowed_ids != 0) mask_disallowed(row);
  if (params.num_bad_word_ints > 0) mask_bad_words(row, scratch.bad_words);
  __syncthreads();
  if (params.num_logit_bias > 0) add_biases(row);
  __syncthreads();
  if (params.repetition_penalty != 1.0f) penalise_repetition(row, seen);
  __syncthreads();
  if (params.presence_penalty != 0.0f || params.frequency_penalty != 0.0f) {
    penalise_output(row, seen + mask_words, scratch);
  }
}

}  // namespace

void launch_shape_logits(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ShapeLogitsArgs>(packed);
  launch_kernel(shape_logits_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
