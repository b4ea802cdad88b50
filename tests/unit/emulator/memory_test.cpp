// Which memory exists, who may write it, and what becomes of accesses that have no business there.
#include <array>
#include <cstdint>
#include <cstring>
#include <map>

#include "runtime/emulator/fiber.h"
#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Out {
  std::uint32_t* out;
};

struct To {
  std::uint32_t* out;
  std::int64_t offset;  // bytes
};

// Thread 5 of block 1 stores a word at out + offset.
constexpr const char* kStores = R"(
struct Args { uint32_t* out; int64_t offset; };
extern "C" __global__ void __launch_bounds__(32, 1) stores(const __grid_constant__ Args args) {
  if (afdep::block_index() != 1 || afdep::thread_index() != 5) return;
  afdep::store_word(reinterpret_cast<uint8_t*>(args.out) + args.offset, 77);
}
)";

TEST(EmulatorMemory, IsZeroedAlignedAndKnown) {
  Bench bench;
  auto* const words = bench.memory<std::uint32_t>(1000);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(words[i], 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(words) % 256, 0u);
  EXPECT_TRUE(bench->owns(words));
  EXPECT_TRUE(bench->owns(reinterpret_cast<char*>(words) + 3999));
  EXPECT_FALSE(bench->owns(reinterpret_cast<char*>(words) + 4000));
  int local = 0;
  EXPECT_FALSE(bench->owns(&local));
  bench->free(words);
  EXPECT_FALSE(bench->owns(words));
}

// The host is no thread of the GPU.
TEST(EmulatorMemory, WordsThatTheHostSharesNeedSystemScope) {
  const auto report = [](const std::string& statement) {
    Bench bench;
    const LoadedKernel* const kernel =
        bench.kernel("host_word",
                     "struct Args { uint32_t* out; };\nextern \"C\" __global__ void "
                     "__launch_bounds__(32, 1) host_word(const __grid_constant__ Args "
                     "args) {\n  if (afdep::thread_index() == 3) {\n" +
                         statement + "\n  }\n}\n");
    const Backend::HostMapped memory = bench->allocate_host_mapped(64).value();
    EXPECT_TRUE(bench->describe(memory.device, "faults", 1).ok());
    bench.launch(kernel, Out{static_cast<std::uint32_t*>(memory.device)}, Shape{.rank = 1});
    const auto result = bench->run();
    return result.ok() ? std::string() : bench->last_report();
  };
  EXPECT_EQ(report("afdep::store_release(args.out, 1);"), "");
  const std::string who = "error[E704]: rank 1 host_word (launch 1) block 0 thread 3: ";
  const std::string why =
      " of 4 bytes of GPU scope at faults of rank 1+0x0, which the host shares: only system scope "
      "reaches it; at host_word.cu:7:1 (";
  EXPECT_THAT(report("afdep::store_release_here(args.out, 1);"),
              StartsWith(who + "store" + why + "store_release_here, afdep/memory.cuh:"));
  EXPECT_THAT(report("afdep::store_relaxed(args.out, 1);"),
              StartsWith(who + "store" + why + "store_relaxed, afdep/memory.cuh:"));
  EXPECT_THAT(report("if (afdep::claim(args.out)) afdep::trap();"),
              StartsWith(who + "store of 4 bytes of GPU scope at faults of rank 1+0x0"));
  EXPECT_THAT(report("if (afdep::take(args.out) != 0) afdep::trap();"),
              StartsWith(who + "store of 4 bytes of GPU scope at faults of rank 1+0x0"));
}

// 3 blocks of 32 lanes, each lane twice: 192 numbers, each once.
TEST(EmulatorMemory, ACounterGivesEachNumberOnce) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) takes(const __grid_constant__ Args args) {
  for (int i = 0; i < 2; ++i) {
    const uint32_t number = afdep::take(args.out);
    afdep::store_word(reinterpret_cast<uint8_t*>(args.out + 1 + number),
                      1 + afdep::block_index() * 32 + afdep::lane_index());
  }
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("takes", kBody);
  auto* const out = bench.memory<std::uint32_t>(1 + 192);
  bench.launch(kernel, Out{out}, {.grid = 3});
  bench.run();
  EXPECT_EQ(out[0], 192u);
  std::map<std::uint32_t, int> numbers_of;
  for (int i = 1; i <= 192; ++i) ++numbers_of[out[i]];
  EXPECT_EQ(numbers_of.size(), 96U);
  for (const auto& [lane, numbers] : numbers_of) {
    EXPECT_TRUE(lane >= 1 && lane <= 96) << lane;
    EXPECT_EQ(numbers, 2) << lane;
  }
}

TEST(EmulatorMemory, UntouchedPagesAreFree) {
  Bench bench;
  // More than this machine has.
#if AFDEP_THREAD_SANITIZER
  auto big = bench->allocate(std::size_t{1} << 38);  // it leaves little of the address space
#else
  auto big = bench->allocate(std::size_t{1} << 42);
#endif
  ASSERT_TRUE(big.ok()) << to_string(big.diagnostics());
  bench->free(*big);
  const auto refused = bench->allocate(SIZE_MAX - 5);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code, ErrorCode::kMemory);
  EXPECT_THAT(
      refused.diagnostics()[0].message,
      AllOf(HasSubstr("cannot allocate 18446744073709551610 bytes"), HasSubstr("are free")));
}

TEST(EmulatorMemory, CopiesAndFills) {
  Bench bench;
  auto* const words = bench.memory<std::uint32_t>(4);
  const std::array<std::uint32_t, 4> given{1, 2, 3, 4};
  std::array<std::uint32_t, 4> back{};
  ASSERT_TRUE(bench->copy_to_device(words, given.data(), 16).ok());
  ASSERT_TRUE(bench->copy_to_host(back.data(), words, 16).ok());
  EXPECT_EQ(back, given);
  ASSERT_TRUE(bench->fill(words, 0xab, 8).ok());
  EXPECT_EQ(words[1], 0xababababu);
  EXPECT_EQ(words[2], 3u);
  const auto beyond = bench->copy_to_device(words, given.data(), 17);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.diagnostics()[0].message, HasSubstr("copy_to_device: 17 bytes at "));
}

TEST(EmulatorMemory, StoreBeyondAnAllocationIsReportedAndNotDone) {
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("stores", kStores);
  auto* const out = bench.memory<std::uint32_t>(4);
  ASSERT_TRUE(bench->describe(out, "inbox", 1).ok());
  bench.launch(kernel, To{out, 16}, {.grid = 2, .rank = 1});
  EXPECT_THAT(bench.report(),
              AllOf(HasSubstr("rank 1 stores (launch 1) block 1 thread 5: store of 4 bytes at 0x"),
                    HasSubstr("0 bytes after the end of inbox of rank 1 (16 bytes)"),
                    HasSubstr("which is no device memory")));
  // Mapped, but not part of the allocation.
  EXPECT_EQ(out[4], 0u);
  bench.launch(kernel, To{out, 12}, {.grid = 2});
  bench.run();
  EXPECT_EQ(out[3], 77u);
}

TEST(EmulatorMemory, MisalignedAccessIsReported) {
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("stores", kStores);
  bench.launch(kernel, To{bench.memory<std::uint32_t>(4), 2}, {.grid = 2});
  EXPECT_THAT(bench.report(), HasSubstr("which is not 4-byte aligned"));
}

TEST(EmulatorMemory, StoreOutsideTheRegionsOfARankIsReported) {
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("stores", kStores);
  auto* const out = bench.memory<std::uint32_t>(64);
  bench->restrict_stores(2, {{out, out + 16, "rows"}, {out + 32, out + 48, "flags"}});
  bench.launch(kernel, To{out, 15 * 4}, {.grid = 2, .rank = 2});
  bench.launch(kernel, To{out, 47 * 4}, {.grid = 2, .rank = 2});
  bench.launch(kernel, To{out, 20 * 4}, {.grid = 2, .rank = 1});  // not restricted
  bench.run();
  bench.launch(kernel, To{out, 16 * 4}, {.grid = 2, .rank = 2});
  EXPECT_THAT(bench.report(), AllOf(HasSubstr("allocation 1+0x40"),
                                    HasSubstr("outside the regions that rank 2 may write")));
  EXPECT_EQ(out[16], 0u);
  bench->allow_all_stores();
  bench.launch(kernel, To{out, 16 * 4}, {.grid = 2, .rank = 2});
  bench.run();
  EXPECT_EQ(out[16], 77u);
}

TEST(EmulatorMemory, WildPointerOutsideTheDeviceFunctionsIsReported) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer takes the signal";
#endif
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) wild(const __grid_constant__ Args args) {
  if (afdep::lane_index() == 9) *reinterpret_cast<volatile uint32_t*>(0x1230) = args.out != nullptr;
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("wild", kBody);
  for (int i = 0; i < 3; ++i) {
    bench.launch(kernel, Out{bench.memory<std::uint32_t>(1)}, {.rank = 4});
    EXPECT_THAT(
        bench.report(),
        AllOf(HasSubstr("rank 4 wild (launch "), HasSubstr(" thread 9: "),
              HasSubstr("raw access outside the device headers: store of 4 bytes at 0x1230"),
              HasSubstr("at wild.cu:7:79")));
  }
}

TEST(EmulatorMemory, RawAccessToGlobalMemoryIsReportedWithItsPlace) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) raw(const __grid_constant__ Args args) {
  if (afdep::lane_index() == 9) args.out[1] = 5;
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("raw", kBody);
  auto* const out = bench.memory<std::uint32_t>(4);
  bench.launch(kernel, Out{out}, {});
  EXPECT_THAT(bench.report(),
              HasSubstr("rank 0 raw (launch 1) block 0 thread 9: raw access outside the device "
                        "headers: store of 4 bytes at allocation 1+0x4; at raw.cu:7:45"));
  EXPECT_EQ(out[1], 0u);
}

TEST(EmulatorMemory, StackOverflowIsReported) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer takes the signal";
#endif
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
__attribute__((noinline)) uint32_t deep(const Args& args, uint32_t n) {
  volatile uint32_t local[64];
  local[n % 64] = n;
  return n == 0 ? afdep::load_word(args.out) : deep(args, n - 1) + local[n % 64];
}
extern "C" __global__ void __launch_bounds__(32, 1) deep_kernel(const __grid_constant__ Args args) {
  afdep::store_word(args.out, deep(args, 100000));
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("deep_kernel", kBody);
  bench.launch(kernel, Out{bench.memory<std::uint32_t>(1)}, {});
  EXPECT_THAT(bench.report(), HasSubstr("needs more than 65536 bytes of stack"));
}

TEST(EmulatorMemory, SharedMemoryStartsPoisonedInEveryBlock) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
struct Shared { uint32_t word[8]; };
extern "C" __global__ void __launch_bounds__(8, 1) poison(const __grid_constant__ Args args) {
  Shared& shared = afdep::shared_memory<Shared>();
  const int i = afdep::thread_index();
  afdep::store_word(args.out + afdep::block_index() * 8 + i, shared.word[i]);
  shared.word[i] = 0;
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("poison", kBody);
  auto* const out = bench.memory<std::uint32_t>(64 * 8);
  bench.launch(kernel, Out{out}, {.grid = 64, .threads = 8, .shared_bytes = 32});
  bench.run();
  for (int i = 0; i < 64 * 8; ++i) EXPECT_EQ(out[i], 0xa5a5a5a5u);

  bench.launch(kernel, Out{out}, {.grid = 1, .threads = 8, .shared_bytes = 31});
  EXPECT_THAT(bench.report(), HasSubstr("uses 32 bytes of shared memory, launched with 31"));
}

TEST(EmulatorMemory, WriteBehindSharedMemoryIsReported) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) overrun(const __grid_constant__ Args args) {
  auto& shared = afdep::shared_memory<uint32_t[]>();
  if (afdep::thread_index() == 0) shared[8] = afdep::load_word(args.out);
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("overrun", kBody);
  bench.launch(kernel, Out{bench.memory<std::uint32_t>(1)}, {.shared_bytes = 32});
  EXPECT_THAT(bench.report(), HasSubstr("wrote behind the block's 32 bytes of shared memory"));
}

TEST(EmulatorMemory, TrapIsReported) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) traps(const __grid_constant__ Args args) {
  if (afdep::load_word(args.out + afdep::lane_index()) == 1) afdep::trap();
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("traps", kBody);
  auto* const out = bench.memory<std::uint32_t>(32);
  bench.launch(kernel, Out{out}, {});
  bench.run();
  out[17] = 1;
  bench.launch(kernel, Out{out}, {});
  EXPECT_THAT(bench.report(), HasSubstr("rank 0 traps (launch 2) block 0 thread 17: trap"));
}

TEST(EmulatorMemory, LedgerCountsStoresIntoOtherRanksMemory) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) sends(const __grid_constant__ Args args) {
  const int lane = afdep::lane_index();
  uint8_t* const at = reinterpret_cast<uint8_t*>(args.out);
  if (lane < 3) afdep::store_packet(at + lane * 16, afdep::Packet{{1, 2, 3}, 4});
  if (lane == 3) afdep::store_vector(at + 48, afdep::Vector{{1, 2, 3, 4}});
  if (lane == 4) afdep::store_word(at + 64, 9);
  afdep::sync_warp();
  if (lane == 0) afdep::store_release(args.out + 20, 5);
}
)";
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("sends", kBody);
    auto* const out = bench.memory<std::uint32_t>(32);
    ASSERT_TRUE(bench->describe(out, "window", 7).ok());
    bench.launch(kernel, Out{out}, {.rank = 2});
    bench.launch(kernel, Out{out}, {.rank = 7});  // its own memory: no message
    bench.launch(kernel, Out{bench.memory<std::uint32_t>(32)}, {.rank = 2});  // nobody's
    bench.run();
    const emulator::Ledger expected{
        {{2, 7}, {.messages = 6, .bytes = 72, .packets = 3, .flags = 1}}};
    EXPECT_EQ(bench->ledger(), expected);
    bench->clear_ledger();
    EXPECT_TRUE(bench->ledger().empty());
    EXPECT_EQ(out[20], 5u);
    EXPECT_EQ(out[3], 4u);
    EXPECT_EQ(out[16], 9u);
  }
}

}  // namespace
}  // namespace afdep
