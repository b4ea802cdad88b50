#include "tests/mutation/barrier_program.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "afdep/abi.h"
#include "runtime/emulator/emulator_backend.h"
#include "runtime/support/check.h"

namespace afdep::mutation {
namespace {

constexpr int kRanks = 4;  // the first two send
constexpr int kSenders = 2;
constexpr int kBlocks = 3;
constexpr int kThreads = 64;
constexpr int kGenerations = 3;
constexpr int kWords = kBlocks * kThreads;  // a sender's, in each receiver's window
constexpr std::uint64_t kTimeoutNs = 1'000'000;
// Bytes of a window: entry words, exit words, data. A block of 64 bytes a rank at each barrier.
constexpr std::size_t kWindowBytes = 512 + kSenders * kWords * 4;
// Bytes of the workspace: the gates of entry and exit, then a gate for each block.
constexpr std::size_t kWorkspaceBytes = 256;

struct Args {
  CommonArgs common;
  std::uint32_t* sums;  // [kBlocks * kThreads]
  std::uint32_t generation;
  std::uint32_t unused;
};

constexpr const char* kText = R"(#include "afdep/barrier.cuh"
using namespace afdep;
using Group = AllRanks<4, 0, 0>;
struct Args { CommonArgs common; uint32_t* sums; uint32_t generation; uint32_t unused; };
extern "C" __global__ void __launch_bounds__(64, 1) sends(const __grid_constant__ Args args) {
  await_previous_kernel();
  const uint32_t g = args.generation;
  pass_barrier<Group>(args.common, 0, 64, 0, g, kPhaseEntry, kFirstPart);
  const int word = block_index() * 64 + thread_index();
  for (int to = 2; to < 4; ++to) {
    store_word(args.common.peer[to] + 512 + (args.common.index * 192 + word) * 4, g * 1000 + word);
  }
  leave_barrier<Group, 3>(args.common, 256, 64, 128, g, kFirstPart);
}
namespace {
AFDEP_DEVICE void add_up(const Args& args) {
  const int word = block_index() * 64 + thread_index();
  const uint8_t* const data = args.common.window + 512;
  store_word(args.sums + word, load_word(data + word * 4) + load_word(data + (192 + word) * 4));
}
}  // namespace
extern "C" __global__ void __launch_bounds__(64, 1) receives(const __grid_constant__ Args args) {
  await_previous_kernel();
  const uint32_t g = args.generation;
  pass_barrier<Group>(args.common, 0, 64, 0, g, kPhaseEntry, kFirstPart);
  pass_barrier<Group>(args.common, 256, 64, 64, g, kPhaseExit, kFirstPart);
  add_up(args);
}
extern "C" __global__ void __launch_bounds__(64, 1) ends(const __grid_constant__ Args args) {
  await_previous_kernel();
  const uint32_t g = args.generation;
  pass_barrier<Group>(args.common, 0, 64, 0, g, kPhaseEntry, kFirstPart);
  end_behind_barrier<Group>(args.common, 256, 64, g, kFirstPart);
}
extern "C" __global__ void __launch_bounds__(64, 1) expands(const __grid_constant__ Args args) {
  await_previous_kernel();
  add_up(args);
}
)";

class Program {
 public:
  explicit Program(std::uint64_t seed) {
    EmulatorOptions options;
    options.schedule.seed = seed;
    options.schedule.stop_on_stall = true;
    backend_ = std::move(EmulatorBackend::create(options).value());
  }

  std::string run() {
    for (const char* const symbol : {"sends", "receives", "ends", "expands"}) {
      const auto loaded = backend_->load({symbol, "barriers.cu", kText, {}});
      if (!loaded.ok()) return to_string(loaded.diagnostics());
      kernels_.push_back(*loaded);
    }
    for (int rank = 0; rank < kRanks; ++rank) make_rank(rank);
    for (Args& args : args_) {
      for (int rank = 0; rank < kRanks; ++rank)
        args.common.peer[rank] = args_[static_cast<std::size_t>(rank)].common.window;
    }
    for (std::uint32_t g = 1; g <= kGenerations; ++g) {
      for (int rank = 0; rank < kRanks; ++rank) enqueue(rank, g);
    }
    if (!backend_->run().ok()) return backend_->last_report();
    for (int rank = kSenders; rank < kRanks; ++rank) {
      for (std::uint32_t word = 0; word < kWords; ++word) {
        const std::uint32_t sum = args_[static_cast<std::size_t>(rank)].sums[word];
        const std::uint32_t right = kSenders * (kGenerations * 1000 + word);
        if (sum != right)
          return fmt::format("rank {}: word {} is {}, not {}", rank, word, sum, right);
      }
    }
    return {};
  }

 private:
  template <typename T>
  T* memory(std::size_t bytes, const char* name, int rank) {
    void* const memory = backend_->allocate(bytes).value();
    AFDEP_CHECK(backend_->describe(memory, name, rank).ok(), name);
    return static_cast<T*>(memory);
  }

  void make_rank(int rank) {
    Args& args = args_[static_cast<std::size_t>(rank)];
    args.common.control = memory<Control>(sizeof(Control), "control", rank);
    args.common.faults =
        static_cast<Faults*>(backend_->allocate_host_mapped(sizeof(Faults)).value().device);
    args.common.window = memory<std::uint8_t>(kWindowBytes, "window", rank);
    args.common.workspace = memory<std::uint8_t>(kWorkspaceBytes, "workspace", rank);
    args.common.timeout_ns = kTimeoutNs;
    args.common.index = static_cast<std::uint32_t>(rank);
    args.sums = memory<std::uint32_t>(kWords * sizeof(std::uint32_t), "sums", rank);
    streams_.push_back(backend_->create_stream().value());
  }

  void launch(int rank, std::size_t kernel, const Args& args) {
    const Result<void> launched =
        backend_->launch({kernels_[kernel], kBlocks, kThreads, 0, &args, sizeof args, true, rank},
                         streams_[static_cast<std::size_t>(rank)]);
    AFDEP_CHECK(launched.ok(), to_string(launched.diagnostics()));
  }

  void enqueue(int rank, std::uint32_t generation) {
    Args args = args_[static_cast<std::size_t>(rank)];
    args.generation = generation;
    if (rank < kSenders) return launch(rank, 0, args);
    if (rank == kSenders) return launch(rank, 1, args);
    launch(rank, 2, args);
    launch(rank, 3, args);
  }

  std::unique_ptr<EmulatorBackend> backend_;
  std::vector<const LoadedKernel*> kernels_;
  std::vector<Stream> streams_;
  std::array<Args, kRanks> args_{};
};

}  // namespace

std::string run_barrier_program(std::uint64_t first_seed, int seeds) {
  for (int i = 0; i < seeds; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    std::string wrong = Program(seed).run();
    if (!wrong.empty()) return fmt::format("seed {}: {}", seed, wrong);
  }
  return {};
}

}  // namespace afdep::mutation
