#include "engine/offload/state_store.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr int64_t kPartAlignment = 16;  // of what move_blocks copies

int64_t aligned_part(int64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

}  // namespace

int64_t StateStore::snapshot_bytes(std::span<const BlockPart> parts) {
  int64_t bytes = 0;
  for (const BlockPart& part : parts) bytes += aligned_part(part.bytes);
  return bytes;
}

Result<std::unique_ptr<StateStore>> StateStore::make(Device& device, Queue& queue,
                                                     std::span<const BlockPart> parts,
                                                     int num_slots, int num_snapshots) {
  std::unique_ptr<StateStore> store(new StateStore(device, num_slots, num_snapshots));
  FT_RETURN_IF_ERROR(store->take(queue, parts));
  return store;
}

Status StateStore::take(Queue& queue, std::span<const BlockPart> parts) {
  if (parts.empty()) return {};
  const int64_t bytes = snapshot_bytes(parts);
  const auto images = arena_.take(static_cast<size_t>(num_snapshots_ * bytes), "state snapshots");
  if (!images.ok()) {
    return resource_exhausted(images.status().message() + "; lower --max-state-snapshots");
  }
  FT_ASSIGN_OR_RETURN(auto* table, arena_.take_array<ImagePart>(parts.size(), "a table of states"));
  FT_ASSIGN_OR_RETURN(auto* staged, pinned_.take_array<ImagePart>(parts.size(), "that table"));
  const auto moves = static_cast<size_t>(max_moves()) * 2 * kStepRingSize;
  FT_ASSIGN_OR_RETURN(ring_, pinned_.take_array<DeviceBlockMove>(moves, "lists of states"));
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    staged[i] = {parts[i], at};
    at += aligned_part(parts[i].bytes);
  }
  // Nothing fails from here on, which would free what is copied.
  queue.copy(table, staged, parts.size() * sizeof(ImagePart));
  args_ = {.moves = nullptr,
           .parts = table,
           .headers = nullptr,
           .images = static_cast<std::byte*>(images.value()),
           .image_bytes = bytes,
           .header_at = 0,
           .num_moves = 0,
           .num_parts = static_cast<int32_t>(parts.size()),
           .inwards = 0};
  return {};
}

bool StateStore::can_move(std::span<const StateMove> moves) const {
  const auto is_known = [this](const StateMove& move) {
    return move.slot >= 0 && move.slot < num_slots_ && move.snapshot >= 0 &&
           move.snapshot < num_snapshots_;
  };
  return static_cast<int64_t>(moves.size()) <= max_moves() &&
         std::all_of(moves.begin(), moves.end(), is_known);
}

void StateStore::enqueue(Queue& queue, uint64_t step, std::span<const StateMove> out,
                         std::span<const StateMove> in) {
  if (args_.num_parts == 0) return;
  const auto entry = static_cast<int64_t>(step % kStepRingSize);
  DeviceBlockMove* const lists = ring_ + entry * 2 * max_moves();
  enqueue_list(queue, out, lists, false);
  enqueue_list(queue, in, lists + max_moves(), true);
}

void StateStore::enqueue_list(Queue& queue, std::span<const StateMove> moves, DeviceBlockMove* list,
                              bool inwards) {
  if (moves.empty()) return;
  FT_CHECK(static_cast<int64_t>(moves.size()) <= max_moves());
  for (size_t i = 0; i < moves.size(); ++i) {
    list[i] = {.block = moves[i].slot,
               .image = moves[i].snapshot,
               .parent = -1,
               .parent_epoch = 0,
               .epoch = 0};
  }
  MoveBlocksArgs args = args_;
  args.moves = list;
  args.num_moves = static_cast<int32_t>(moves.size());
  args.inwards = inwards ? 1 : 0;
  move_blocks(queue, args);
}

}  // namespace foretoken
