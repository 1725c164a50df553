#include "kernels/gemm/cuda/gemm_stream.cuh"

#include <type_traits>

namespace foretoken::cuda {
namespace {

// Blocks that are resident at once, one a multiprocessor: not all of these can form clusters of
// four (120 of 132 on an H200).
struct Room {
  int pairs = device_traits().num_sms / 2 * 2;
  int fours = device_traits().num_sms * 10 / 11 / 4 * 4;
};

// A router's product: few blocks, whose time is that of a chain along k. All of x that the chain
// needs soon is on its way, and no block waits for others.
bool is_router(const GemmArgs& args) { return is_short_chain(args) && args.n <= 512; }

// Each group of launchers takes the narrowest tile that still leaves every block a multiprocessor
// of its own; matrices with more rows than that take tiles of which two fit on one, as far as x
// lets them, or wide ones, which read x less often.

template <class Epilogue>
bool launch_for_8(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const Room room;
  if (is_router(args)) {
    return launch_stream<StreamShape<16, 4, 8, 12, 1, 1>>(args, epilogue, stream);
  }
  if (is_short_chain(args)) {
    return ceil_div(args.n, 16) <= room.fours
               ? launch_stream<StreamShape<16, 4, 8, 4, 8, 4>>(args, epilogue, stream)
               : launch_stream<StreamShape<32, 4, 10, 4, 2, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 32) <= room.pairs) {
    return args.k <= 8192 ? launch_stream<StreamShape<32, 4, 6, 4, 1, 1>>(args, epilogue, stream)
                          : launch_stream<StreamShape<32, 4, 12, 4, 1, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 48) <= room.pairs) {
    return launch_stream<StreamShape<48, 4, 8, 4, 1, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 112) <= room.pairs) {
    return launch_stream<StreamShape<64, 4, 3, 4, 1, 2>>(args, epilogue, stream);
  }
  return launch_stream<StreamShape<112, 2, 3, 4, 1, 1>>(args, epilogue, stream);
}

template <class Epilogue>
bool launch_for_16(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const Room room;
  if (ceil_div(args.n, 32) <= room.pairs) {
    return launch_stream<StreamShape<32, 4, 10, 4, 2, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 48) <= room.pairs) {
    return launch_stream<StreamShape<48, 4, 6, 4, 2, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 64) <= room.fours) {
    return launch_stream<StreamShape<64, 4, 5, 4, 2, 4>>(args, epilogue, stream);
  }
  return launch_stream<StreamShape<112, 2, 3, 4, 2, 2>>(args, epilogue, stream);
}

template <class Epilogue>
bool launch_for_32(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const Room room;
  if (ceil_div(args.n, 32) <= room.pairs) {
    return launch_stream<StreamShape<32, 4, 8, 4, 4, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 48) <= room.pairs) {
    return launch_stream<StreamShape<48, 4, 5, 4, 4, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 64) <= room.pairs) {
    return launch_stream<StreamShape<64, 4, 4, 3, 4, 2>>(args, epilogue, stream);
  }
  return launch_stream<StreamShape<112, 2, 3, 2, 4, 2>>(args, epilogue, stream);
}

// Of so wide a tile that less code of the same bits pays, where the epilogue allows it.
template <class Shape, class Epilogue>
bool launch_widest(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  if constexpr (std::is_same_v<Epilogue, StoreOutput>) {
    if (StoreBlock::takes(args)) {
      StoreBlock by_block{epilogue.stride};
      return launch_stream<Shape>(args, by_block, stream);
    }
  }
  return launch_stream<Shape>(args, epilogue, stream);
}

template <class Epilogue>
bool launch_for_64(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const Room room;
  if constexpr (std::is_same_v<Epilogue, StoreOutput>) {
    if (ceil_div(args.n, 40) <= room.fours) {
      return launch_stream<StreamShape<40, 4, 5, 3, 8, 4>>(args, epilogue, stream);
    }
  }
  if (ceil_div(args.n, 48) <= room.fours) {
    return launch_stream<StreamShape<48, 4, 4, 3, 8, 4>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 48) <= room.pairs) {
    return launch_stream<StreamShape<48, 4, 4, 3, 8, 2>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 128) > room.pairs && ceil_div(args.n, 224) <= room.pairs) {
    return launch_widest<StreamShape<224, 2, 3, 3, 8, 2>>(args, epilogue, stream);
  }
  return launch_stream<StreamShape<128, 2, 4, 4, 8, 2>>(args, epilogue, stream);
}

template <class Epilogue>
bool launch_for_rows(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  if (args.max_rows <= 8) return launch_for_8(args, epilogue, stream);
  const Room room;
  if (args.max_rows <= 16 && is_router(args)) {
    return launch_stream<StreamShape<16, 4, 8, 14, 2, 1>>(args, epilogue, stream);
  }
  if (ceil_div(args.n, 16) <= room.fours) {
    return launch_stream<StreamShape<16, 4, 8, 4, 8, 4>>(args, epilogue, stream);
  }
  if (args.max_rows <= 16) return launch_for_16(args, epilogue, stream);
  if (args.max_rows <= 32) return launch_for_32(args, epilogue, stream);
  return launch_for_64(args, epilogue, stream);
}

bool can_stream(const GemmArgs& args) { return device_traits().wgmma && args.k % 8 == 0; }

}  // namespace

bool launch_gemm_stream(const GemmArgs& args, cudaStream_t stream) {
  if (!can_stream(args)) return false;
  return with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    return launch_for_rows(all, epilogue, stream);
  });
}

// Matrices have many tiles here: where x is small, two blocks of a multiprocessor fetch for each
// other between them.
bool launch_gemm_stream(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  if (!can_stream(args)) return false;
  if (args.max_rows <= 16) {
    return launch_stream<StreamShape<112, 2, 3, 4, 2, 2>>(args, best, stream);
  }
  if (args.max_rows <= 32) {
    return launch_stream<StreamShape<112, 2, 3, 2, 4, 2>>(args, best, stream);
  }
  return launch_stream<StreamShape<128, 2, 4, 4, 8, 2>>(args, best, stream);
}

}  // namespace foretoken::cuda
