#pragma once
#include <foretoken/status.h>

#include <cstdint>
#include <string>

namespace foretoken {

struct CommunicatorOptions {
  int64_t max_row_bytes = 0;        // of the longest row that a rank contributes
  bool avoids_peer_memory = false;  // GPUs: through NCCL even where devices reach each other
  // Ops of it and of another one may run at the same time (Queue::fork): they leave each other room
  // on the device, whatever else waits for them there.
  bool in_lanes = false;
};

// What the queues of several ranks combine their results with, inside of ops
// (kernels/comm/collectives.h). One for each rank, made at the same time
// (Device::make_communicator); it outlives the queue that uses it. It serves collectives or a ring
// (kernels/comm/stage_exchange.h), not both. All ranks enqueue the same collectives in the same
// order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // For the ops of this device.
  virtual const void* handle() const = 0;
  // What it goes through, where there is a choice; for the log.
  virtual std::string route() const { return {}; }
  // Whether its kernels hold the device while they wait for those of other ranks, so that two
  // communicators whose ops run at the same time may wait for each other crosswise.
  virtual bool waits_crosswise() const { return false; }
  // Nanoseconds that this rank has spent exchanging so far, waiting for the others included; 0
  // where the device does not measure it. Any thread.
  virtual int64_t exchange_ns() const { return 0; }
  // Ends collectives of this rank that wait, and all later ones. Any thread. The ranks on the other
  // side are told through their links.
  virtual void abort() = 0;
};

}  // namespace foretoken
