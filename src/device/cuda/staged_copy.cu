#include "device/cuda/staged_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "base/thread_role.h"

namespace foretoken::cuda {
namespace {

// Whole huge pages; at the bus's speed it takes a tenth of a millisecond.
constexpr size_t kPieceBytes = size_t{4} << 20;
constexpr size_t kMaxLanes = 16;

std::vector<StagedCopy> pieces_of(std::span<const StagedCopy> copies) {
  std::vector<StagedCopy> pieces;
  for (const StagedCopy& copy : copies) {
    for (size_t done = 0; done < copy.bytes; done += kPieceBytes) {
      pieces.push_back(
          {copy.host + done, copy.device + done, std::min(kPieceBytes, copy.bytes - done)});
    }
  }
  return pieces;
}

// What the threads share.
struct Work {
  const int ordinal;
  const CopyWay way;
  const std::vector<StagedCopy> pieces;
  std::atomic<size_t> next = 0;
  std::atomic<cudaError_t> error = cudaSuccess;
};

cudaError_t move(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

// `staging`: pinned, for one piece; null: there is none.
cudaError_t copy_piece(const StagedCopy& piece, CopyWay way, std::byte* staging,
                       cudaStream_t stream) {
  auto* const device = reinterpret_cast<void*>(piece.device);
  std::byte* const near = staging != nullptr ? staging : piece.host;
  if (way == CopyWay::kToHost) {
    const cudaError_t error = move(near, device, piece.bytes, stream);
    if (error == cudaSuccess && staging != nullptr) std::memcpy(piece.host, staging, piece.bytes);
    return error;
  }
  if (staging != nullptr) std::memcpy(staging, piece.host, piece.bytes);
  return move(device, near, piece.bytes, stream);
}

// One piece after the other; while this thread is at its staging memory others have the bus.
void run_lane(Work& work, std::byte* staging) {
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaSetDevice(work.ordinal);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  while (error == cudaSuccess && work.error.load() == cudaSuccess) {
    const size_t i = work.next.fetch_add(1);
    if (i >= work.pieces.size()) break;
    error = copy_piece(work.pieces[i], work.way, staging, stream);
  }
  if (stream != nullptr) (void)cudaStreamDestroy(stream);
  if (error != cudaSuccess) work.error.store(error);
}

void run_lanes(Work& work, size_t num_lanes, std::byte* staging) {
  const auto staging_of = [staging](size_t lane) {
    return staging != nullptr ? staging + lane * kPieceBytes : nullptr;
  };
  std::vector<std::jthread> others;
  try {
    for (size_t lane = 1; lane < num_lanes; ++lane) {
      others.emplace_back([&work, own = staging_of(lane)] {
        set_thread_role(ThreadRole::kOther, "ft-copy");
        run_lane(work, own);
      });
    }
  } catch (const std::system_error&) {
    // The system starts no more of them: those that run share the work.
  }
  run_lane(work, staging_of(0));
}

}  // namespace

cudaError_t copy_staged(int ordinal, std::span<const StagedCopy> copies, CopyWay way) {
  Work work{.ordinal = ordinal, .way = way, .pieces = pieces_of(copies)};
  if (work.pieces.empty()) return cudaSuccess;
  const size_t cores = std::max<size_t>(std::thread::hardware_concurrency(), 1);
  const size_t num_lanes = std::min({cores, kMaxLanes, work.pieces.size()});
  void* staging = nullptr;
  if (cudaHostAlloc(&staging, num_lanes * kPieceBytes, cudaHostAllocPortable) != cudaSuccess) {
    staging = nullptr;
    (void)cudaGetLastError();
  }
  run_lanes(work, num_lanes, static_cast<std::byte*>(staging));
  if (staging != nullptr) (void)cudaFreeHost(staging);
  return work.error.load();
}

}  // namespace foretoken::cuda
