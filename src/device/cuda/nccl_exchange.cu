#include "device/cuda/nccl_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>

namespace foretoken::cuda {
namespace {

using namespace std::chrono_literals;
constexpr auto kTimeOfACall = 2s;  // an abort waits so long for a call of NCCL to return
constexpr auto kBetweenLooks = 1ms;

size_t bytes_of(int64_t bytes) { return static_cast<size_t>(bytes); }

}  // namespace

Result<std::unique_ptr<NcclExchange>> NcclExchange::make(group::RankLink& link, int ordinal,
                                                         PlanFailure* failure) {
  FT_ASSIGN_OR_RETURN(const NcclLibrary* nccl, open_nccl());
  std::unique_ptr<NcclExchange> made(new NcclExchange(*nccl, link, ordinal, failure));
  FT_RETURN_IF_ERROR(made->take_memory());
  FT_RETURN_IF_ERROR(made->meet(link));
  FT_RETURN_IF_ERROR(made->connect());
  return std::move(made);
}

NcclExchange::~NcclExchange() {
  cudaSetDevice(ordinal_);
  if (aborter_.joinable()) {
    aborter_.join();
  } else if (comm_ != nullptr) {
    cudaDeviceSynchronize();
    nccl_.comm_destroy(comm_);
  }
  cudaFree(outbox_);
}

Status NcclExchange::failed(const char* what, NcclResult result) const {
  const char* last = nccl_.get_last_error(comm_);
  std::string text = std::string("NCCL, ") + what + ": " + nccl_.get_error_string(result);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return internal_error(text);
}

Status NcclExchange::take_memory() {
  cudaError_t error = cudaSetDevice(ordinal_);
  const int64_t bytes = (size_ + 1) * kNcclPieceBytes + kNcclWordBytes;
  if (error == cudaSuccess) error = cudaMalloc(&outbox_, bytes_of(bytes));
  if (error == cudaSuccess) error = cudaMemset(outbox_, 0, bytes_of(bytes));
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    return internal_error(std::string("memory for NCCL's messages: ") + cudaGetErrorString(error));
  }
  inbox_ = outbox_ + kNcclPieceBytes;
  words_ = reinterpret_cast<uint64_t*>(inbox_ + size_ * kNcclPieceBytes);
  return {};
}

Status NcclExchange::meet(group::RankLink& link) {
  NcclUniqueId id{};
  NcclResult result = rank_ == 0 ? nccl_.get_unique_id(&id) : kNcclSuccess;
  if (result != kNcclSuccess) return failed("beginning a group", result);
  FT_RETURN_IF_ERROR(
      link.broadcast(0, std::as_writable_bytes(std::span(&id, 1)), "beginning a group of NCCL"));
  result = nccl_.comm_init_rank(&comm_, size_, id, rank_);
  return result == kNcclSuccess ? Status() : failed("meeting the other GPUs", result);
}

Status NcclExchange::connect() {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
    return internal_error("cannot create a CUDA stream for NCCL");
  }
  constexpr int64_t kFew = 256;
  all_gather(outbox_, inbox_, kFew, stream);
  broadcast(outbox_, kFew, 0, stream);
  exchange([&](int) { return Message{outbox_, kFew}; },
           [&](int peer) { return Message{inbox(peer), kFew}; }, stream);
  const Status done = wait(stream);
  cudaStreamDestroy(stream);
  if (failure_->reason[0] != '\0') return internal_error(failure_->reason);
  return done;
}

Status NcclExchange::wait(cudaStream_t stream) {
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaSuccess) return {};
    if (state != cudaErrorNotReady) {
      return internal_error(std::string("NCCL's first exchange: ") + cudaGetErrorString(state));
    }
    NcclResult error = kNcclSuccess;
    nccl_.comm_get_async_error(comm_, &error);
    if (error != kNcclSuccess) return failed("its first exchange", error);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void NcclExchange::guarded(const std::function<NcclResult()>& calls) {
  const std::lock_guard lock(calls_);
  if (aborted_.load()) return;
  const NcclResult result = calls();
  if (result == kNcclSuccess) return;
  const std::string text = failed("an exchange", result).message();
  std::strncpy(failure_->reason, text.c_str(), sizeof failure_->reason - 1);
  std::atomic_ref(failure_->failed).store(kGroupEnded, std::memory_order_release);
}

void NcclExchange::all_gather(const void* mine, void* all, int64_t bytes, cudaStream_t stream) {
  guarded([&] { return nccl_.all_gather(mine, all, bytes_of(bytes), kNcclBytes, comm_, stream); });
}

void NcclExchange::broadcast(void* data, int64_t bytes, int root, cudaStream_t stream) {
  guarded([&] {
    return nccl_.broadcast(data, data, bytes_of(bytes), kNcclBytes, root, comm_, stream);
  });
}

void NcclExchange::exchange(const MessageOf& sent, const MessageOf& received, cudaStream_t stream) {
  guarded([&] {
    NcclResult result = nccl_.group_start();
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const Message out = sent(peer);
      const Message in = received(peer);
      if (out.bytes > 0 && result == kNcclSuccess) {
        result = nccl_.send(out.data, bytes_of(out.bytes), kNcclBytes, peer, comm_, stream);
      }
      if (in.bytes > 0 && result == kNcclSuccess) {
        result = nccl_.receive(in.data, bytes_of(in.bytes), kNcclBytes, peer, comm_, stream);
      }
    }
    const NcclResult ended = nccl_.group_end();
    return result == kNcclSuccess ? ended : result;
  });
}

void NcclExchange::send(const void* data, int64_t bytes, int peer, cudaStream_t stream) {
  guarded([&] { return nccl_.send(data, bytes_of(bytes), kNcclBytes, peer, comm_, stream); });
}

void NcclExchange::receive(void* data, int64_t bytes, int peer, cudaStream_t stream) {
  guarded([&] { return nccl_.receive(data, bytes_of(bytes), kNcclBytes, peer, comm_, stream); });
}

// NCCL's abort ends its kernels at once, but returns only when no graph holds an exchange any more:
// so it has a thread.
void NcclExchange::abort() {
  if (aborted_.exchange(true)) return;
  std::atomic_ref(failure_->failed).store(kGroupEnded, std::memory_order_release);
  aborter_ = std::thread([this] {
    {
      const std::unique_lock no_call(calls_, kTimeOfACall);
    }  // later ones see aborted_
    cudaSetDevice(ordinal_);
    nccl_.comm_abort(comm_);
  });
}

}  // namespace foretoken::cuda
