#include "device/cuda/cuda_communicator.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <span>
#include <string>

namespace foretoken::cuda {
namespace {

constexpr size_t kFlagBytes = size_t{kCommBlocks} * kMostRanks * sizeof(uint32_t);
constexpr size_t kCountBytes = kCommBlocks * sizeof(uint32_t);

Status failed(const char* what, cudaError_t error) {
  return internal_error(std::string("a communicator of CUDA ranks: ") + what + ": " +
                        cudaGetErrorString(error));
}

// What a rank tells the others.
struct Card {
  int64_t process;
  int32_t ordinal;
  char* region;
  uint32_t* aborted;
  cudaIpcMemHandle_t handle;
};

class CudaCommunicator final : public Communicator {
 public:
  CudaCommunicator(group::RankLink& link, int ordinal) : link_(link), ordinal_(ordinal) {
    view_.rank = link.rank();
    view_.size = link.size();
  }
  ~CudaCommunicator() override;

  Status open(PlanFailure* failure);

  int rank() const override { return view_.rank; }
  int size() const override { return view_.size; }
  const void* handle() const override { return &view_; }
  void abort() override;

 private:
  size_t slot_bytes() const {
    return 2 * static_cast<size_t>(view_.size) * kCommBlocks * kCommBlockBytes;
  }
  Status take_memory();
  Result<char*> open_region(const Card& card);

  group::RankLink& link_;
  const int ordinal_;
  CommView view_{};
  char* region_ = nullptr;       // slots, then flags, acks, counts, sent, received
  uint32_t* aborted_ = nullptr;  // pinned
  std::vector<uint32_t*> aborted_of_process_;
  std::vector<char*> opened_;  // of other processes
};

CudaCommunicator::~CudaCommunicator() {
  // Peers write nothing after what this rank's last exchange waited for; but where the group ended
  // in the middle of one they may, so that the memory stays.
  if (aborted_ != nullptr && std::atomic_ref(*aborted_).load() != 0) return;
  cudaSetDevice(ordinal_);
  cudaDeviceSynchronize();
  for (char* region : opened_) cudaIpcCloseMemHandle(region);
  cudaFree(region_);
  cudaFreeHost(aborted_);
}

void CudaCommunicator::abort() {
  for (uint32_t* word : aborted_of_process_) std::atomic_ref(*word).store(1);
}

Status CudaCommunicator::take_memory() {
  cudaError_t error = cudaSetDevice(ordinal_);
  const size_t bytes = slot_bytes() + kFlagBytes + 4 * kCountBytes;
  if (error == cudaSuccess) error = cudaMalloc(&region_, bytes);
  if (error == cudaSuccess) error = cudaMemset(region_, 0, bytes);
  if (error == cudaSuccess) {
    error = cudaHostAlloc(&aborted_, sizeof(uint32_t), cudaHostAllocMapped | cudaHostAllocPortable);
  }
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return failed("taking memory", error);
  *aborted_ = 0;
  return {};
}

Status CudaCommunicator::open(PlanFailure* failure) {
  FT_RETURN_IF_ERROR(take_memory());
  Card card{getpid(), ordinal_, region_, aborted_, {}};
  const cudaError_t error = cudaIpcGetMemHandle(&card.handle, region_);
  if (error != cudaSuccess) cudaGetLastError();  // only other processes need it
  std::vector<Card> cards(static_cast<size_t>(view_.size));
  FT_RETURN_IF_ERROR(link_.all_gather(std::as_bytes(std::span(&card, 1)),
                                      std::as_writable_bytes(std::span(cards)),
                                      "meeting the other CUDA devices"));
  for (int rank = 0; rank < view_.size; ++rank) {
    const Card& other = cards[static_cast<size_t>(rank)];
    FT_ASSIGN_OR_RETURN(char* region,
                        rank == view_.rank ? Result<char*>(region_) : open_region(other));
    view_.slots[rank] = region;
    view_.flags[rank] = reinterpret_cast<uint32_t*>(region + slot_bytes());
    view_.acks[rank] = reinterpret_cast<uint32_t*>(region + slot_bytes() + kFlagBytes);
    if (other.process == getpid()) aborted_of_process_.push_back(other.aborted);
  }
  view_.counts = reinterpret_cast<uint32_t*>(region_ + slot_bytes() + kFlagBytes + kCountBytes);
  view_.sent = view_.counts + kCommBlocks;
  view_.received = view_.sent + kCommBlocks;
  view_.aborted = aborted_;
  view_.failure = failure;
  return {};
}

Result<char*> CudaCommunicator::open_region(const Card& card) {
  if (card.process != getpid()) {
    void* region = nullptr;
    const cudaError_t error =
        cudaIpcOpenMemHandle(&region, card.handle, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess) return failed("opening the memory of another process", error);
    opened_.push_back(static_cast<char*>(region));
    return static_cast<char*>(region);
  }
  int reaches = 0;
  cudaDeviceCanAccessPeer(&reaches, ordinal_, card.ordinal);
  if (reaches == 0) {
    return unsupported("CUDA devices " + std::to_string(ordinal_) + " and " +
                       std::to_string(card.ordinal) +
                       " cannot reach each other's memory; use devices that are joined by NVLink "
                       "or lower --tensor-parallel-size");
  }
  const cudaError_t error = cudaDeviceEnablePeerAccess(card.ordinal, 0);
  cudaGetLastError();
  if (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled) {
    return failed("reaching another device", error);
  }
  return card.region;
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_communicator(group::RankLink& link, int ordinal,
                                                        PlanFailure* failure) {
  if (link.size() > kMostRanks) {
    return unsupported("--tensor-parallel-size " + std::to_string(link.size()) + ": at most " +
                       std::to_string(kMostRanks) + " CUDA devices work together");
  }
  auto made = std::make_unique<CudaCommunicator>(link, ordinal);
  FT_RETURN_IF_ERROR(made->open(failure));
  return std::unique_ptr<Communicator>(std::move(made));
}

}  // namespace foretoken::cuda
