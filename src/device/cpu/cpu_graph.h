#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/queue.h"

namespace foretoken::cpu {

class CpuGraph;

// What a queue does in one go. Each kind has its own arguments: those of an op are its own.
enum class TaskKind : uint8_t { kOp, kCopy, kFill, kCall, kRecord, kReplay };

struct CopyArgs {
  void* dst;
  const void* src;
  size_t bytes;
};

struct FillArgs {
  void* dst;
  int byte_value;
  size_t bytes;
};

struct CallArgs {
  void (*function)(void*);
  void* context;
};

struct RecordArgs {
  std::atomic<uint64_t>* word;
  uint64_t value;
};

struct ReplayArgs {
  const CpuGraph* graph;
};

// The kind of a task; `op` is the op's number, or 0.
struct TaskName {
  TaskKind kind = TaskKind::kOp;
  uint16_t op = 0;
};

// Recorded tasks, what CUDA graph nodes are on the CPU. An engine keeps hundreds of graphs, so each
// task takes the bytes of its arguments and no more. A copy has no room to grow. Written by the
// thread that captures, then read only.
class CpuGraph final : public Graph {
 public:
  // Copies `args_bytes` bytes (at most kMaxOpArgs) from `args`.
  void add(TaskName name, const void* args, size_t args_bytes);
  // Forgets all, but keeps the memory.
  void clear();

  int num_nodes() const override { return static_cast<int>(nodes_.size()); }
  // Of task and arguments, in bytes.
  size_t num_bytes() const { return nodes_.size() * sizeof(Node) + args_.size(); }

  // Calls `run(TaskName, const void* args)` for each task in order; `args` is aligned for any type.
  template <class F>
  void for_each(const F& run) const {
    for (const Node& node : nodes_) run(node.name, args_.data() + node.args_at);
  }

 private:
  struct Node {
    TaskName name;
    uint32_t args_at = 0;  // in args_
  };

  std::vector<Node> nodes_;
  std::vector<std::byte> args_;
};

}  // namespace foretoken::cpu
