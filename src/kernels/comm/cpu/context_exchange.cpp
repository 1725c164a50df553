#include "kernels/comm/context_exchange.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "device/cpu/cpu_communicator.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cpu/attention_divisor.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

constexpr const char* kGather = "gather_parts";
constexpr const char* kMerge = "merge_partials";

CpuCommunicator& context_communicator(const ContextRanks& ranks) {
  return *const_cast<CpuCommunicator*>(static_cast<const CpuCommunicator*>(ranks.comm));
}

// Rows of row_bytes bytes that one exchange takes.
int rows_at_once(const CpuCommunicator& comm, int64_t row_bytes, const char* what) {
  const int64_t most = static_cast<int64_t>(comm.piece_bytes()) / row_bytes;
  if (most < 1) {
    throw std::runtime_error(std::string(what) + ": a row of " + std::to_string(row_bytes) +
                             " bytes is longer than the communicator takes");
  }
  return static_cast<int>(std::min<int64_t>(most, std::numeric_limits<int>::max()));
}

// Every rank of the group gives own_for(rank), `bytes` long, to each of the others. Returns what
// came, at [rank, bytes]; this rank's place is not written.
template <class Own>
const std::byte* exchange_in_group(const ContextRanks& ranks, size_t bytes, const Own& own_for,
                                   const char* what) {
  CpuCommunicator& comm = context_communicator(ranks);
  const std::span<group::PeerBytes> parts = comm.parts();
  size_t count = 0;
  for (int peer = 0; peer < ranks.size; ++peer) {
    if (peer == ranks.rank) continue;
    std::byte* to = comm.theirs() + static_cast<size_t>(peer) * bytes;
    parts[count++] = {ranks.first + peer, {own_for(peer), bytes}, {to, bytes}};
  }
  comm.exchange(parts.first(count), what);
  return comm.theirs();
}

// What a rank saw of a row and head.
struct SeenPart {
  const float* values;
  int size;

  float highest() const { return values[size]; }
  float weights() const { return values[size + 1]; }
};

struct FoldedParts {
  float values[kMaxHeadDim];
  float highest = -std::numeric_limits<float>::infinity();
  float weights = 0;
};

FT_HOT void fold_part(const SeenPart& part, FoldedParts& all) {
  if (part.weights() == 0) return;
  const float highest = std::max(all.highest, part.highest());
  const float keep = sample_math::exp_nonpositive(all.highest - highest);
  const float take = sample_math::exp_nonpositive(part.highest() - highest);
  for (int d = 0; d < part.size; ++d) all.values[d] = all.values[d] * keep + part.values[d] * take;
  all.weights = all.weights * keep + part.weights() * take;
  all.highest = highest;
}

template <class T>
FT_INLINE void divide_values(const FoldedParts& all, float divisor, int size, T* out) {
  for (int d = 0; d < size; ++d) store_one(out + d, all.values[d] / divisor);
}
FT_HOT void divide_f32(const FoldedParts& all, float divisor, int size, float* out) {
  divide_values(all, divisor, size, out);
}
FT_HOT void divide_bf16(const FoldedParts& all, float divisor, int size, uint16_t* out) {
  divide_values(all, divisor, size, out);
}

void write_merged(const MergePartialsArgs& a, int64_t row, int head, const FoldedParts& all) {
  const float whole = attention_divisor(a.sinks, head, all.highest, all.weights);
  const float divisor = all.weights == 0 ? 1.0f : whole;
  const int64_t at = (row * a.num_heads + head) * a.value_size;
  if (a.dtype == DType::kF32) {
    divide_f32(all, divisor, a.value_size, static_cast<float*>(a.out) + at);
  } else {
    divide_bf16(all, divisor, a.value_size, static_cast<uint16_t*>(a.out) + at);
  }
}

}  // namespace

void gather_parts(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GatherPartsArgs*>(args);
  CpuCommunicator& comm = context_communicator(a.ranks);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const auto piece = static_cast<size_t>(a.piece_bytes);
  const size_t row_bytes = piece * static_cast<size_t>(a.pieces);
  const int most = rows_at_once(comm, static_cast<int64_t>(row_bytes), kGather);
  for (int begin = 0; begin < rows; begin += most) {
    const int here = std::min(most, rows - begin);
    for (int i = 0; i < here; ++i) {
      const int64_t from = a.from != nullptr ? a.from[begin + i] : begin + i;
      std::memcpy(comm.mine() + static_cast<size_t>(i) * row_bytes,
                  static_cast<const std::byte*>(a.in) + static_cast<size_t>(from) * row_bytes,
                  row_bytes);
    }
    const size_t bytes = static_cast<size_t>(here) * row_bytes;
    const std::byte* all =
        exchange_in_group(a.ranks, bytes, [&](int) { return comm.mine(); }, kGather);
    const auto num_ranks = static_cast<size_t>(a.ranks.size);
    for_each_row(
        pool, here, static_cast<int64_t>(row_bytes * num_ranks / sizeof(float)), [&](int64_t row) {
          const auto i = static_cast<size_t>(row);
          std::byte* to = static_cast<std::byte*>(a.out) +
                          (static_cast<size_t>(begin) + i) * row_bytes * num_ranks;
          for (size_t p = 0; p < static_cast<size_t>(a.pieces); ++p) {
            for (int rank = 0; rank < a.ranks.size; ++rank, to += piece) {
              const std::byte* part =
                  rank == a.ranks.rank ? comm.mine() : all + static_cast<size_t>(rank) * bytes;
              std::memcpy(to, part + i * row_bytes + p * piece, piece);
            }
          }
        });
  }
}

void merge_partials(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MergePartialsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t state = attention_state_size(a.value_size);
  const int64_t row_floats = a.num_heads * state;
  const int most = rows_at_once(context_communicator(a.ranks),
                                row_floats * static_cast<int64_t>(sizeof(float)), kMerge);
  for (int begin = 0; begin < rows; begin += most) {
    const int here = std::min(most, rows - begin);
    const auto own = [&](int rank) {
      return a.states + (rank * int64_t{a.max_rows} + begin) * row_floats;
    };
    const int64_t floats = here * row_floats;
    const auto* all = reinterpret_cast<const float*>(exchange_in_group(
        a.ranks, static_cast<size_t>(floats) * sizeof(float),
        [&](int rank) { return reinterpret_cast<const std::byte*>(own(rank)); }, kMerge));
    for_each_row(pool, here, row_floats * a.ranks.size, [&](int64_t row) {
      for (int head = 0; head < a.num_heads; ++head) {
        FoldedParts folded;
        std::fill_n(folded.values, a.value_size, 0.0f);
        for (int rank = 0; rank < a.ranks.size; ++rank) {
          const float* part = rank == a.ranks.rank ? own(rank) : all + rank * floats;
          fold_part({part + (row * a.num_heads + head) * state, a.value_size}, folded);
        }
        write_merged(a, begin + row, head, folded);
      }
    });
  }
}

}  // namespace foretoken::cpu
