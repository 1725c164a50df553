#include "kernels/comm/stage_exchange.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "device/cpu/cpu_communicator.h"
#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {
namespace {

CpuCommunicator& stage_communicator(const void* handle) {
  return *const_cast<CpuCommunicator*>(static_cast<const CpuCommunicator*>(handle));
}

int next_stage(const CpuCommunicator& comm) { return (comm.rank() + 1) % comm.size(); }
int stage_before(const CpuCommunicator& comm) {
  return (comm.rank() + comm.size() - 1) % comm.size();
}

// The lists of live rows that travel.
constexpr size_t kMaxLists = 5;
struct RowLists {
  std::array<int32_t*, kMaxLists> lists{};
  size_t count = 0;
};

RowLists lists_of(const StepTensors& t) {
  RowLists all{{t.token_ids, t.positions, t.row_slot, t.kv_slot, t.window_slot}, kMaxLists};
  if (t.window_slot == nullptr) --all.count;
  return all;
}

// Calls part(first row, rows, the piece's place) for pieces of all lists that fit into one message.
template <class Part>
void for_each_piece(CpuCommunicator& comm, const RowLists& all, int rows, const Part& part) {
  const int most = static_cast<int>(comm.piece_bytes() / (all.count * sizeof(int32_t)));
  for (int begin = 0; begin < rows; begin += most) {
    const int here = std::min(most, rows - begin);
    const std::span piece(reinterpret_cast<int32_t*>(comm.mine()),
                          static_cast<size_t>(here) * all.count);
    part(begin, here, piece);
  }
}

std::span<std::byte> live_rows_of(const float* x, const StepCounts& counts, int max_rows,
                                  int cols) {
  const int rows = std::min(counts.num_rows, max_rows);
  return std::as_writable_bytes(
      std::span(const_cast<float*>(x), static_cast<size_t>(rows) * static_cast<size_t>(cols)));
}

}  // namespace

void send_step(const void* args, CpuPool&) {
  const auto& a = *static_cast<const SendStepArgs*>(args);
  CpuCommunicator& comm = stage_communicator(a.comm);
  const int next = next_stage(comm);
  const StepCounts& counts = *a.tensors.counts;
  comm.post(next, std::as_bytes(std::span(&counts, 1)), "send_step");
  const RowLists all = lists_of(a.tensors);
  for_each_piece(comm, all, counts.num_rows, [&](int begin, int rows, std::span<int32_t> piece) {
    for (size_t i = 0; i < all.count; ++i) {
      std::copy_n(all.lists[i] + begin, rows, piece.data() + i * static_cast<size_t>(rows));
    }
    comm.post(next, std::as_bytes(piece), "send_step");
  });
  if (a.counter != nullptr) ++*a.counter;
}

void receive_step(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ReceiveStepArgs*>(args);
  CpuCommunicator& comm = stage_communicator(a.comm);
  const int before = stage_before(comm);
  StepCounts& counts = *a.tensors.counts;
  comm.receive(before, std::as_writable_bytes(std::span(&counts, 1)), "receive_step");
  const RowLists all = lists_of(a.tensors);
  for_each_piece(comm, all, counts.num_rows, [&](int begin, int rows, std::span<int32_t> piece) {
    comm.receive(before, std::as_writable_bytes(piece), "receive_step");
    for (size_t i = 0; i < all.count; ++i) {
      std::copy_n(piece.data() + i * static_cast<size_t>(rows), rows, all.lists[i] + begin);
    }
  });
  for (size_t i = 0; i < all.count; ++i) {
    const bool is_slot = all.lists[i] == a.tensors.row_slot;
    std::fill(all.lists[i] + counts.num_rows, all.lists[i] + std::max(a.max_rows, counts.num_rows),
              is_slot ? a.num_slots : 0);
  }
  if (a.stamps != nullptr) a.stamps[*a.step % kStepRingSize].begin_ns = now_ns();
}

void send_rows(const void* args, CpuPool&) {
  const auto& a = *static_cast<const SendRowsArgs*>(args);
  CpuCommunicator& comm = stage_communicator(a.comm);
  comm.send(next_stage(comm), live_rows_of(a.x, *a.counts, a.max_rows, a.cols), "send_rows");
}

void receive_rows(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ReceiveRowsArgs*>(args);
  CpuCommunicator& comm = stage_communicator(a.comm);
  comm.receive(stage_before(comm), live_rows_of(a.x, *a.counts, a.max_rows, a.cols),
               "receive_rows");
}

}  // namespace foretoken::cpu
