#include "engine/offload/kv_offload.h"

#include <algorithm>
#include <cstdint>
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

const KvOffloadPart& part_of(const KvOffloadParts& parts, HostPart part) {
  return parts[static_cast<size_t>(part)];
}

// Of a block of the full group and one of the windowed group.
int64_t block_bytes(const KvOffloadParts& parts) {
  return part_of(parts, HostPart::kFull).image_bytes() +
         part_of(parts, HostPart::kWindowed).image_bytes();
}

Status no_room(const std::string& things, int64_t bytes) {
  return invalid_argument("--kv-offloading-size has no room for " + things + ", which takes " +
                          std::to_string(bytes) + " bytes; raise it");
}

}  // namespace

int64_t KvOffloadPart::image_bytes() const {
  int64_t bytes = headers != nullptr ? aligned(static_cast<int64_t>(sizeof(PageHeader))) : 0;
  for (const BlockPart& array : arrays) bytes += aligned(array.bytes);
  return bytes;
}

Result<ImageCounts> count_images(const KvOffloadParts& parts, int64_t bytes) {
  if (const int64_t total = cpu::host_memory().total; bytes > total) {
    return invalid_argument("--kv-offloading-size asks for more than the " +
                            std::to_string(total >> 30) +
                            " GiB of memory that this host or its container has; lower it");
  }
  const bool has_windows = part_of(parts, HostPart::kWindowed).num_places > 0;
  const bool has_states = part_of(parts, HostPart::kStates).num_places > 0;
  const int64_t block = block_bytes(parts);
  const int64_t state = part_of(parts, HostPart::kStates).image_bytes();
  int64_t num_states = 0;
  if (has_states) {
    if (bytes < block + state) return no_room("one KV block and one snapshot", block + state);
    const int64_t half = state > 0 ? std::max<int64_t>(bytes / 2 / state, 1) : kMaxImages;
    num_states = std::min(half, bytes / (block + state));
  }
  const int64_t num_blocks = std::min((bytes - num_states * state) / block, kMaxImages);
  if (num_blocks == 0) return no_room("one KV block", block);
  const auto blocks = static_cast<int>(num_blocks);
  return ImageCounts{blocks, has_windows ? blocks : 0, static_cast<int>(num_states)};
}

int64_t bytes_of_blocks(const KvOffloadParts& parts, int64_t num_blocks) {
  const int64_t block = block_bytes(parts);
  const bool has_states = part_of(parts, HostPart::kStates).image_bytes() > 0;
  const int64_t most = std::min(num_blocks, INT64_MAX / 2 / std::max<int64_t>(block, 1));
  return most * block * (has_states ? 2 : 1);
}

Result<std::unique_ptr<KvOffload>> KvOffload::make(Device& device, Queue& queue,
                                                   const KvOffloadParts& parts,
                                                   const ImageCounts& images, int max_moves) {
  std::unique_ptr<KvOffload> offload(new KvOffload(device, max_moves));
  FT_RETURN_IF_ERROR(offload->take(queue, parts, images));
  return offload;
}

Status KvOffload::take(Queue& queue, const KvOffloadParts& parts, const ImageCounts& images) {
  size_t num_arrays = 0;
  for (const KvOffloadPart& part : parts) num_arrays += part.arrays.size();
  FT_ASSIGN_OR_RETURN(auto* table, arena_.take_array<ImagePart>(num_arrays, "a table of KV parts"));
  FT_ASSIGN_OR_RETURN(auto* staged, pinned_.take_array<ImagePart>(num_arrays, "that table"));
  const auto moves = static_cast<size_t>(max_moves_) * 2 * kStepRingSize;
  FT_ASSIGN_OR_RETURN(ring_, pinned_.take_array<DeviceBlockMove>(moves, "lists of KV moves"));
  size_t first_array = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    images_[i].first_place = parts[i].first_place;
    images_[i].num_places = parts[i].num_places;
    images_[i].num_images = images[i];
    FT_RETURN_IF_ERROR(take_images(parts[i], staged + first_array, &images_[i]));
    images_[i].args.parts = table + first_array;
    first_array += parts[i].arrays.size();
  }
  // Nothing fails from here on, which would free what is copied.
  queue.copy(table, staged, num_arrays * sizeof(ImagePart));
  return {};
}

Status KvOffload::take_images(const KvOffloadPart& part, ImagePart* staged, Images* images) {
  const int64_t image_bytes = part.image_bytes();
  const int64_t bytes = images->num_images * image_bytes;
  if (bytes == 0) return {};
  const auto memory = pinned_.take(static_cast<size_t>(bytes), "KV blocks in host memory");
  if (!memory.ok()) {
    return resource_exhausted(memory.status().message() + "; lower --kv-offloading-size");
  }
  int64_t at = 0;
  for (const BlockPart& array : part.arrays) {
    *staged++ = {array, at};
    at += aligned(array.bytes);
  }
  images->args = {.moves = nullptr,
                  .parts = nullptr,
                  .headers = part.headers,
                  .images = static_cast<std::byte*>(memory.value()),
                  .image_bytes = image_bytes,
                  .header_at = at,
                  .num_moves = 0,
                  .num_parts = static_cast<int32_t>(part.arrays.size()),
                  .inwards = 0};
  return {};
}

void KvOffload::Counts::store(const HostBlockStats& stats) {
  queried_tokens.store(stats.num_queried_tokens, std::memory_order_relaxed);
  hit_tokens.store(stats.num_hit_tokens, std::memory_order_relaxed);
  for (size_t i = 0; i < kNumHostParts; ++i) {
    moved_out[i].store(stats.num_moved_out[i], std::memory_order_relaxed);
    moved_in[i].store(stats.num_moved_in[i], std::memory_order_relaxed);
  }
}

int64_t KvOffload::bytes_of(const std::array<std::atomic<int64_t>, kNumHostParts>& moves) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < kNumHostParts; ++i) {
    bytes += moves[i].load(std::memory_order_relaxed) * images_[i].args.image_bytes;
  }
  return bytes;
}

bool KvOffload::can_move(std::span<const BlockMove> moves) const {
  const auto is_known = [this](const BlockMove& move) {
    if (static_cast<int>(move.part) >= kNumHostParts) return false;
    const Images& images = of(move.part);
    return move.block >= images.first_place && move.block < images.num_places && move.image >= 0 &&
           move.image < images.num_images;
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

// Each part's moves are one call.
void KvOffload::enqueue_list(Queue& queue, std::span<const BlockMove> moves, DeviceBlockMove* list,
                             bool inwards) {
  FT_CHECK(static_cast<int64_t>(moves.size()) <= max_moves_);
  for (size_t i = 0; i < images_.size(); ++i) {
    if (!images_[i].has_bytes()) continue;
    MoveBlocksArgs args = images_[i].args;
    args.moves = list;
    args.inwards = inwards ? 1 : 0;
    for (const BlockMove& move : moves) {
      if (static_cast<size_t>(move.part) != i) continue;
      *list++ = {move.block, move.image, move.parent, move.parent_epoch, move.epoch};
      ++args.num_moves;
    }
    if (args.num_moves > 0) move_blocks(queue, args);
  }
}

}  // namespace foretoken
