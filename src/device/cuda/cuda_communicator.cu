#include "device/cuda/cuda_communicator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <string>

#include "device/cuda/nccl_exchange.h"

namespace foretoken::cuda {
namespace {

constexpr size_t kFlagBytes = size_t{kCommBlocks} * kMaxRanks * sizeof(uint32_t);
constexpr size_t kCountBytes = kCommBlocks * sizeof(uint32_t);
constexpr size_t kRowCountBytes = kRowBlocks * sizeof(uint32_t);
constexpr int kNothingYet = 0xff;  // a byte of a slot of rows that nobody has written

Status failed(const char* what, cudaError_t error) {
  return internal_error(std::string("a communicator of CUDA ranks: ") + what + ": " +
                        cudaGetErrorString(error));
}

// Unlike a process number, not the same on another host or in another container.
uint64_t this_process() {
  static const uint64_t drawn = [] {
    std::random_device source;
    return uint64_t{source()} << 32 | source();
  }();
  return drawn;
}

// What a rank tells the others.
struct Card {
  uint64_t process;
  char host[40];  // when it was started, as its kernel names that
  int32_t ordinal;
  char* region;
  uint32_t* aborted;
  cudaIpcMemHandle_t handle;
};

void name_host(Card& card) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  file.read(card.host, sizeof card.host - 1);
}

class PeerCommunicator final : public Communicator {
 public:
  PeerCommunicator(group::RankLink& link, int ordinal, bool in_lanes)
      : link_(link), ordinal_(ordinal) {
    view_.in_lanes = in_lanes;
    view_.rank = link.rank();
    view_.size = link.size();
  }
  ~PeerCommunicator() override;

  // Whether every rank reaches the memory of every other one.
  Result<bool> open(PlanFailure* failure);

  int rank() const override { return view_.rank; }
  int size() const override { return view_.size; }
  const void* handle() const override { return &handle_; }
  std::string route() const override { return "each other's memory"; }
  void abort() override;
  // Which rank this one does not reach; empty: it reaches all.
  const std::string& unreached() const { return unreached_; }

 private:
  size_t slot_bytes() const {
    return 2 * static_cast<size_t>(view_.size) * kCommBlocks * kCommBlockBytes;
  }
  size_t row_slot_bytes() const { return 2 * static_cast<size_t>(view_.size) * kRowSlotBytes; }
  // Of what comes before the slots of rows.
  size_t front_bytes() const {
    return slot_bytes() + kFlagBytes + 4 * kCountBytes + kRowCountBytes;
  }
  Status take_memory();
  Result<char*> open_region(const Card& card);
  Status open_regions(const std::vector<Card>& cards);

  group::RankLink& link_;
  const int ordinal_;
  CommHandle handle_;
  CommView& view_ = handle_.peers;
  char* region_ = nullptr;  // slots, flags, acks, counts, sent, received, row counts, row slots
  uint32_t* aborted_ = nullptr;  // pinned
  std::vector<uint32_t*> aborted_of_process_;
  std::vector<char*> opened_;  // of other processes
  std::string unreached_;
};

PeerCommunicator::~PeerCommunicator() {
  // Peers write nothing after what this rank's last exchange waited for; but where the group ended
  // in the middle of one they may, so that the memory stays.
  if (aborted_ != nullptr && std::atomic_ref(*aborted_).load() != 0) return;
  cudaSetDevice(ordinal_);
  cudaDeviceSynchronize();
  for (char* region : opened_) cudaIpcCloseMemHandle(region);
  cudaFree(region_);
  cudaFreeHost(aborted_);
}

void PeerCommunicator::abort() {
  for (uint32_t* word : aborted_of_process_) std::atomic_ref(*word).store(1);
}

Status PeerCommunicator::take_memory() {
  cudaError_t error = cudaSetDevice(ordinal_);
  const size_t front = front_bytes();
  if (error == cudaSuccess) error = cudaMalloc(&region_, front + row_slot_bytes());
  if (error == cudaSuccess) error = cudaMemset(region_, 0, front);
  if (error == cudaSuccess) error = cudaMemset(region_ + front, kNothingYet, row_slot_bytes());
  if (error == cudaSuccess) {
    error = cudaHostAlloc(&aborted_, sizeof(uint32_t), cudaHostAllocMapped | cudaHostAllocPortable);
  }
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return failed("taking memory", error);
  *aborted_ = 0;
  return {};
}

Result<bool> PeerCommunicator::open(PlanFailure* failure) {
  FT_RETURN_IF_ERROR(take_memory());
  Card card{this_process(), {}, ordinal_, region_, aborted_, {}};
  name_host(card);
  const cudaError_t error = cudaIpcGetMemHandle(&card.handle, region_);
  if (error != cudaSuccess) cudaGetLastError();  // only other processes need it
  std::vector<Card> cards(static_cast<size_t>(view_.size));
  FT_RETURN_IF_ERROR(link_.all_gather(std::as_bytes(std::span(&card, 1)),
                                      std::as_writable_bytes(std::span(cards)),
                                      "meeting the other CUDA devices"));
  const Status opened = open_regions(cards);
  unreached_ = opened.message();
  std::vector<char> reached(cards.size());
  const char mine = opened.ok() ? 1 : 0;
  FT_RETURN_IF_ERROR(link_.all_gather(std::as_bytes(std::span(&mine, 1)),
                                      std::as_writable_bytes(std::span(reached)),
                                      "reaching the other CUDA devices"));
  view_.failure = failure;
  return std::count(reached.begin(), reached.end(), 0) == 0;
}

Status PeerCommunicator::open_regions(const std::vector<Card>& cards) {
  for (int rank = 0; rank < view_.size; ++rank) {
    const Card& other = cards[static_cast<size_t>(rank)];
    const Card& own = cards[static_cast<size_t>(view_.rank)];
    if (std::memcmp(other.host, own.host, sizeof own.host) != 0) {
      return unsupported("rank " + std::to_string(rank) + " is on another host");
    }
    FT_ASSIGN_OR_RETURN(char* region,
                        rank == view_.rank ? Result<char*>(region_) : open_region(other));
    view_.slots[rank] = region;
    view_.flags[rank] = reinterpret_cast<uint32_t*>(region + slot_bytes());
    view_.acks[rank] = reinterpret_cast<uint32_t*>(region + slot_bytes() + kFlagBytes);
    view_.row_slots[rank] = region + front_bytes();
    if (other.process == this_process()) aborted_of_process_.push_back(other.aborted);
  }
  view_.counts = reinterpret_cast<uint32_t*>(region_ + slot_bytes() + kFlagBytes + kCountBytes);
  view_.sent = view_.counts + kCommBlocks;
  view_.received = view_.sent + kCommBlocks;
  view_.row_counts = view_.received + kCommBlocks;
  view_.aborted = aborted_;
  return {};
}

Result<char*> PeerCommunicator::open_region(const Card& card) {
  if (card.process != this_process()) {
    void* region = nullptr;
    const cudaError_t error =
        cudaIpcOpenMemHandle(&region, card.handle, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess) {
      cudaGetLastError();
      return failed("opening the memory of another process", error);
    }
    opened_.push_back(static_cast<char*>(region));
    return static_cast<char*>(region);
  }
  int reaches = 0;
  cudaDeviceCanAccessPeer(&reaches, ordinal_, card.ordinal);
  if (reaches == 0) {
    return unsupported("CUDA devices " + std::to_string(ordinal_) + " and " +
                       std::to_string(card.ordinal) + " cannot reach each other's memory");
  }
  const cudaError_t error = cudaDeviceEnablePeerAccess(card.ordinal, 0);
  cudaGetLastError();
  if (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled) {
    return failed("reaching another device", error);
  }
  return card.region;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<NcclExchange> nccl, std::string why)
      : nccl_(std::move(nccl)), why_(std::move(why)) {
    handle_.nccl = nccl_.get();
  }
  int rank() const override { return nccl_->rank(); }
  int size() const override { return nccl_->size(); }
  const void* handle() const override { return &handle_; }
  std::string route() const override { return why_.empty() ? "NCCL" : "NCCL: " + why_; }
  bool waits_crosswise() const override { return true; }
  void abort() override { nccl_->abort(); }

 private:
  std::unique_ptr<NcclExchange> nccl_;
  const std::string why_;
  CommHandle handle_;
};

// Blocks of one lane's collective wait for those of other ranks and must leave the other lane's
// room.
Status check_room_for_lanes(int ordinal) {
  int multiprocessors = 0;
  const cudaError_t status =
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ordinal);
  if (status != cudaSuccess) {
    return internal_error(std::string("cannot ask for multiprocessors: ") +
                          cudaGetErrorString(status));
  }
  if (multiprocessors > 2 * kLaneBlocks) return {};
  return unsupported("--enable-dbo: two lanes need a GPU of more than " +
                     std::to_string(2 * kLaneBlocks) + " multiprocessors, this one has " +
                     std::to_string(multiprocessors) + "; leave it out");
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_communicator(group::RankLink& link, int ordinal,
                                                        const CommunicatorOptions& options,
                                                        PlanFailure* failure) {
  std::string why;
  if (options.in_lanes) FT_RETURN_IF_ERROR(check_room_for_lanes(ordinal));
  if (!options.avoids_peer_memory && link.size() <= kMaxRanks) {
    auto peers = std::make_unique<PeerCommunicator>(link, ordinal, options.in_lanes);
    FT_ASSIGN_OR_RETURN(const bool reached, peers->open(failure));
    if (reached) return std::unique_ptr<Communicator>(std::move(peers));
    why = peers->unreached();
  }
  FT_ASSIGN_OR_RETURN(std::unique_ptr<NcclExchange> nccl,
                      NcclExchange::make(link, ordinal, failure));
  return std::unique_ptr<Communicator>(
      std::make_unique<NcclCommunicator>(std::move(nccl), std::move(why)));
}

}  // namespace foretoken::cuda
