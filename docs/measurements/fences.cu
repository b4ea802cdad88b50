// What a fence waits for: one warp of a CTA fences again and again while twelve others move rows of
// 4 KiB, each to two places, in one of several ways. Prints the clocks that a fence took.
//
//   nvcc -O2 -arch=sm_90a docs/measurements/fences.cu -o fences && ./fences
//
// Not part of the build; docs/performance.md, "What a fence waits for", quotes it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int kCtas = 48;
constexpr int kMovers = 12;  // warps of a CTA that move rows; one more fences
constexpr int kRows = 32;    // of a warp
constexpr int kStages = 4;
constexpr int kRowBytes = 4096;
constexpr int kSamples = 64;  // of a CTA

enum Fence { kSystem, kProxy, kProxyGlobal, kProxyShared };
enum Traffic { kBulkBoth, kOrdinary, kStaged, kBulkLoads, kBulkStores };
constexpr const char* kFences[] = {"fence.acq_rel.sys", "fence.proxy.async",
                                   "fence.proxy.async.global", "fence.proxy.async.shared::cta"};
constexpr const char* kTraffic[] = {"bulk loads, bulk stores", "ordinary loads and stores",
                                    "ordinary loads, bulk stores", "bulk loads alone",
                                    "bulk stores alone"};

__device__ uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

__device__ void fence(int kind) {
  if (kind == kSystem) asm volatile("fence.acq_rel.sys;" ::: "memory");
  if (kind == kProxy) asm volatile("fence.proxy.async;" ::: "memory");
  if (kind == kProxyGlobal) asm volatile("fence.proxy.async.global;" ::: "memory");
  if (kind == kProxyShared) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ void bulk_load(uint8_t* to, const uint8_t* from, uint64_t* barrier) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(kRowBytes)
      : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(kRowBytes), "r"(shared_address(barrier))
      : "memory");
}

__device__ void await(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra again;\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ void bulk_store(uint8_t* to, const uint8_t* from) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(kRowBytes)
               : "memory");
}

__device__ void commit_and_wait() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void measure(int kind, int traffic, const uint8_t* source, uint8_t* target,
                        uint32_t* flags, uint32_t* clocks, uint32_t* taken) {
  extern __shared__ __align__(128) uint8_t stages[];
  __shared__ volatile int moved[kMovers];
  __shared__ uint64_t loaded[kMovers][kStages];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < kMovers * kStages) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
        shared_address(&loaded[threadIdx.x / kStages][threadIdx.x % kStages])));
  }
  if (threadIdx.x < kMovers) moved[threadIdx.x] = 0;
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  const auto number = [&](int row) {
    return (static_cast<size_t>(blockIdx.x) * kRows + row) * kMovers + warp;
  };
  const auto from = [&](int row) { return source + number(row) * kRowBytes; };
  const auto to = [&](int row, int copy) { return target + (number(row) * 2 + copy) * kRowBytes; };

  if (warp == kMovers) {
    if (lane != 0) return;
    for (uint32_t round = 0;; ++round) {
      int busy = 0;
      for (int i = 0; i < kMovers; ++i) busy += moved[i] < kRows;
      if (busy == 0) {
        taken[blockIdx.x] = min(round, static_cast<uint32_t>(kSamples));
        return;
      }
      const uint32_t begin = clock();
      fence(kind);
      asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flags + blockIdx.x * 32), "r"(round)
                   : "memory");
      const uint32_t end = clock();
      if (round < kSamples) clocks[blockIdx.x * kSamples + round] = end - begin;
    }
  }

  uint8_t* const ring = stages + warp * kStages * kRowBytes;
  if (traffic == kBulkBoth || traffic == kBulkLoads || traffic == kBulkStores) {
    if (lane != 0) return;
    const auto load = [&](int row) {
      if (row >= kRows || traffic == kBulkStores) return;
      bulk_load(ring + row % kStages * kRowBytes, from(row), &loaded[warp][row % kStages]);
    };
    for (int row = 0; row < kStages; ++row) load(row);
    for (int row = 0; row < kRows; ++row) {
      if (traffic != kBulkStores) await(&loaded[warp][row % kStages], row / kStages & 1);
      if (traffic != kBulkLoads) {
        for (int copy = 0; copy < 2; ++copy) {
          bulk_store(to(row, copy), ring + row % kStages * kRowBytes);
        }
        commit_and_wait();
      }
      load(row + kStages);
      moved[warp] = row + 1;
    }
    return;
  }

  uint4 vectors[kRowBytes / 512];
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kRowBytes / 512; ++i) {
      vectors[i] = __ldg(reinterpret_cast<const uint4*>(from(row)) + i * 32 + lane);
    }
    if (traffic == kOrdinary) {
      for (int i = 0; i < kRowBytes / 512; ++i) {
        for (int copy = 0; copy < 2; ++copy) {
          reinterpret_cast<uint4*>(to(row, copy))[i * 32 + lane] = vectors[i];
        }
      }
      __syncwarp();
    } else {
      for (int i = 0; i < kRowBytes / 512; ++i) {
        reinterpret_cast<uint4*>(ring)[i * 32 + lane] = vectors[i];
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (lane == 0) {
        for (int copy = 0; copy < 2; ++copy) bulk_store(to(row, copy), ring);
        commit_and_wait();
      }
      __syncwarp();
    }
    if (lane == 0) moved[warp] = row + 1;
  }
}

int main() {
  const size_t bytes = static_cast<size_t>(kCtas) * kRows * kMovers * kRowBytes;
  uint8_t* source = nullptr;
  uint8_t* target = nullptr;
  uint32_t* flags = nullptr;
  uint32_t* clocks = nullptr;
  uint32_t* taken = nullptr;
  cudaMalloc(&source, bytes);
  cudaMalloc(&target, 2 * bytes);
  cudaMalloc(&flags, kCtas * 128);
  cudaMalloc(&clocks, kCtas * kSamples * 4);
  cudaMalloc(&taken, kCtas * 4);
  constexpr int kShared = kMovers * kStages * kRowBytes;
  cudaFuncSetAttribute(measure, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  for (int kind = 0; kind < 4; ++kind) {
    for (int traffic = 0; traffic < 5; ++traffic) {
      for (int warm = 0; warm < 2; ++warm) {
        cudaMemset(source, 1 + warm, bytes);
        cudaMemset(target, 3 + warm, 2 * bytes);
        measure<<<kCtas, (kMovers + 1) * 32, kShared>>>(kind, traffic, source, target, flags,
                                                        clocks, taken);
        const cudaError_t error = cudaDeviceSynchronize();
        if (error != cudaSuccess) {
          std::printf("%s\n", cudaGetErrorString(error));
          return 3;
        }
      }
      std::vector<uint32_t> all(kCtas * kSamples);
      std::vector<uint32_t> counts(kCtas);
      cudaMemcpy(all.data(), clocks, all.size() * 4, cudaMemcpyDeviceToHost);
      cudaMemcpy(counts.data(), taken, counts.size() * 4, cudaMemcpyDeviceToHost);
      std::vector<uint32_t> samples;
      for (int cta = 0; cta < kCtas; ++cta) {
        for (uint32_t i = 0; i < counts[cta]; ++i) samples.push_back(all[cta * kSamples + i]);
      }
      std::sort(samples.begin(), samples.end());
      if (samples.empty()) continue;
      std::printf("%-30s %-28s median %6u, p10 %6u, p90 %6u, %zu fences\n", kFences[kind],
                  kTraffic[traffic], samples[samples.size() / 2], samples[samples.size() / 10],
                  samples[samples.size() * 9 / 10], samples.size());
    }
  }
  return 0;
}
