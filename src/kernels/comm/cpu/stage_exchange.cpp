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

// The counts and the lists of live rows that travel, of a step or of one of its lanes.
constexpr size_t kMaxLists = 5;
constexpr size_t kSlotList = 2;
struct RowLists {
  StepCounts& counts;
  std::array<int32_t*, kMaxLists> lists{};
  size_t count = 0;
};

RowLists lists_of(const StepTensors& t, int lane, int32_t lane_offset) {
  StepCounts* counts = t.counts + (lane_offset > 0 ? 1 + lane : 0);
  RowLists all{
      *counts, {t.token_ids, t.positions, t.row_slot, t.kv_slot, t.window_slot}, kMaxLists};
  if (t.window_slot == nullptr) --all.count;
  for (size_t i = 0; i < all.count; ++i) all.lists[i] += int64_t{lane} * lane_offset;
  return all;
}

int num_lanes(int32_t lane_offset) { return lane_offset > 0 ? 2 : 1; }

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
  for (int lane = 0; lane < num_lanes(a.lane_offset); ++lane) {
    const RowLists all = lists_of(a.tensors, lane, a.lane_offset);
    comm.post(next, std::as_bytes(std::span(&all.counts, 1)), "send_step");
    for_each_piece(comm, all, all.counts.num_rows, [&](int begin, int rows, std::span<int32_t> to) {
      for (size_t i = 0; i < all.count; ++i) {
        std::copy_n(all.lists[i] + begin, rows, to.data() + i * static_cast<size_t>(rows));
      }
      comm.post(next, std::as_bytes(to), "send_step");
    });
  }
  if (a.counter != nullptr) ++*a.counter;
}

void receive_step(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ReceiveStepArgs*>(args);
  CpuCommunicator& comm = stage_communicator(a.comm);
  const int before = stage_before(comm);
  for (int lane = 0; lane < num_lanes(a.lane_offset); ++lane) {
    const RowLists all = lists_of(a.tensors, lane, a.lane_offset);
    comm.receive(before, std::as_writable_bytes(std::span(&all.counts, 1)), "receive_step");
    const int live = all.counts.num_rows;
    for_each_piece(comm, all, live, [&](int begin, int rows, std::span<int32_t> from) {
      comm.receive(before, std::as_writable_bytes(from), "receive_step");
      for (size_t i = 0; i < all.count; ++i) {
        std::copy_n(from.data() + i * static_cast<size_t>(rows), rows, all.lists[i] + begin);
      }
    });
    for (size_t i = 0; i < all.count; ++i) {
      std::fill(all.lists[i] + live, all.lists[i] + std::max(a.max_rows, live),
                i == kSlotList ? a.num_slots : 0);
    }
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
