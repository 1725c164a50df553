#include "kernels/comm/expert_exchange.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include "device/cpu/cpu_communicator.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/experts/cpu/expert_sum.h"

namespace foretoken::cpu {
namespace {

constexpr const char* kDispatch = "dispatch_rows";
constexpr const char* kReturn = "return_rows";

CpuCommunicator& expert_communicator(const void* handle) {
  return *const_cast<CpuCommunicator*>(static_cast<const CpuCommunicator*>(handle));
}

// Calls use(peer) for every other rank, beginning behind this one, so that not all send to the same
// one at first.
template <class Use>
void for_each_peer(const CpuCommunicator& comm, const Use& use) {
  for (int offset = 1; offset < comm.size(); ++offset) use((comm.rank() + offset) % comm.size());
}

// One list of rows with its length in bytes, here and among the rows of all.
struct RowList {
  const std::byte* from;
  std::byte* to;
  size_t row_bytes;

  std::span<const std::byte> mine(int32_t rows) const {
    return {from, static_cast<size_t>(rows) * row_bytes};
  }
  std::span<std::byte> place(int32_t begin, int32_t rows) const {
    return {to + static_cast<size_t>(begin) * row_bytes, static_cast<size_t>(rows) * row_bytes};
  }
};

template <class T>
RowList row_list(const T* from, T* to, size_t row_bytes) {
  return {reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), row_bytes};
}

// What a rank tells ahead of its rows.
struct RowsHeader {
  int32_t rows;
  int32_t max_rows;
};

int32_t rows_of_peer(CpuCommunicator& comm, int peer, int32_t max_rows) {
  RowsHeader header{};
  comm.receive(peer, std::as_writable_bytes(std::span(&header, 1)), kDispatch);
  if (header.max_rows != max_rows || header.rows < 0 || header.rows > max_rows) {
    throw std::runtime_error(
        "dispatch_rows: engine " + std::to_string(peer) + " sends " + std::to_string(header.rows) +
        " rows of at most " + std::to_string(header.max_rows) + ", where this step has room for " +
        std::to_string(max_rows) + "; start all engines with one configuration");
  }
  return header.rows;
}

}  // namespace

void dispatch_rows(const void* args, CpuPool&) {
  const auto& a = *static_cast<const DispatchRowsArgs*>(args);
  CpuCommunicator& comm = expert_communicator(a.comm);
  const size_t choice_bytes = static_cast<size_t>(a.top_k) * sizeof(int32_t);
  const RowList lists[] = {
      row_list(static_cast<const std::byte*>(a.x), static_cast<std::byte*>(a.out.x),
               static_cast<size_t>(a.hidden) * dtype_size(a.dtype)),
      row_list(a.ids, a.out.ids, choice_bytes), row_list(a.weights, a.out.weights, choice_bytes)};
  const int32_t rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const RowsHeader header{rows, a.max_rows};
  for_each_peer(comm, [&](int peer) {
    comm.post(peer, std::as_bytes(std::span(&header, 1)), kDispatch);
    for (const RowList& list : lists) {
      if (rows > 0) comm.post(peer, list.mine(rows), kDispatch);
    }
  });
  int32_t begin = 0;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const bool own = rank == comm.rank();
    const int32_t here = own ? rows : rows_of_peer(comm, rank, a.max_rows);
    a.out.begins[rank] = begin;
    for (const RowList& list : lists) {
      if (here == 0) break;
      const std::span<std::byte> to = list.place(begin, here);
      own ? void(std::memcpy(to.data(), list.from, to.size())) : comm.receive(rank, to, kDispatch);
    }
    begin += here;
  }
  comm.flush(kDispatch);
  a.out.begins[comm.size()] = begin;
  *a.out.counts = {begin, 0, 0, 0};
}

void return_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ReturnRowsArgs*>(args);
  CpuCommunicator& comm = expert_communicator(a.comm);
  const auto sums_of = [&](int rank) {
    const size_t row = static_cast<size_t>(a.hidden);
    return std::span(a.sums + static_cast<size_t>(a.begins[rank]) * row,
                     static_cast<size_t>(a.begins[rank + 1] - a.begins[rank]) * row);
  };
  for_each_peer(comm, [&](int peer) {
    if (!sums_of(peer).empty()) comm.post(peer, std::as_bytes(sums_of(peer)), kReturn);
  });
  const std::span<const float> own = sums_of(comm.rank());
  const auto rows = static_cast<int64_t>(own.size()) / a.hidden;
  if (rows == 0) return comm.flush(kReturn);
  float* const sum = a.scratch;
  float* const inbox = sum + own.size();
  const auto each_row = [&](const auto& use) {
    for_each_row(pool, rows, a.hidden, [&](int64_t row) { use(row, row * a.hidden); });
  };
  each_row(
      [&](int64_t row, int64_t at) { begin_expert_sum(a, a.hidden, row, 0, a.hidden, sum + at); });
  for (int rank = 0; rank < comm.size(); ++rank) {
    const float* part = own.data();
    if (rank != comm.rank()) {
      comm.receive(rank, std::as_writable_bytes(std::span(inbox, own.size())), kReturn);
      part = inbox;
    }
    each_row([&](int64_t, int64_t at) {
      for (int i = 0; i < a.hidden; ++i) sum[at + i] += part[at + i];
    });
  }
  comm.flush(kReturn);
  each_row([&](int64_t, int64_t at) {
    float* out = a.out + at;
    for (int i = 0; i < a.hidden; ++i) out[i] = a.add != 0 ? out[i] + sum[at + i] : sum[at + i];
  });
}

}  // namespace foretoken::cpu
