#include "runtime/residency.h"

#include <fmt/format.h>

#include <algorithm>

namespace afdep {
namespace {

constexpr int kWarp = 32;
constexpr int kSmQuarters = 4;     // each with a quarter of the registers and its own warps
constexpr int kRegisterBlock = 8;  // registers of a thread are rounded up to it
constexpr int kSharedBlock = 128;  // and a CTA's shared memory to this

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The largest of everything: a place where this fits takes any kernel of the bundle.
struct Shape {
  int threads = 0;
  int registers = 0;
  std::int64_t shared_bytes = 0;
  int attention_ctas = 0;
  int ffn_ctas = 0;
};

void grow(Shape& shape, const bundle::Bucket& bucket, std::string_view arch) {
  for (const bundle::Kernel& kernel : bucket.kernels) {
    shape.threads = std::max(shape.threads, kernel.threads);
    shape.shared_bytes = std::max(shape.shared_bytes, kernel.shared_bytes);
    int& ctas = kernel.role == bundle::Role::kAttention ? shape.attention_ctas : shape.ffn_ctas;
    ctas = std::max(ctas, kernel.grid);
    for (const bundle::Compiled& compiled : kernel.compiled) {
      if (compiled.arch == arch) shape.registers = std::max(shape.registers, compiled.registers);
    }
  }
}

// So many CTAs of two kernels a rank may share so many SMs before early residents slow down those
// that spin. Measured on an H200: 152 CTAs on 132 SMs still gain 4 %, 192 lose 20 %.
constexpr int kCrowdedCtas = 5;
constexpr int kCrowdedSms = 4;

}  // namespace

int ctas_per_sm(const SmLimits& sm, int threads, int registers, std::int64_t shared_bytes) {
  const std::int64_t warps = round_up(threads, kWarp) / kWarp;
  const std::int64_t by_threads = sm.threads / kWarp / warps;
  const std::int64_t warp_registers = round_up(std::max(registers, 1), kRegisterBlock) * kWarp;
  const std::int64_t quarter_warps = sm.registers / kSmQuarters / warp_registers;
  const std::int64_t by_registers = quarter_warps * kSmQuarters / round_up(warps, kSmQuarters);
  const std::int64_t by_shared =
      sm.shared_bytes / round_up(shared_bytes + sm.reserved_shared_bytes, kSharedBlock);
  return static_cast<int>(std::min({std::int64_t{sm.ctas}, by_threads, by_registers, by_shared}));
}

Result<Residency> check_residency(const bundle::Manifest& manifest, std::string_view arch,
                                  const SmLimits& sm, int sm_count, int ranks_on_device) {
  // A rank alone on its GPU waits for other GPUs only, and its own kernels are resident in turn.
  if (ranks_on_device == 1) {
    return Residency{.programmatic = std::vector<bool>(manifest.buckets.size(), true)};
  }

  Shape shape;
  for (const bundle::Bucket& bucket : manifest.buckets) grow(shape, bucket, arch);
  // Which ranks share the GPU is not known here: at worst those with the larger grids.
  const bool attention_larger = shape.attention_ctas > shape.ffn_ctas;
  const int larger =
      std::min(ranks_on_device, attention_larger ? manifest.attention_ranks : manifest.ffn_ranks);
  const int attention = attention_larger ? larger : ranks_on_device - larger;
  const int ffn = ranks_on_device - attention;
  const int needed = attention * shape.attention_ctas + ffn * shape.ffn_ctas;
  const int per_sm = ctas_per_sm(sm, shape.threads, shape.registers, shape.shared_bytes);
  const int room = sm_count * per_sm;
  if (needed > room) {
    return Failure(
        ErrorCode::kLaunch,
        fmt::format("{} attention ranks x {} CTAs + {} FFN ranks x {} CTAs = {} CTAs must be "
                    "resident on one GPU, which holds {} SMs x {} CTAs = {} (of up to {} threads, "
                    "{} registers a thread and {} bytes of shared memory)",
                    attention, shape.attention_ctas, ffn, shape.ffn_ctas, needed, sm_count, per_sm,
                    room, shape.threads, shape.registers, shape.shared_bytes),
        "lower kernel.num_sms in the spec, or run fewer ranks on this GPU");
  }
  Residency residency;
  for (const bundle::Bucket& bucket : manifest.buckets) {
    Shape own;
    grow(own, bucket, arch);
    const int early = attention * own.attention_ctas + ffn * own.ffn_ctas;
    const bool fits = needed + early <= room;
    const bool uncrowded = kCrowdedSms * 2 * early <= kCrowdedCtas * sm_count;
    residency.programmatic.push_back(fits && uncrowded);
  }
  return residency;
}

}  // namespace afdep
