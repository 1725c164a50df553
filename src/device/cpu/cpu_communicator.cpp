#include "device/cpu/cpu_communicator.h"

#include <algorithm>
#include <stdexcept>

#include "base/check.h"
#include "base/clock.h"
#include "base/result.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kLeastPieceBytes = int64_t{256} << 10;

void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// Adds its lifetime to a counter.
class ExchangeTime {
 public:
  explicit ExchangeTime(std::atomic<int64_t>& sum_ns) : sum_ns_(sum_ns) {}
  ~ExchangeTime() { sum_ns_.fetch_add(now_ns() - begin_ns_, std::memory_order_relaxed); }
  ExchangeTime(const ExchangeTime&) = delete;
  ExchangeTime& operator=(const ExchangeTime&) = delete;

 private:
  std::atomic<int64_t>& sum_ns_;
  const int64_t begin_ns_ = now_ns();
};

}  // namespace

CpuCommunicator::CpuCommunicator(group::RankLink& link, int64_t max_row_bytes)
    : link_(link),
      piece_bytes_(static_cast<size_t>(std::max(kLeastPieceBytes, max_row_bytes))),
      mine_(piece_bytes_),
      all_(piece_bytes_ * static_cast<size_t>(link.size())),
      parts_(static_cast<size_t>(link.size())) {}

void CpuCommunicator::abort() { link_.abort(aborted("the engine has ended")); }

const std::byte* CpuCommunicator::all_gather(size_t bytes, const char* what) {
  FT_CHECK(bytes <= piece_bytes_);
  const std::span<std::byte> all(all_.data(), bytes * static_cast<size_t>(size()));
  const ExchangeTime time(exchange_ns_);
  check(link_.all_gather({mine_.data(), bytes}, all, what));
  return all_.data();
}

void CpuCommunicator::exchange(std::span<const group::PeerBytes> parts, const char* what) {
  const ExchangeTime time(exchange_ns_);
  check(link_.exchange(parts, what));
}

void CpuCommunicator::broadcast(std::span<std::byte> data, const char* what) {
  const ExchangeTime time(exchange_ns_);
  check(link_.broadcast(0, data, what));
}

void CpuCommunicator::send(int peer, std::span<const std::byte> data, const char* what) {
  const ExchangeTime time(exchange_ns_);
  check(link_.send(peer, data, what));
}

void CpuCommunicator::post(int peer, std::span<const std::byte> data, const char* what) {
  const ExchangeTime time(exchange_ns_);
  check(link_.post(peer, data, what));
}

void CpuCommunicator::flush(const char* what) {
  const ExchangeTime time(exchange_ns_);
  check(link_.flush(what));
}

void CpuCommunicator::receive(int peer, std::span<std::byte> data, const char* what) {
  const ExchangeTime time(exchange_ns_);
  check(link_.receive(peer, data, what));
}

}  // namespace foretoken::cpu
