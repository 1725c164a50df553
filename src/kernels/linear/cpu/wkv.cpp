#include "kernels/linear/wkv.h"

#include <algorithm>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cpu {
namespace {

// Columns of S that a task takes through all rows.
constexpr int kWkvColumns = 16;

// Of one task: some columns of one head's S. Columns behind the last one are zero.
struct WkvPart {
  const WkvArgs& args;
  int head;
  int column;  // the first
  int count;   // of columns
  alignas(64) float s[kMaxWkvKeyDim * kWkvColumns];
};

// What a row does to it.
struct WkvUpdate {
  const float* k;  // [key_dim], and so are the next
  const float* decay;
  const float* removed;
  const float* returned;
  alignas(64) float v[kWkvColumns];
};

float* wkv_state(const WkvPart& part, int slot, int key) {
  const LinearShape& shape = part.args.shape;
  const int64_t row = int64_t{part.head} * shape.key_dim + key;
  return part.args.states + slot * shape.state_size() + row * shape.value_dim + part.column;
}

void load_wkv(WkvPart& part, int slot, bool is_zero) {
  std::fill_n(part.s, part.args.shape.key_dim * kWkvColumns, 0.0f);
  for (int i = 0; !is_zero && i < part.args.shape.key_dim; ++i) {
    std::copy_n(wkv_state(part, slot, i), part.count, part.s + i * kWkvColumns);
  }
}

void store_wkv(const WkvPart& part, int slot) {
  for (int i = 0; i < part.args.shape.key_dim; ++i) {
    std::copy_n(part.s + i * kWkvColumns, part.count, wkv_state(part, slot, i));
  }
}

// `packed`: a row of LinearShape from its keys on.
WkvUpdate wkv_update(const WkvPart& part, const float* packed) {
  const LinearShape& shape = part.args.shape;
  const int keys = part.head * shape.key_dim, before = shape.k_offset();
  WkvUpdate update;
  update.k = packed + keys;
  update.decay = packed + (shape.decay_offset() - before + keys);
  update.removed = packed + (shape.removed_offset() - before + keys);
  update.returned = packed + (shape.returned_offset() - before + keys);
  std::fill_n(update.v, kWkvColumns, 0.0f);
  const float* v = packed + (shape.v_offset() - before);
  std::copy_n(v + part.head * shape.value_dim + part.column, part.count, update.v);
  return update;
}

FT_HOT void apply_wkv(float* s, int key_dim, const WkvUpdate& update, const float* q, float* out) {
  Lanes known = {}, v, sum = {};
  for (int i = 0; i < key_dim; ++i) {
    Lanes row;
    load(row, s + i * kWkvColumns);
    known = known + row * update.removed[i];
  }
  load(v, update.v);
  for (int i = 0; i < key_dim; ++i) {
    Lanes row;
    load(row, s + i * kWkvColumns);
    row = row * update.decay[i] + known * update.returned[i] + v * update.k[i];
    if (q != nullptr) sum = sum + row * q[i];
    store(s + i * kWkvColumns, row);
  }
  store(out, sum);
}

float* wkv_pending(const WkvArgs& a, int slot, int position) {
  return a.pending +
         (int64_t{slot} * a.pending_rows + position % a.pending_rows) * a.shape.update_size();
}

void run_wkv(WkvPart& part, int begin, int end) {
  const WkvArgs& a = part.args;
  const LinearShape& shape = a.shape;
  const int slot = a.row_slot[begin], position = a.positions[begin];
  const int len = known_len(a.slots, slot, position + end - begin, a.pending_rows);
  const StateRun run = state_run(position, end - begin, a.committed[slot], len, a.pending_rows);
  load_wkv(part, slot, run.from == 0);
  alignas(64) float sums[kWkvColumns];
  for (int at = run.from; at < run.end; ++at) {
    if (at == run.keep && run.keep > run.from) store_wkv(part, slot);
    if (at < run.begin) {
      const WkvUpdate update = wkv_update(part, wkv_pending(a, slot, at));
      apply_wkv(part.s, shape.key_dim, update, nullptr, sums);
      continue;
    }
    const int64_t row = begin + at - run.begin;
    const float* x = a.x + row * shape.row_size();
    const WkvUpdate update = wkv_update(part, x + shape.k_offset());
    apply_wkv(part.s, shape.key_dim, update, x + part.head * shape.key_dim, sums);
    float* out = a.out + row * shape.v_size() + part.head * shape.value_dim + part.column;
    std::copy_n(sums, part.count, out);
  }
  if (run.keep == run.end) store_wkv(part, slot);
}

// What the next run goes on from, once no task reads what this one went on from.
void keep_wkv(const WkvArgs& a, const StateRows& rows) {
  for (int row = 0; row < rows.count; ++row) {
    const int slot = a.row_slot[row];
    const int len = known_len(a.slots, slot, a.positions[row] + 1, a.pending_rows);
    if (stays_pending(rows, row, len, a.pending_rows)) {
      std::copy_n(a.x + int64_t{row} * a.shape.row_size() + a.shape.k_offset(),
                  a.shape.update_size(), wkv_pending(a, slot, a.positions[row]));
    }
    if (!rows.continues(row + 1)) {
      a.committed[slot] = kept_behind(rows, row, a.committed[slot], len);
    }
  }
}

}  // namespace

void wkv(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const WkvArgs*>(args);
  const StateRows rows{a.positions, a.row_slot,
                       live_rows(*a.counts, RowKind::kToken, 0, a.max_rows)};
  if (rows.count == 0) return;
  const int parts = (a.shape.value_dim + kWkvColumns - 1) / kWkvColumns;
  pool.parallel_for(int64_t{a.shape.value_heads} * parts, [&](int64_t index, int) {
    const int column = static_cast<int>(index) % parts * kWkvColumns;
    const int count = std::min(kWkvColumns, a.shape.value_dim - column);
    WkvPart part{a, static_cast<int>(index) / parts, column, count, {}};
    for (int begin = 0; begin < rows.count;) {
      const int end = rows.run_end(begin);
      run_wkv(part, begin, end);
      begin = end;
    }
  });
  keep_wkv(a, rows);
}

}  // namespace foretoken::cpu
