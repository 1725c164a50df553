#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/communicator.h"
#include "group/rank_link.h"

namespace foretoken::cpu {

// Collectives over a link, on the queue's worker thread. Allocates nothing after it is made. A
// failed link is an exception, which becomes the queue's error.
class CpuCommunicator final : public Communicator {
 public:
  // `max_row_bytes`: of the largest row that a rank contributes.
  CpuCommunicator(group::RankLink& link, int64_t max_row_bytes);

  int rank() const override { return link_.rank(); }
  int size() const override { return link_.size(); }
  const void* handle() const override { return this; }
  int64_t exchange_ns() const override { return exchange_ns_.load(std::memory_order_relaxed); }
  void abort() override;

  // Bytes that a rank may contribute to one exchange.
  size_t piece_bytes() const { return piece_bytes_; }
  // Where this rank puts what it contributes.
  std::byte* mine() { return mine_.data(); }
  // Room for as many bytes of each rank, written by all_gather too.
  std::byte* theirs() { return all_.data(); }
  // [size, bytes] of all ranks, valid until the next exchange; `bytes` is the same on all.
  const std::byte* all_gather(size_t bytes, const char* what);
  // As of RankLink. `parts` is room to list them.
  std::span<group::PeerBytes> parts() { return parts_; }
  void exchange(std::span<const group::PeerBytes> parts, const char* what);
  // `data` of rank 0 replaces that of the others.
  void broadcast(std::span<std::byte> data, const char* what);
  // To and from one rank, in order. `post` never waits for it; `flush`, after the receives of what
  // the others posted meanwhile, until nothing is left to go.
  void send(int peer, std::span<const std::byte> data, const char* what);
  void post(int peer, std::span<const std::byte> data, const char* what);
  void flush(const char* what);
  void receive(int peer, std::span<std::byte> data, const char* what);

 private:
  group::RankLink& link_;
  const size_t piece_bytes_;
  std::vector<std::byte> mine_;
  std::vector<std::byte> all_;
  std::vector<group::PeerBytes> parts_;  // one for each rank
  std::atomic<int64_t> exchange_ns_{0};
};

}  // namespace foretoken::cpu
