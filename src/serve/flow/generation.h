#pragma once
#include <foretoken/engine.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/message/exchange.h"
#include "serve/answer/answer_format.h"
#include "serve/answer/output_sum.h"
#include "serve/flow/beam_search.h"
#include "serve/flow/generation_list.h"
#include "serve/flow/request_gate.h"
#include "serve/flow/work_pool.h"
#include "serve/metrics/serve_observer.h"

namespace foretoken {

// What one HTTP request wants of the engine, and how it is answered.
struct GenerationJob {
  std::shared_ptr<http::Exchange> exchange;  // null: nobody waits (a response in the background)
  std::string id;                            // as the answer names it
  std::vector<Request> requests;
  bool stream = false;
  int stream_interval = 1;  // tokens of a choice that an event waits for, after its first
  std::optional<float> beam_length_penalty = {};  // the choices are found by beam search
  std::unique_ptr<AnswerFormat> format;
  RequestGate::Ticket ticket;
  http::Headers headers = {};  // of an answer that is no error
  RequestOrigin origin = {};
};

RequestOrigin origin_of(const http::Request& request);

// Runs the engine requests of one HTTP request and writes the answer. The engine's output thread
// only adds what came and posts one drain to the connection's thread, where events are formatted
// and written; whole answers are formatted on the pool. A stream whose reader is slow has one
// larger event later, so that it holds no more than its text. When the client goes, the engine
// requests end within a step.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Parts {
    Engine& engine;
    WorkPool& pool;
    GenerationList& list;
    const ServeObserver& observer;
  };

  // Submits the requests. Everything that goes wrong is answered. The parts outlive what they
  // began.
  static std::shared_ptr<Generation> start(const Parts& parts, GenerationJob job);

  Generation(const Parts& parts, GenerationJob job);
  ~Generation();

  const std::string& id() const { return job_.id; }
  // Whether the first output has come. Any thread.
  bool has_output();
  // Writes a comment into a stream of events that has said nothing for `silence`. Any thread.
  void keep_alive(std::chrono::milliseconds silence);
  // Ends the engine requests soon, with what they have. Any thread.
  void abort();

 private:
  // Of one choice in a stream.
  struct Pending {
    ChoiceOutput news;
    bool any = false;    // there are news
    bool begun = false;  // an event was told
  };
  struct One {
    std::string engine_id;
    std::shared_ptr<BeamSearch> beams;  // what runs in place of the engine's request, or null
    std::vector<Pending> pending;       // by choice, in a stream
    OutputSum sum;                      // otherwise
    bool finished = false;
  };

  void submit_all();
  void receive(size_t index, const RequestOutput& output);
  bool add_pending(One& one, const RequestOutput& output);
  bool is_due(const Pending& pending) const;
  void fail(const Status& status);
  void post_answer();
  void drain();
  void begin_stream();
  void write_comment(std::chrono::milliseconds silence);
  void write_events(std::vector<std::pair<size_t, ChoiceOutput>> news, bool last);
  void write_before_error(std::vector<std::pair<size_t, ChoiceOutput>> news);
  void answer_whole();
  void answer_error(const ServeError& error);
  void finish();

  const Parts parts_;
  GenerationJob job_;  // requests move to the engine

  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::vector<One> all_;
  size_t num_open_ = 0;
  bool posted_ = false;  // a drain, or the whole answer, is on its way
  bool ended_ = false;   // nothing that comes counts any more
  bool has_output_ = false;
  Status error_;  // the first one

  // Of the last bytes of a stream, or its start.
  std::atomic<std::chrono::steady_clock::time_point> last_write_{std::chrono::steady_clock::now()};

  // The thread of the connection, or the one that answers whole.
  bool stream_begun_ = false;
};

}  // namespace foretoken
