#include "kernels/latent/compress_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/latent/cpu/coded_entry.h"
#include "kernels/latent/cpu/tail_turn.h"

namespace foretoken::cpu {
namespace {

// Of one window, for each element of its entry.
struct CompressedWindow {
  alignas(64) float largest[kMaxCompressedDim];
  alignas(64) float sums[kMaxCompressedDim];
  alignas(64) float entry[kMaxCompressedDim];
};

FT_INLINE void biased_gate(const CompressedTerm& term, int c, Octet& out) {
  Octet bias;
  load(out, term.gates + c);
  load(bias, term.bias + c);
  out += bias;
}

FT_HOT void raise_largest(const CompressedTerm& term, int dim, float* largest) {
  for (int c = 0; c < dim; c += kOctet) {
    Octet gate, most;
    biased_gate(term, c, gate);
    load(most, largest + c);
    store(largest + c, gate > most ? gate : most);
  }
}

FT_HOT void add_term(const CompressedTerm& term, int dim, CompressedWindow& window) {
  for (int c = 0; c < dim; c += kOctet) {
    Octet gate, most, sum, entry, value, weight;
    biased_gate(term, c, gate);
    load(most, window.largest + c);
    exp_nonpositive(weight, gate - most);
    load(sum, window.sums + c);
    load(entry, window.entry + c);
    load(value, term.values + c);
    store(window.sums + c, sum + weight);
    store(window.entry + c, entry + weight * value);
  }
}

FT_HOT void close_window(const CompressRowsArgs& a, CompressedWindow& window) {
  for (int c = 0; c < a.head_dim; ++c) window.entry[c] /= window.sums[c];
  if (a.norm != nullptr) norm_head(window.entry, a.head_dim, a.norm_eps, a.norm);
}

void make_entry(const CompressRowsArgs& a, const StateRows& rows, int row) {
  const int position = a.positions[row], span = std::min(compressed_span(a), position + 1);
  CompressedWindow window;
  std::fill_n(window.largest, a.head_dim, -INFINITY);
  std::fill_n(window.sums, a.head_dim, 0.0f);
  std::fill_n(window.entry, a.head_dim, 0.0f);
  for (int back = span - 1; back >= 0; --back) {
    raise_largest(compressed_term(a, rows, row, back), a.head_dim, window.largest);
  }
  for (int back = span - 1; back >= 0; --back) {
    add_term(compressed_term(a, rows, row, back), a.head_dim, window);
  }
  close_window(a, window);
  TailTurn turn;
  make_tail_turn(a.inv_freq, a.rope_dim / 2, a.scaling, position + 1 - a.ratio, false, &turn);
  turn_tail(turn, window.entry, a.head_dim);
  const EntryForm form = entry_form(a);
  std::byte* to =
      static_cast<std::byte*>(a.entries) +
      compressed_entry(a.kv_slot[row], a.block_size, a.ratio, a.context_size) * form.bytes();
  (a.dtype == DType::kF32 ? store_entry<float> : store_entry<uint16_t>)(form, window.entry, to);
}

void keep_inputs(const CompressRowsArgs& a, const StateRows& rows, int row) {
  if (rows.same_run(row, row + a.history_rows)) return;
  const int64_t slot = a.row_slot[row], place = a.positions[row] % a.history_rows;
  std::copy_n(a.x + int64_t{row} * a.x_stride, 2 * compressed_width(a),
              a.history + (slot * a.history_rows + place) * a.history_stride);
}

}  // namespace

void compress_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const CompressRowsArgs*>(args);
  const StateRows rows{a.positions, a.row_slot,
                       live_rows(*a.counts, RowKind::kToken, 0, a.max_rows)};
  const int64_t each = int64_t{compressed_span(a)} * a.head_dim / a.ratio;
  for_each_row(pool, rows.count, 8 * each, [&](int64_t row) {
    if (makes_entry(a, a.positions[row])) make_entry(a, rows, static_cast<int>(row));
  });
  for_each_row(pool, rows.count, 2 * compressed_width(a),
               [&](int64_t row) { keep_inputs(a, rows, static_cast<int>(row)); });
}

}  // namespace foretoken::cpu
