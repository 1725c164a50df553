#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Ops that take steps from stage to stage, around a ring: rank r of the communicator gives to rank
// r + 1 and the last one to rank 0, which begins every step and ends it. `comm` is
// Communicator::handle, of the ring. Each send has its receive, in one order, with the same counts.

// Tells the next stage which rows a step has, or each of its lanes: counts and the live rows' ids,
// positions, slots and KV slots; of two lanes the counts of the step do not come along. Never waits
// for it. Then *counter += 1, where it is not null.
struct SendStepArgs {
  static constexpr Op kOp = Op::kSendStep;
  const void* comm;
  StepTensors tensors;
  int32_t max_rows;  // of a lane, at most 65536
  uint64_t* counter;
  int32_t lane_offset = 0;  // as of PrepareArgs; 0: rows are in one lane
};

void send_step(Queue& queue, const SendStepArgs& args);

// Waits for the rows that the stage before tells. Rows from the live ones to max_rows become
// padding as of PrepareArgs. Spans and logits rows do not come along.
struct ReceiveStepArgs {
  static constexpr Op kOp = Op::kReceiveStep;
  const void* comm;
  StepTensors tensors;
  int32_t max_rows;      // of a lane
  int32_t num_slots;     // the null slot
  const uint64_t* step;  // device step counter
  StepStamps*
      stamps;  // kStepRingSize entries in pinned memory: begin_ns is when they came; or null
  int32_t lane_offset = 0;  // as of SendStepArgs
};

void receive_step(Queue& queue, const ReceiveStepArgs& args);

// The live token rows of x to the next stage. May wait until it takes them.
struct SendRowsArgs {
  static constexpr Op kOp = Op::kSendRows;
  const void* comm;
  const StepCounts* counts;
  const float* x;  // [max_rows, cols]
  int32_t max_rows;
  int32_t cols;
};

void send_rows(Queue& queue, const SendRowsArgs& args);

// Waits for the live token rows of x from the stage before.
struct ReceiveRowsArgs {
  static constexpr Op kOp = Op::kReceiveRows;
  const void* comm;
  const StepCounts* counts;
  float* x;  // [max_rows, cols]
  int32_t max_rows;
  int32_t cols;
};

void receive_rows(Queue& queue, const ReceiveRowsArgs& args);

}  // namespace foretoken
