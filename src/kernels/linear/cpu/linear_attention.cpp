#include "kernels/linear/linear_attention.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_pair.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cpu {
namespace {

// Columns of S that a task takes through all rows: as many rows of S lie in the first cache, and a
// row's sums stay in registers, as two of Lanes or of LanePair.
constexpr int kSlab = 2 * kLanes;

// Of one task: a slab of one head's S. Columns behind the last one are zero.
struct StateSlab {
  StateSlab(const LinearAttentionArgs& a, int of_head, int first_column)
      : args(a),
        head(of_head),
        key_head(a.shape.key_head_of(of_head)),
        column(first_column),
        count(std::min(kSlab, a.shape.value_dim - first_column)) {}

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
  const int own_decays = slab.head * (shape.channel_decay ? shape.key_dim : 1);
  const int own_values = slab.head * shape.value_dim + slab.column;
  SlabUpdate update;
  update.k = packed + slab.key_head * shape.key_dim;
  update.decay = packed + (shape.decay_offset() - shape.k_offset() + own_decays);
  update.scale = shape.scaled ? packed[shape.scale_offset() - shape.k_offset() + slab.head] : 1.0f;
  std::fill_n(update.v, kSlab, 0.0f);
  std::copy_n(packed + (shape.v_offset() - shape.k_offset() + own_values), slab.count, update.v);
  return update;
}

// s = s * decay + u * k
FT_INLINE void fold(Lanes& s, float decay, const Lanes& u, float k) { s = s * decay + u * k; }
FT_INLINE void fold(Octet& s, float decay, const Octet& u, float k) { s = s * decay + u * k; }
FT_INLINE void fold(LanePair& s, float decay, const LanePair& u, float k) {
  fold(s.low, decay, u.low, k);
  fold(s.high, decay, u.high, k);
}

// u = (v - known * decay) * scale
template <class V>
FT_INLINE void finish(V& u, const V& known, float decay, float scale) {
  u = (u - known * decay) * scale;
}
FT_INLINE void finish(LanePair& u, const LanePair& known, float decay, float scale) {
  finish(u.low, known.low, decay, scale);
  finish(u.high, known.high, decay, scale);
}

// S = decay * S + k (x) u with u = scale * (v - S^T (decay * k)) where kDelta, else scale * v; and
// where there is a query out = S^T q.
template <class V, bool kDelta, bool kChannels>
FT_INLINE void apply_row(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  const int key_dim = slab.args.shape.key_dim;
  const float *k = update.k, *decay = update.decay;
  float* s = slab.s;
  V known0 = {}, known1 = {}, u0, u1;
  for (int i = 0; kDelta && i < key_dim; ++i) {
    const float factor = kChannels ? decay[i] * k[i] : k[i];
    V s0, s1;
    load(s0, s + i * kSlab);
    load(s1, s + i * kSlab + kLanes);
    add_product(known0, s0, factor);
    add_product(known1, s1, factor);
  }
  load(u0, update.v);
  load(u1, update.v + kLanes);
  finish(u0, known0, kChannels ? 1.0f : decay[0], update.scale);
  finish(u1, known1, kChannels ? 1.0f : decay[0], update.scale);
  V sum0 = {}, sum1 = {};
  for (int i = 0; i < key_dim; ++i) {
    V s0, s1;
    load(s0, s + i * kSlab);
    load(s1, s + i * kSlab + kLanes);
    fold(s0, decay[kChannels ? i : 0], u0, k[i]);
    fold(s1, decay[kChannels ? i : 0], u1, k[i]);
    if (q != nullptr) {
      add_product(sum0, s0, q[i]);
      add_product(sum1, s1, q[i]);
    }
    store(s + i * kSlab, s0);
    store(s + i * kSlab + kLanes, s1);
  }
  store(out, sum0);
  store(out + kLanes, sum1);
}

FT_HOT void apply_plain(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  apply_row<Lanes, false, false>(slab, update, q, out);
}
FT_HOT void apply_plain_channels(StateSlab& slab, const SlabUpdate& update, const float* q,
                                 float* out) {
  apply_row<Lanes, false, true>(slab, update, q, out);
}
FT_HOT void apply_delta(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  apply_row<Lanes, true, false>(slab, update, q, out);
}
FT_HOT void apply_delta_channels(StateSlab& slab, const SlabUpdate& update, const float* q,
                                 float* out) {
  apply_row<Lanes, true, true>(slab, update, q, out);
}
FT_AVX2 void pair_plain(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  apply_row<LanePair, false, false>(slab, update, q, out);
}
FT_AVX2 void pair_plain_channels(StateSlab& slab, const SlabUpdate& update, const float* q,
                                 float* out) {
  apply_row<LanePair, false, true>(slab, update, q, out);
}
FT_AVX2 void pair_delta(StateSlab& slab, const SlabUpdate& update, const float* q, float* out) {
  apply_row<LanePair, true, false>(slab, update, q, out);
}
FT_AVX2 void pair_delta_channels(StateSlab& slab, const SlabUpdate& update, const float* q,
                                 float* out) {
  apply_row<LanePair, true, true>(slab, update, q, out);
}

using ApplyRow = void (*)(StateSlab&, const SlabUpdate&, const float*, float*);

ApplyRow apply_of(const LinearShape& shape) {
  if (has_lane_pairs()) {
    if (shape.delta) return shape.channel_decay ? pair_delta_channels : pair_delta;
    return shape.channel_decay ? pair_plain_channels : pair_plain;
  }
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
      apply(slab, update, nullptr, sums);
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
    StateSlab slab(a, static_cast<int>(index) / slabs, static_cast<int>(index) % slabs * kSlab);
    for (int begin = 0; begin < rows.count;) {
      const int end = rows.run_end(begin);
      run_slab(slab, apply, begin, end);
      begin = end;
    }
  });
  keep_updates(a, rows);
}

}  // namespace foretoken::cpu
