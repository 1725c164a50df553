#include "device/op_list.h"

#include <cstring>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr const char* kOpsOnly = "a list of ops takes nothing but ops";

}  // namespace

void launch_ops(Queue& queue, std::span<const ListedOp> ops) {
  for (const ListedOp& op : ops) queue.launch_op(op.op, op.args.data(), op.args_bytes);
}

void OpList::launch_op(uint16_t op, const void* args, size_t args_bytes) {
  FT_CHECK(args_bytes <= kMaxOpArgs);
  ListedOp& listed = ops_.emplace_back();
  listed.op = op;
  listed.args_bytes = args_bytes;
  std::memcpy(listed.args.data(), args, args_bytes);
}

void OpList::copy(void*, const void*, size_t) { FT_CHECK_MSG(false, kOpsOnly); }

void OpList::fill(void*, int, size_t) { FT_CHECK_MSG(false, kOpsOnly); }

void OpList::call_host(void (*)(void*), void*) { FT_CHECK_MSG(false, kOpsOnly); }

void OpList::record(Event, uint64_t) { FT_CHECK_MSG(false, kOpsOnly); }

void OpList::begin_capture() { FT_CHECK_MSG(false, kOpsOnly); }

std::unique_ptr<Graph> OpList::end_capture() {
  FT_CHECK_MSG(false, kOpsOnly);
  return nullptr;
}

void OpList::replay(Graph&) { FT_CHECK_MSG(false, kOpsOnly); }

Status OpList::wait(Event, uint64_t, std::chrono::milliseconds) {
  FT_CHECK_MSG(false, kOpsOnly);
  return {};
}

Status OpList::drain() { return {}; }

}  // namespace foretoken
