// How a connection reads and writes, beside its coroutine.
#include <utility>

#include "http/server/connection.h"

namespace foretoken::http {
namespace {

using boost::asio::awaitable;
using boost::system::error_code;

constexpr size_t kReadBytes = size_t{8} << 10;

}  // namespace

awaitable<void> Connection::linger() {
  if (write_failed_ || state_->stopping) co_return;
  // The connection lives until this is over too.
  stream_.finish_sending([self = shared_from_this()](const error_code&, size_t) {});
  const Timeouts& timeouts = state_->config.timeouts;
  const auto end = Clock::now() + (unread_body_ ? timeouts.linger_unread : timeouts.linger);
  // Bytes of the client that nobody reads would make the system throw away what it has not sent
  // yet.
  while (!input_ended_ && !state_->stopping) {
    input_.clear();
    start_read();
    const bool woken = co_await changed(end);
    if (!woken || Clock::now() >= end) break;
  }
}

void Connection::start_read() {
  if (reading_ || input_ended_) return;
  reading_ = true;
  if (read_buffer_.empty()) read_buffer_.resize(kReadBytes);
  stream_.read_some(boost::asio::buffer(read_buffer_),
                    [self = shared_from_this()](const error_code& ec, size_t num_bytes) {
                      self->on_read(ec, num_bytes);
                    });
}

void Connection::on_read(const error_code& ec, size_t num_bytes) {
  reading_ = false;
  input_.append(read_buffer_.data(), num_bytes);
  if (ec) input_ended_ = true;
  if (ec && !Stream::is_end(ec)) write_failed_ = true;
  notify();
}

void Connection::ask_whether_gone() {
  if (std::exchange(asked_, true)) return;
  stream_.watch_peer();
  exchange_->add_passed_over();
  flush();
}

void Connection::flush() {
  if (writing_ || write_failed_ || exchange_ == nullptr) return;
  ExchangeCore::Output output = exchange_->take();
  outgoing_ = std::move(output.pieces);
  outgoing_last_ = output.last;
  if (output.broken) write_failed_ = true;
  if (!outgoing_.empty() && !write_failed_) {
    write_next();
  } else if (outgoing_last_) {
    answer_done_ = !write_failed_;
    notify();
  }
}

void Connection::write_next() {
  if (!writing_) progress_.begin(Clock::now());
  writing_ = true;
  std::vector<boost::asio::const_buffer> buffers;
  size_t offset = outgoing_offset_;
  for (const std::string& piece : outgoing_) {
    buffers.emplace_back(piece.data() + offset, piece.size() - offset);
    offset = 0;
  }
  stream_.write_some(buffers, [self = shared_from_this()](const error_code& ec, size_t num_bytes) {
    self->on_written(ec, num_bytes);
  });
}

void Connection::on_written(const error_code& ec, size_t num_bytes) {
  if (ec) {
    writing_ = false;
    write_failed_ = true;
    notify();
    return;
  }
  size_t num_done = 0;
  outgoing_offset_ += num_bytes;
  while (num_done < outgoing_.size() && outgoing_offset_ >= outgoing_[num_done].size()) {
    outgoing_offset_ -= outgoing_[num_done].size();
    ++num_done;
  }
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(num_done));
  if (interim_) {
    writing_ = interim_ = !outgoing_.empty();
    if (writing_) return write_next();
    return flush();
  }
  num_answer_bytes_ += num_bytes;
  if (!outgoing_.empty()) {
    write_next();
  } else {
    writing_ = false;
    if (outgoing_last_) {
      answer_done_ = true;
      notify();
    } else {
      flush();
    }
  }
  if (exchange_ != nullptr) exchange_->sent(num_bytes);
}

bool Connection::stalled() {
  const auto now = Clock::now();
  progress_.note(now, num_answer_bytes_, stream_.num_unacknowledged());
  if (!writing_) progress_.begin(now);
  return progress_.silence(now) >= state_->config.timeouts.write;
}

}  // namespace foretoken::http
