#include "kernels/comm/collectives.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "device/cpu/cpu_communicator.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/draft_entries.h"
#include "kernels/logits_row.h"

namespace foretoken::cpu {
namespace {

CpuCommunicator& communicator(const void* handle) {
  return *const_cast<CpuCommunicator*>(static_cast<const CpuCommunicator*>(handle));
}

// What rank 0 decided about a span.
struct SharedAnswer {
  int32_t num_masks;
  int32_t num_decided;
};

}  // namespace

void all_reduce(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const AllReduceArgs*>(args);
  CpuCommunicator& comm = communicator(a.comm);
  const int64_t count =
      int64_t{live_rows(*a.counts, a.row_kind, a.row_offset, a.max_rows)} * a.cols;
  const auto most = static_cast<int64_t>(comm.piece_bytes() / sizeof(float));
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t here = std::min(most, count - begin);
    const size_t bytes = static_cast<size_t>(here) * sizeof(float);
    float* x = a.x + begin;
    std::memcpy(comm.mine(), x, bytes);
    const auto* all = reinterpret_cast<const float*>(comm.all_gather(bytes, "all_reduce"));
    for_each_row(pool, (here + 255) / 256, 256 * comm.size(), [&](int64_t chunk) {
      const int64_t end = std::min(here, (chunk + 1) * 256);
      for (int64_t i = chunk * 256; i < end; ++i) {
        float sum = all[i];
        for (int r = 1; r < comm.size(); ++r) sum += all[r * here + i];
        x[i] = sum;
      }
    });
  }
}

void gather_columns(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GatherColumnsArgs*>(args);
  CpuCommunicator& comm = communicator(a.comm);
  const int rows = live_rows(*a.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  const ColumnPart own = column_part(a.cols, comm.rank(), comm.size());
  const int64_t widest = widest_column_part(a.cols, comm.size());
  const auto most =
      static_cast<int>(static_cast<int64_t>(comm.piece_bytes() / sizeof(float)) / widest);
  if (most < 1) throw std::runtime_error("a row of logits is longer than the communicator takes");
  for (int begin = 0; begin < rows; begin += most) {
    const int here = std::min(most, rows - begin);
    auto* mine = reinterpret_cast<float*>(comm.mine());
    for (int row = 0; row < here; ++row) {
      std::copy_n(a.part + int64_t{begin + row} * own.count, own.count, mine + row * widest);
    }
    const int64_t size = here * widest;
    const auto* all = reinterpret_cast<const float*>(
        comm.all_gather(static_cast<size_t>(size) * sizeof(float), "gather_columns"));
    for_each_row(pool, here, a.cols, [&](int64_t row) {
      for (int r = 0; r < comm.size(); ++r) {
        const ColumnPart part = column_part(a.cols, r, comm.size());
        std::copy_n(all + r * size + row * widest, part.count,
                    a.out + (begin + row) * a.cols + part.begin);
      }
    });
  }
}

void gather_argmax(const void* args, CpuPool&) {
  const auto& a = *static_cast<const GatherArgmaxArgs*>(args);
  CpuCommunicator& comm = communicator(a.comm);
  const int rows = live_rows(*a.counts, RowKind::kLogits, 0, a.max_rows);
  const int most = static_cast<int>(comm.piece_bytes() / sizeof(uint64_t));
  for (int begin = 0; begin < rows; begin += most) {
    const int here = std::min(most, rows - begin);
    const size_t bytes = static_cast<size_t>(here) * sizeof(uint64_t);
    std::memcpy(comm.mine(), a.keys + begin, bytes);
    const auto* all = reinterpret_cast<const uint64_t*>(comm.all_gather(bytes, "gather_argmax"));
    for (int i = 0; i < here; ++i) {
      uint64_t best = 0;
      for (int r = 0; r < comm.size(); ++r) best = std::max(best, all[r * here + i]);
      const int32_t row = row_of_argmax_key(best);
      a.ids[begin + i] = best == 0 ? -1 : a.id_map != nullptr ? a.id_map[row] : row;
    }
  }
}

void share_masks(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ShareMasksArgs*>(args);
  CpuCommunicator& comm = communicator(a.comm);
  const auto has_masks = [&](const SpanState& span) {
    return has_sampled(span) && a.params[span.slot].grammar != 0;
  };
  const std::span answers(reinterpret_cast<SharedAnswer*>(comm.mine()),
                          static_cast<size_t>(a.counts->num_spans));
  for (size_t i = 0; i < answers.size(); ++i) {
    const SlotState& state = a.slots[a.spans[i].slot];
    answers[i] = {state.num_masks, state.num_decided};
  }
  comm.broadcast(std::as_writable_bytes(answers), "share_masks");
  for (size_t i = 0; i < answers.size(); ++i) {
    const SpanState& span = a.spans[i];
    if (!has_masks(span)) continue;
    SlotState& state = a.slots[span.slot];
    state.num_masks = answers[i].num_masks;
    state.num_decided = answers[i].num_decided;
    if (state.num_masks == 0) continue;
    const std::span rows(a.masks + int64_t{state.mask_begin} * a.mask_words,
                         static_cast<size_t>(state.num_masks) * static_cast<size_t>(a.mask_words));
    comm.broadcast(std::as_writable_bytes(rows), "share_masks");
  }
}

void share_logits(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ShareLogitsArgs*>(args);
  CpuCommunicator& comm = communicator(a.comm);
  const int rows = live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  for (int i = 0; i < rows; ++i) {
    const LogitsRow at = logits_row(a.tensors, a.slots, a.row_offset + i);
    if (at.scored || a.params[at.slot].processors == 0) continue;
    const std::span row(a.logits + int64_t{i} * a.vocab, static_cast<size_t>(a.vocab));
    comm.broadcast(std::as_writable_bytes(row), "share_logits");
  }
}

}  // namespace foretoken::cpu
