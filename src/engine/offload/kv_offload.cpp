#include "engine/offload/kv_offload.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "device/cpu/host_memory.h"

namespace foretoken {
namespace {

constexpr int64_t kImageAlignment = 16;  // of what move_blocks copies
constexpr int64_t kMaxImages = int64_t{1} << 28;

int64_t aligned(int64_t bytes) {
  return (bytes + kImageAlignment - 1) / kImageAlignment * kImageAlignment;
}

}  // namespace

Result<std::unique_ptr<KvOffload>> KvOffload::make(Device& device, Queue& queue,
                                                   const KvOffloadParts& parts, int64_t bytes,
                                                   int max_moves) {
  std::unique_ptr<KvOffload> offload(new KvOffload(device, max_moves));
  FT_RETURN_IF_ERROR(offload->take(queue, parts, bytes));
  return offload;
}

Status KvOffload::take(Queue& queue, const KvOffloadParts& parts, int64_t bytes) {
  if (const int64_t total = cpu::host_memory().total; bytes > total) {
    return invalid_argument("--kv-offloading-size asks for more than the " +
                            std::to_string(total >> 30) +
                            " GiB of memory that this host or its container has; lower it");
  }
  num_blocks_ = parts.num_blocks;
  const size_t num_parts = parts.parts.size();
  FT_ASSIGN_OR_RETURN(auto* table, arena_.take_array<ImagePart>(num_parts, "a table of KV parts"));
  FT_ASSIGN_OR_RETURN(auto* staged, pinned_.take_array<ImagePart>(num_parts, "that table"));
  int64_t at = 0;
  for (size_t i = 0; i < num_parts; ++i) {
    staged[i] = {parts.parts[i], at};
    at += aligned(parts.parts[i].bytes);
  }
  const int64_t image_bytes = aligned(at + static_cast<int64_t>(sizeof(PageHeader)));
  num_images_ = static_cast<int>(std::min(bytes / image_bytes, kMaxImages));
  if (num_images_ == 0) {
    return invalid_argument("--kv-offloading-size has no room for one KV block, which takes " +
                            std::to_string(image_bytes) + " bytes; raise it");
  }
  const auto moves = static_cast<size_t>(max_moves_) * 2 * kStepRingSize;
  FT_ASSIGN_OR_RETURN(ring_, pinned_.take_array<DeviceBlockMove>(moves, "lists of KV moves"));
  const auto images =
      pinned_.take(static_cast<size_t>(num_images_ * image_bytes), "KV blocks in host memory");
  if (!images.ok()) {
    return resource_exhausted(images.status().message() + "; lower --kv-offloading-size");
  }
  // Nothing fails from here on, which would free what is copied.
  queue.copy(table, staged, num_parts * sizeof(ImagePart));
  args_ = {.moves = nullptr,
           .parts = table,
           .headers = parts.headers,
           .images = static_cast<std::byte*>(images.value()),
           .image_bytes = image_bytes,
           .header_at = at,
           .num_moves = 0,
           .num_parts = static_cast<int32_t>(num_parts),
           .inwards = 0};
  return {};
}

void KvOffload::Counts::store(const HostBlockStats& stats) {
  queried_tokens.store(stats.num_queried_tokens, std::memory_order_relaxed);
  hit_tokens.store(stats.num_hit_tokens, std::memory_order_relaxed);
  blocks_out.store(stats.num_moved_out, std::memory_order_relaxed);
  blocks_in.store(stats.num_moved_in, std::memory_order_relaxed);
}

bool KvOffload::can_move(std::span<const BlockMove> moves) const {
  const auto is_known = [this](const BlockMove& move) {
    return move.block > kNullBlock && move.block < num_blocks_ && move.image >= 0 &&
           move.image < num_images_;
  };
  return static_cast<int64_t>(moves.size()) <= max_moves_ &&
         std::all_of(moves.begin(), moves.end(), is_known);
}

void KvOffload::enqueue(Queue& queue, uint64_t step, std::span<const BlockMove> out,
                        std::span<const BlockMove> in) {
  const auto entry = static_cast<int64_t>(step % kStepRingSize);
  DeviceBlockMove* const lists = ring_ + entry * 2 * max_moves_;
  enqueue_list(queue, out, lists, false);
  enqueue_list(queue, in, lists + max_moves_, true);
}

void KvOffload::enqueue_list(Queue& queue, std::span<const BlockMove> moves, DeviceBlockMove* list,
                             bool inwards) {
  if (moves.empty()) return;
  FT_CHECK(static_cast<int64_t>(moves.size()) <= max_moves_);
  for (size_t i = 0; i < moves.size(); ++i) {
    const BlockMove& move = moves[i];
    list[i] = {move.block, move.image, move.parent, move.parent_epoch, move.epoch};
  }
  MoveBlocksArgs args = args_;
  args.moves = list;
  args.num_moves = static_cast<int32_t>(moves.size());
  args.inwards = inwards ? 1 : 0;
  move_blocks(queue, args);
}

}  // namespace foretoken
