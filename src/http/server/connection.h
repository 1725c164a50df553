#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/event_loop.h"
#include "http/message/stream.h"
#include "http/message/write_progress.h"
#include "http/server/exchange_core.h"
#include "http/server/request_check.h"
#include "http/server/request_parser.h"
#include "http/server/server_state.h"

namespace foretoken::http {

// One connection: a coroutine that receives a request, gives it to its handler and waits until the
// answer is sent, then the next one. Beside it one read is always pending, so that a client that
// goes is noticed at once (one that only closes its side has its answer), and the exchange sends by
// itself; both wake the coroutine, which also holds the only timer. Of its loop's thread; owned by
// what is pending. A surplus one is told to come later, in answer to its first request.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Whose it is, as in Request.
  struct Peer {
    std::string client;
    int port_number = -1;
  };

  Connection(std::shared_ptr<ServerState> state, EventLoop& loop,
             std::shared_ptr<const ExchangeHost> host, Stream stream, Peer peer,
             bool surplus = false);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  // Looks again at what the server wants (draining, stopping).
  void notify();

 private:
  using Clock = std::chrono::steady_clock;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  Awaitable<void> run();
  Awaitable<bool> handshake();
  // False when the connection is to end.
  Awaitable<bool> serve_request();
  // The head and the body of the next request; false when there is none, with `refusal_` where that
  // is to be answered.
  Awaitable<bool> receive_head(RequestParser& parser);
  Awaitable<bool> receive_body(RequestParser& parser);
  // When the request must have come that otherwise has until `deadline`: earlier while the server
  // drains.
  Clock::time_point receive_deadline(Clock::time_point deadline);
  // The answer to a request that did not come in time.
  ParseError too_late(const char* message) const;
  Awaitable<bool> answer_by_itself(const OwnAnswer& answer, bool keep_alive);
  Awaitable<void> refuse(const ParseError& error);
  std::string refused_path() const;
  Awaitable<bool> finish_answer();
  Awaitable<void> linger();
  // Until something changed (true) or the time has come.
  Awaitable<bool> changed(Clock::time_point deadline);

  void feed(RequestParser& parser);
  void make_exchange(AnswerFrame frame);
  AnswerFrame frame_of(const RequestHead& head) const;
  void dispatch(const Route& route);
  void end_exchange();
  void note(int status);
  void set_busy(bool busy);
  bool closing() const;
  // Whether another request can come, or has come before the client closed its side.
  bool can_go_on() const;
  // Of a client that has closed its side: whether it still waits for its answer shows by writing.
  void ask_whether_gone();

  void start_read();
  void on_read(const boost::system::error_code& ec, size_t num_bytes);
  void flush();
  void write_next();
  void on_written(const boost::system::error_code& ec, size_t num_bytes);
  // Whether the client's system has taken nothing for too long.
  bool stalled();

  const std::shared_ptr<ServerState> state_;
  EventLoop& loop_;
  const std::shared_ptr<const ExchangeHost> host_;
  Stream stream_;
  const Peer peer_;
  const bool surplus_;
  boost::asio::steady_timer timer_;
  bool changed_ = false;

  std::string input_;  // received, not yet taken by the parser
  std::vector<char> read_buffer_;
  bool reading_ = false;
  bool input_ended_ = false;  // the client has closed its side, or has gone
  bool asked_ = false;        // whether it has gone
  bool first_request_ = true;
  bool busy_ = false;
  bool unread_body_ = false;  // the client may still be sending what nobody will read

  // The request being received or answered.
  Request request_;
  RequestHead head_;
  std::string_view pattern_;  // of its route; "" where none has its path
  std::optional<ParseError> refusal_;
  std::optional<Clock::time_point> drain_end_;  // of receiving, once the server drains
  std::shared_ptr<ExchangeCore> exchange_;
  bool in_flight_ = false;

  std::vector<std::string> outgoing_;
  size_t outgoing_offset_ = 0;  // in the first of them
  bool outgoing_last_ = false;
  bool interim_ = false;  // what is being written is "100 Continue"
  bool writing_ = false;
  bool answer_done_ = false;
  bool write_failed_ = false;
  uint64_t num_answer_bytes_ = 0;
  WriteProgress progress_;
};

}  // namespace foretoken::http
