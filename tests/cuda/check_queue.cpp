#include <chrono>

#include "check.h"
#include "kernels/step/delay.h"

namespace foretoken::check {
namespace {

// A wait and a fill of no memory cannot be recorded. The queue goes on all the same.
void check_failed_capture(Queue& queue, Event event) {
  using std::chrono::milliseconds;
  for (const uint64_t value : {10, 11}) {
    queue.begin_capture();
    queue.launch(DelayArgs{50});
    if (value == 10) (void)queue.wait(event, 1000, milliseconds(10));
    if (value == 11) queue.fill(nullptr, 1, 1000);
    queue.launch(DelayArgs{50});
    const auto none = queue.end_capture();
    const Status why = queue.capture_error();
    queue.record(event, value);
    const Status after = queue.wait(event, value, milliseconds(120'000));
    report(none == nullptr && !why.ok() && after.ok(), "failed capture", why.message());
  }
}

}  // namespace

void check_queue(Gpu& gpu) {
  Pool pool(gpu);
  Queue& queue = *gpu.queue;
  auto* word = static_cast<std::atomic<uint64_t>*>(pool.take(64, MemoryKind::kPinned));
  const Event event{word};
  using std::chrono::milliseconds;

  constexpr std::chrono::microseconds kDelay{300};
  const auto begin = std::chrono::steady_clock::now();
  queue.launch(DelayArgs{static_cast<int32_t>(kDelay.count())});
  queue.record(event, 7);
  // A host that stood still in between sees nothing early.
  const bool early = word->load() == 7 && std::chrono::steady_clock::now() - begin < kDelay;
  const Status reached = queue.wait(event, 7, milliseconds(120'000));
  report(!early && reached.ok() && word->load() == 7, "record and wait", reached.message());
  const Status late = queue.wait(event, 8, milliseconds(20));
  report(late.code() == StatusCode::kAborted, "wait times out", late.message());

  auto* bytes = pool.array<uint8_t>(1000);
  queue.begin_capture();
  queue.fill(bytes, 3, 1000);
  queue.launch(DelayArgs{50});
  queue.fill(bytes + 500, 4, 10);
  queue.record(event, 9);
  auto graph = queue.end_capture();
  gpu.drain("capture");
  const bool recorded_only = word->load() == 7 && download(gpu, bytes, 1000)[0] == 0;
  queue.replay(*graph);
  queue.replay(*graph);
  const Status replayed = queue.wait(event, 9, milliseconds(120'000));
  gpu.drain("replay");
  const auto after = download(gpu, bytes, 1000);
  report(recorded_only && replayed.ok() && graph->num_nodes() == 4 && after[499] == 3 &&
             after[500] == 4 && after[510] == 3,
         "capture and replay", text("%d nodes", graph->num_nodes()));
  check_failed_capture(queue, event);
}

}  // namespace foretoken::check
