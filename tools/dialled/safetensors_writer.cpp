#include "dialled/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/check.h"

namespace foretoken {
namespace {

struct ElementType {
  const char* name;
  int64_t size;
};

ElementType element_type(FileDType dtype) {
  switch (dtype) {
    case FileDType::kF32:
      return {"F32", 4};
    case FileDType::kBF16:
      return {"BF16", 2};
    case FileDType::kF16:
      return {"F16", 2};
    case FileDType::kI64:
      return {"I64", 8};
    case FileDType::kBool:
      return {"BOOL", 1};
    case FileDType::kOther:
      break;
  }
  FT_CHECK(false);
}

int64_t bytes_of(const TensorToWrite& tensor) {
  int64_t bytes = element_type(tensor.dtype).size;
  for (const int64_t extent : tensor.shape) bytes *= extent;
  return bytes;
}

bool write_bytes(int descriptor, const void* data, size_t bytes, int64_t offset) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = pwrite(descriptor, from, bytes, offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done;
    offset += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

constexpr int64_t kBytesAtOnce = int64_t{2} << 30;  // in memory, but for one larger tensor
constexpr int64_t kBytesPerThread = int64_t{16} << 20;

// Fills tensors and writes them to their places, several at a time.
class TensorWriter {
 public:
  // `offsets`: of the tensors in the file.
  TensorWriter(int descriptor, std::span<const TensorToWrite> tensors, std::vector<int64_t> offsets)
      : descriptor_(descriptor), tensors_(tensors), offsets_(std::move(offsets)) {}

  // Whether all was written.
  bool run(int num_threads) {
    std::vector<std::thread> threads;
    for (int i = 1; i < num_threads; ++i) threads.emplace_back([this] { write_tensors(); });
    write_tensors();
    for (std::thread& thread : threads) thread.join();
    return !failed_;
  }

 private:
  void write_tensors() {
    for (size_t i; (i = next_.fetch_add(1)) < tensors_.size() && !failed_;) {
      const int64_t bytes = bytes_of(tensors_[i]);
      take(bytes);
      try {
        std::vector<std::byte> buffer(static_cast<size_t>(bytes));
        tensors_[i].fill(buffer.data());
        if (!write_bytes(descriptor_, buffer.data(), buffer.size(), offsets_[i])) failed_ = true;
      } catch (const std::bad_alloc&) {
        failed_ = true;
      }
      give_back(bytes);
    }
  }
  void take(int64_t bytes) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return bytes_taken_ == 0 || bytes_taken_ + bytes <= kBytesAtOnce; });
    bytes_taken_ += bytes;
  }
  void give_back(int64_t bytes) {
    std::lock_guard lock(mutex_);
    bytes_taken_ -= bytes;
    room_.notify_all();
  }

  const int descriptor_;
  const std::span<const TensorToWrite> tensors_;
  const std::vector<int64_t> offsets_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable room_;
  int64_t bytes_taken_ = 0;
};

int num_threads_for(int64_t bytes) {
  const auto most = std::max<int64_t>(1, std::thread::hardware_concurrency());
  return static_cast<int>(std::clamp<int64_t>(bytes / kBytesPerThread, 1, most));
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = {{"format", "pt"}};
  int64_t offset = 0;
  std::vector<int64_t> offsets;
  for (const TensorToWrite& tensor : tensors) {
    FT_CHECK_MSG(!header.contains(tensor.name), tensor.name);
    const int64_t end = offset + bytes_of(tensor);
    header[tensor.name] = {{"dtype", element_type(tensor.dtype).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offsets.push_back(offset);
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t header_bytes = text.size();
  text.insert(0, reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  for (int64_t& begin : offsets) begin += static_cast<int64_t>(text.size());

  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool written = descriptor >= 0 && write_bytes(descriptor, text.data(), text.size(), 0) &&
                 TensorWriter(descriptor, tensors, offsets).run(num_threads_for(offset));
  if (descriptor >= 0 && ::close(descriptor) != 0) written = false;
  if (!written) {
    return invalid_argument("cannot write " + path +
                            "; check that the folder exists, may be "
                            "written and has room for " +
                            std::to_string(offset >> 20) + " MiB");
  }
  return {};
}

}  // namespace foretoken
