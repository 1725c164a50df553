// Runs a fuzzer's function over files, for compilers without libFuzzer: each argument is a file or
// a folder. Every file runs as it is, cut short at each of some lengths, and with single bytes
// changed.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kChangesPerFile = 2000;

size_t num_runs = 0;

void run(const std::vector<uint8_t>& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ++num_runs;
}

void run_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  run(bytes);
  if (bytes.empty()) return;
  std::mt19937 random(1);
  for (int i = 0; i < kChangesPerFile; ++i) {
    std::vector<uint8_t> changed = bytes;
    const size_t at = random() % changed.size();
    switch (random() % 4) {
      case 0:
        changed[at] = static_cast<uint8_t>(random());
        break;
      case 1:
        changed.resize(at);
        break;
      case 2:
        changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      default:
        changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(at),
                       bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size()),
                       bytes.end());
    }
    if (!changed.empty() && random() % 2 == 0) changed[0] = static_cast<uint8_t>(random());
    run(changed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      run_file(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) run_file(entry.path());
  }
  std::printf("%zu runs\n", num_runs);
  return num_runs > 0 ? 0 : 1;
}
