#pragma once
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl_library.h"
#include "group/rank_link.h"

namespace foretoken::cuda {

inline constexpr int64_t kNcclPieceBytes = 8 << 20;  // that a rank gives another at once
inline constexpr int64_t kNcclWordBytes = 1 << 20;   // of lists that go with it

// Moves bytes between ranks on GPUs with NCCL, on a stream, inside of captured graphs as well.
// Whatever is summed is summed by kernels in the order of ranks: NCCL's own sums depend on the
// number of elements. Calls of one thread; errors go to the queue by PlanFailure.
class NcclExchange {
 public:
  // All ranks of `link` at once, on different devices. Blocks until they have met; each pair is
  // connected, because a captured exchange must not be the first one.
  static Result<std::unique_ptr<NcclExchange>> make(group::RankLink& link, int ordinal,
                                                    PlanFailure* failure);
  ~NcclExchange();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Every rank's bytes, in the order of ranks.
  void all_gather(const void* mine, void* all, int64_t bytes, cudaStream_t stream);
  void broadcast(void* data, int64_t bytes, int root, cudaStream_t stream);
  // What one rank gives another; 0 bytes are no message.
  struct Message {
    void* data;
    int64_t bytes;
  };
  using MessageOf = std::function<Message(int peer)>;
  // With each other rank at once: what it gets, and where its own comes.
  void exchange(const MessageOf& sent, const MessageOf& received, cudaStream_t stream);
  // Across hosts a message up to NCCL's buffer (NCCL_BUFFSIZE) leaves before the peer receives it.
  void send(const void* data, int64_t bytes, int peer, cudaStream_t stream);
  void receive(void* data, int64_t bytes, int peer, cudaStream_t stream);

  // Memory of the device for one exchange: what this rank gives, and what it is given.
  char* outbox() const { return outbox_; }                                 // kNcclPieceBytes
  char* inbox(int rank) const { return inbox_ + rank * kNcclPieceBytes; }  // one after the other
  uint64_t* words() const { return words_; }                               // kNcclWordBytes

  // Ends what waits, and all later calls. Any thread.
  void abort();

 private:
  NcclExchange(const NcclLibrary& nccl, const group::RankLink& link, int ordinal,
               PlanFailure* failure)
      : nccl_(nccl), rank_(link.rank()), size_(link.size()), ordinal_(ordinal), failure_(failure) {}
  Status meet(group::RankLink& link);
  Status take_memory();
  Status connect();
  Status wait(cudaStream_t stream);
  // Runs `calls` unless the group has ended.
  void guarded(const std::function<NcclResult()>& calls);
  Status failed(const char* what, NcclResult result) const;

  const NcclLibrary& nccl_;
  const int rank_;
  const int size_;
  const int ordinal_;
  PlanFailure* const failure_;
  NcclComm comm_ = nullptr;
  char* outbox_ = nullptr;  // all of the memory begins here
  char* inbox_ = nullptr;
  uint64_t* words_ = nullptr;
  std::timed_mutex calls_;  // held around NCCL's calls, so that an abort comes between them
  std::atomic<bool> aborted_{false};
  std::thread aborter_;
};

}  // namespace foretoken::cuda
