#include "kernels/comm/shared_sampling.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>

#include "device/cpu/cpu_communicator.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/sampling/cpu/logits_chunk.h"
#include "kernels/sampling/cpu/sample_row.h"

namespace foretoken::cpu {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

CpuCommunicator& sampling_communicator(const void* handle) {
  return *const_cast<CpuCommunicator*>(static_cast<const CpuCommunicator*>(handle));
}

int live_logits(const SharedLogits& a) {
  return live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
}

bool draws(const SharedLogits& a, int rows) {
  for (int i = 0; i < rows; ++i) {
    if (!takes_likeliest(a, i)) return true;
  }
  return false;
}

// The best of this rank's columns of row i; 0: all of them are masked.
uint64_t likeliest_key(const SharedLogits& a, int64_t i) {
  const LogitsRow at = logits_row(a.tensors, a.batch.slots, static_cast<int32_t>(a.row_offset + i));
  const SlotParams& params = a.batch.params[at.slot];
  const int num_masked = at.position + 1 < params.min_len ? params.num_stop_ids : 0;
  const ColumnPart own = column_part(a.vocab, a.rank, a.size);
  float max = kMasked;
  int32_t best = -1;
  uint32_t invalid = 0;
  LogitsChunk chunk;
  for (int32_t begin = 0; begin < own.count; begin += kLogitsChunk) {
    load_chunk(a.part + i * own.count, own.count, begin, chunk);
    for (int k = 0; k < num_masked; ++k) {
      const int32_t place = params.stop_ids[k] - own.begin - begin;
      if (place >= 0 && place < kLogitsChunk) chunk.logits[place] = kMasked;
    }
    const float top = chunk_max(chunk, invalid);
    if (top <= max) continue;
    max = top;
    const float* first = std::find(chunk.logits, chunk.logits + kLogitsChunk, top);
    best = own.begin + begin + static_cast<int32_t>(first - chunk.logits);
  }
  if (invalid != 0) return kNoSampleKey;
  return best < 0 ? 0 : argmax_key(sample_math::ordered_key(max), best);
}

// What row i, which this rank has whole as its row `local`, samples.
int32_t drawn_id(const SharedLogits& a, int32_t i, int64_t local) {
  const LogitsRow at = logits_row(a.tensors, a.batch.slots, a.row_offset + i);
  if (at.scored) return 0;  // gather_samples knows the id
  const SlotParams& params = a.batch.params[at.slot];
  return sample_row({.logits = a.dealt + local * a.vocab,
                     .params = &params,
                     .vocab = a.vocab,
                     .position = at.position + 1,
                     .masks_stop_ids = at.position + 1 < params.min_len});
}

// Rows [begin, begin + rows) of those that a rank deals out to each other one.
struct DealtPiece {
  int32_t begin;
  int32_t rows;

  // Of a rank's `count` rows.
  int32_t here(int32_t count) const { return std::clamp(count - begin, 0, rows); }
};

void exchange_piece(const SharedLogits& a, CpuCommunicator& comm, const DealtPiece& piece,
                    int live) {
  const int32_t own_columns = column_part(a.vocab, a.rank, a.size).count;
  const int32_t mine = piece.here(a.rows_of(a.rank, live));
  auto* in = comm.theirs();
  size_t num_parts = 0;
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (peer == comm.rank()) continue;
    const int64_t first = int64_t{peer} * a.rows_each() + piece.begin;
    const int64_t sent = int64_t{piece.here(a.rows_of(peer, live))} * own_columns;
    const int64_t received = int64_t{mine} * column_part(a.vocab, peer, a.size).count;
    comm.parts()[num_parts++] = {
        peer, std::as_bytes(std::span(a.part + first * own_columns, static_cast<size_t>(sent))),
        std::span(in + static_cast<size_t>(peer) * comm.piece_bytes(),
                  static_cast<size_t>(received) * sizeof(float))};
  }
  comm.exchange(comm.parts().first(num_parts), "deal_logits");
}

void place_piece(const SharedLogits& a, CpuCommunicator& comm, const DealtPiece& piece, int live) {
  const int32_t mine = piece.here(a.rows_of(a.rank, live));
  const int64_t first = int64_t{a.rank} * a.rows_each() + piece.begin;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const ColumnPart part = column_part(a.vocab, rank, a.size);
    const auto* from = rank == comm.rank()
                           ? a.part + first * part.count
                           : reinterpret_cast<const float*>(
                                 comm.theirs() + static_cast<size_t>(rank) * comm.piece_bytes());
    for (int64_t row = 0; row < mine; ++row) {
      std::copy_n(from + row * part.count, part.count,
                  a.dealt + (piece.begin + row) * a.vocab + part.begin);
    }
  }
}

}  // namespace

void deal_logits(const void* args, CpuPool&) {
  const SharedLogits& a = static_cast<const DealLogitsArgs*>(args)->of;
  const int live = live_logits(a);
  if (!draws(a, live)) return;
  CpuCommunicator& comm = sampling_communicator(a.comm);
  const int64_t widest = widest_column_part(a.vocab, a.size) * int64_t{sizeof(float)};
  const auto most = static_cast<int32_t>(static_cast<int64_t>(comm.piece_bytes()) / widest);
  if (most < 1) throw std::runtime_error("a row of logits is longer than the communicator takes");
  for (int32_t begin = 0; begin < a.rows_of(0, live); begin += most) {
    const DealtPiece piece{begin, most};
    exchange_piece(a, comm, piece, live);
    place_piece(a, comm, piece, live);
  }
}

void sample_parts(const void* args, CpuPool& pool) {
  const SharedLogits& a = static_cast<const SamplePartsArgs*>(args)->of;
  const int live = live_logits(a);
  if (!draws(a, live)) {
    pool.parallel_for(live, [&](int64_t i, int) { a.keys[i] = likeliest_key(a, i); });
    return;
  }
  std::fill_n(a.keys, live, uint64_t{0});
  const int32_t first = a.rank * a.rows_each();
  pool.parallel_for(a.rows_of(a.rank, live), [&](int64_t local, int) {
    const auto i = static_cast<int32_t>(first + local);
    a.keys[i] = drawn_key(drawn_id(a, i, local));
  });
}

void gather_samples(const void* args, CpuPool&) {
  const SharedLogits& a = static_cast<const GatherSamplesArgs*>(args)->of;
  CpuCommunicator& comm = sampling_communicator(a.comm);
  const int live = live_logits(a);
  const int most = static_cast<int>(comm.piece_bytes() / sizeof(uint64_t));
  for (int begin = 0; begin < live; begin += most) {
    const int here = std::min(most, live - begin);
    const size_t bytes = static_cast<size_t>(here) * sizeof(uint64_t);
    std::memcpy(comm.mine(), a.keys + begin, bytes);
    const auto* all = reinterpret_cast<const uint64_t*>(comm.all_gather(bytes, "gather_samples"));
    for (int i = 0; i < here; ++i) {
      uint64_t best = 0;
      for (int r = 0; r < comm.size(); ++r) best = std::max(best, all[r * here + i]);
      a.tensors.sampled[a.row_offset + begin + i] = sampled_of(a, begin + i, best);
    }
  }
}

}  // namespace foretoken::cpu
