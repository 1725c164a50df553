#include "kernels/linear/linear_attention.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cpu {
namespace {

// Columns of S that a task takes through all rows: as many rows of S lie in the first cache, and a
// row's sums stay in registers.
constexpr int kSlabOctets = 4;
constexpr int kSlab = kSlabOctets * kOctet;

// Of one task: a slab of one head's S. Columns behind the last one are zero.
struct StateSlab {
  const LinearAttentionArgs& args;
  int head;
  int key_head;
  int column;  // the first
  int count;   // of columns
  alignas(64) float s[kMaxLinearKeyDim * kSlab];
};

// What a row does to a slab.
struct SlabUpdate {
  const float* k;      // [key_dim]
  const float* decay;  // of the head, or with channel_decay [key_dim]
  float scale;
  alignas(64) float v[kSlab];
};

float* state_of(const StateSlab& slab, int slot) {
  const LinearShape& shape = slab.args.shape;
  return slab.args.states + slot * shape.state_size() +
         int64_t{slab.head} * shape.key_dim * shape.value_dim + slab.column;
}

void load_state(StateSlab& slab, int slot, bool is_zero) {
  const LinearShape& shape = slab.args.shape;
  if (is_zero || slab.count < kSlab) std::fill_n(slab.s, shape.key_dim * kSlab, 0.0f);
  if (is_zero) return;
  const float* from = state_of(slab, slot);
  for (int i = 0; i < shape.key_dim; ++i) {
    std::copy_n(from + int64_t{i} * shape.value_dim, slab.count, slab.s + i * kSlab);
  }
}

void store_state(const StateSlab& slab, int slot) {
  const LinearShape& shape = slab.args.shape;
  float* to = state_of(slab, slot);
  for (int i = 0; i < shape.key_dim; ++i) {
    std::copy_n(slab.s + i * kSlab, slab.count, to + int64_t{i} * shape.value_dim);
  }
}

// `packed`: a row of LinearShape from its keys on.
SlabUpdate update_of(const StateSlab& slab, const float* packed) {
  const LinearShape& shape = slab.args.shape;
  const float* base = packed - shape.k_offset();
  SlabUpdate update;
  update.k = packed + slab.key_head * shape.key_dim;
  update.decay =
      base + shape.decay_offset() + slab.head * (shape.channel_decay ? shape.key_dim : 1);
  update.scale = shape.scaled ? base[shape.scale_offset() + slab.head] : 1.0f;
  std::fill_n(update.v, kSlab, 0.0f);
  std::copy_n(base + shape.v_offset() + slab.head * shape.value_dim + slab.column, slab.count,
              update.v);
  return update;
}

FT_INLINE void load_columns(Octet (&to)[kSlabOctets], const float* from) {
  for (int c = 0; c < kSlabOctets; ++c) load(to[c], from + c * kOctet);
}

// u = scale * (v - S^T (decay * k)) with delta, else scale * v.
template <bool kDelta, bool kChannels>
FT_INLINE void make_update(Octet (&u)[kSlabOctets], const StateSlab& slab,
                           const SlabUpdate& update) {
  Octet sums[kSlabOctets] = {};
  const int key_dim = slab.args.shape.key_dim;
  for (int i = 0; kDelta && i < key_dim; ++i) {
    const float k = kChannels ? update.decay[i] * update.k[i] : update.k[i];
    Octet s[kSlabOctets];
    load_columns(s, slab.s + i * kSlab);
    for (int c = 0; c < kSlabOctets; ++c) sums[c] += s[c] * k;
  }
  load_columns(u, update.v);
  for (int c = 0; c < kSlabOctets; ++c) {
    if (kDelta) u[c] -= kChannels ? sums[c] : sums[c] * update.decay[0];
    u[c] *= update.scale;
  }
}

// S = decay * S + k (x) u, and where there is a query out = S^T q.
template <bool kDelta, bool kChannels>
FT_INLINE void apply_row(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  Octet u[kSlabOctets];
  make_update<kDelta, kChannels>(u, slab, update);
  Octet sums[kSlabOctets] = {};
  const int key_dim = slab.args.shape.key_dim;
  for (int i = 0; i < key_dim; ++i) {
    const float decay = update.decay[kChannels ? i : 0], k = update.k[i], query = q[i];
    Octet s[kSlabOctets];
    load_columns(s, slab.s + i * kSlab);
    for (int c = 0; c < kSlabOctets; ++c) {
      s[c] = s[c] * decay + u[c] * k;
      sums[c] += s[c] * query;
      store(slab.s + i * kSlab + c * kOctet, s[c]);
    }
  }
  for (int c = 0; c < kSlabOctets; ++c) store(out + c * kOctet, sums[c]);
}

FT_HOT void apply_plain(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  apply_row<false, false>(slab, update, q, out);
}
FT_HOT void apply_plain_channels(StateSlab& slab, const SlabUpdate& update, const float* q,
                                 float* out) {
  apply_row<false, true>(slab, update, q, out);
}
FT_HOT void apply_delta(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  apply_row<true, false>(slab, update, q, out);
}
FT_HOT void apply_delta_channels(StateSlab& slab, const SlabUpdate& update, const float* q,
                                 float* out) {
  apply_row<true, true>(slab, update, q, out);
}

using ApplyRow = void (*)(StateSlab&, const SlabUpdate&, const float*, float*);

ApplyRow apply_of(const LinearShape& shape) {
  if (shape.delta) return shape.channel_decay ? apply_delta_channels : apply_delta;
  return shape.channel_decay ? apply_plain_channels : apply_plain;
}

void answer(const StateSlab& slab, const SlabUpdate& update, int row, const float* sums) {
  const LinearAttentionArgs& a = slab.args;
  float* out =
      a.out + int64_t{row} * a.shape.v_size() + slab.head * a.shape.value_dim + slab.column;
  for (int c = 0; c < slab.count; ++c) {
    out[c] = a.skip != nullptr ? sums[c] + a.skip[slab.head] * update.v[c] : sums[c];
  }
}

const float* pending_row(const LinearAttentionArgs& a, int slot, int position) {
  return a.pending +
         (int64_t{slot} * a.pending_rows + position % a.pending_rows) * a.shape.update_size();
}

void run_slab(StateSlab& slab, ApplyRow apply, int begin, int end) {
  const LinearAttentionArgs& a = slab.args;
  const int slot = a.row_slot[begin];
  const int position = a.positions[begin];
  const int len = known_len(a.slots, slot, position + end - begin, a.pending_rows);
  const StateRun run = state_run(position, end - begin, a.committed[slot], len, a.pending_rows);
  load_state(slab, slot, run.from == 0);
  alignas(64) float sums[kSlab];
  for (int at = run.from; at < run.end; ++at) {
    if (at == run.keep && run.keep > run.from) store_state(slab, slot);
    if (at < run.begin) {
      const float* packed = pending_row(a, slot, at);
      const SlabUpdate update = update_of(slab, packed);
      apply(slab, update, update.k, sums);
      continue;
    }
    const int row = begin + at - run.begin;
    const float* x = a.x + int64_t{row} * a.shape.row_size();
    const SlabUpdate update = update_of(slab, x + a.shape.k_offset());
    apply(slab, update, x + slab.key_head * a.shape.key_dim, sums);
    answer(slab, update, row, sums);
  }
  if (run.keep == run.end) store_state(slab, slot);
}

// What the next run goes on from, once no task reads what this one went on from.
void keep_updates(const LinearAttentionArgs& a, const StateRows& rows) {
  for (int row = 0; row < rows.count; ++row) {
    const int slot = a.row_slot[row];
    const int len = known_len(a.slots, slot, a.positions[row] + 1, a.pending_rows);
    if (stays_pending(rows, row, len, a.pending_rows)) {
      std::copy_n(a.x + int64_t{row} * a.shape.row_size() + a.shape.k_offset(),
                  a.shape.update_size(),
                  const_cast<float*>(pending_row(a, slot, a.positions[row])));
    }
    if (!rows.continues(row + 1)) {
      a.committed[slot] = kept_behind(rows, row, a.committed[slot], len);
    }
  }
}

}  // namespace

void linear_attention(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LinearAttentionArgs*>(args);
  const StateRows rows{a.positions, a.row_slot,
                       live_rows(*a.counts, RowKind::kToken, 0, a.max_rows)};
  const int slabs = (a.shape.value_dim + kSlab - 1) / kSlab;
  const ApplyRow apply = apply_of(a.shape);
  if (rows.count == 0) return;
  pool.parallel_for(int64_t{a.shape.value_heads} * slabs, [&](int64_t index, int) {
    const int head = static_cast<int>(index) / slabs;
    const int column = static_cast<int>(index) % slabs * kSlab;
    StateSlab slab{
        a, head, a.shape.key_head_of(head), column, std::min(kSlab, a.shape.value_dim - column),
        {}};
    for (int begin = 0; begin < rows.count;) {
      const int end = rows.run_end(begin);
      run_slab(slab, apply, begin, end);
      begin = end;
    }
  });
  keep_updates(a, rows);
}

}  // namespace foretoken::cpu
