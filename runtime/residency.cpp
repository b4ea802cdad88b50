#include "runtime/residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace afdep {
namespace {

constexpr int kWarp = 32;
constexpr int kSmQuarters = 4;     // each with a quarter of the registers and its own warps
constexpr int kRegisterBlock = 8;  // registers of a thread are rounded up to it
constexpr int kSharedBlock = 128;  // and a CTA's shared memory to this

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// What a CTA takes of an SM, or an SM has: CTAs, warps, registers of one quarter, shared bytes. A
// CTA's warps are spread evenly over the quarters; which one gets the odd warp is not known.
using Amounts = std::array<std::int64_t, 4>;

Amounts taken(const SmLimits& sm, int threads, int registers, std::int64_t shared_bytes) {
  const std::int64_t warps = round_up(threads, kWarp) / kWarp;
  const std::int64_t warp_registers = round_up(std::max(registers, 1), kRegisterBlock) * kWarp;
  return {1, warps, round_up(warps, kSmQuarters) / kSmQuarters * warp_registers,
          round_up(shared_bytes + sm.reserved_shared_bytes, kSharedBlock)};
}

Amounts held(const SmLimits& sm) {
  return {sm.ctas, sm.threads / kWarp, sm.registers / kSmQuarters, sm.shared_bytes};
}

int registers_of(const bundle::Kernel& kernel, std::string_view arch) {
  for (const bundle::Compiled& compiled : kernel.compiled) {
    if (compiled.arch == arch) return compiled.registers;
  }
  return 0;
}

std::int64_t most_shared_bytes(const bundle::Manifest& manifest) {
  std::int64_t most = 0;
  for (const bundle::Bucket& bucket : manifest.buckets) {
    for (const bundle::Kernel& kernel : bucket.kernels) most = std::max(most, kernel.shared_bytes);
  }
  return most;
}

struct Shape {
  bundle::Role role = bundle::Role::kAttention;
  std::size_t bucket = 0;
  int grid = 0;
  Amounts cta{};
};

// Whether the kernels that ranks run now always find room, and which may start early beside them.
class Packing {
 public:
  // least_shared_bytes: dynamic shared memory that every CTA asks for at least.
  Packing(const bundle::Manifest& manifest, std::string_view arch, const SmLimits& sm, int sm_count,
          int ranks, std::int64_t least_shared_bytes)
      : manifest_(manifest), sm_(held(sm)), sm_count_(sm_count), ranks_(ranks) {
    for (std::size_t bucket = 0; bucket < manifest.buckets.size(); ++bucket) {
      for (const bundle::Kernel& kernel : manifest.buckets[bucket].kernels) {
        const int registers = registers_of(kernel, arch);
        shapes_.push_back({.role = kernel.role,
                           .bucket = bucket,
                           .grid = kernel.grid,
                           .cta = taken(sm, kernel.threads, registers,
                                        std::max(kernel.shared_bytes, least_shared_bytes))});
      }
    }
  }

  // CTAs of any of the kernels that an SM holds, in any mix.
  [[nodiscard]] int any_per_sm() const {
    std::int64_t least = sm_[0];
    for (const Shape& shape : shapes_) {
      for (std::size_t d = 0; d < sm_.size(); ++d) {
        if (shape.cta[d] > 0) least = std::min(least, sm_[d] / shape.cta[d]);
      }
    }
    return static_cast<int>(least);
  }

  // Every rank runs any kernel of its role; beside it, the next kernel of a bucket that `early`
  // marks may be resident. True if a kernel whose CTAs are not all resident yet always finds an SM
  // for the next of them.
  [[nodiscard]] bool fits(const std::vector<bool>& early) const {
    return std::ranges::all_of(shapes_,
                               [&](const Shape& target) { return always_enters(target, early); });
  }

 private:
  // Sums of weights in these units; divisible by every small number.
  static constexpr std::int64_t kOne = 720'720;

  // Of every amount, the most that a CTA takes which does not keep a CTA of `target` out alone.
  [[nodiscard]] Amounts most_of_several(const Shape& target) const {
    Amounts most{};
    for (const Shape& other : shapes_) {
      if (blocks_alone(target, other)) continue;
      for (std::size_t d = 0; d < sm_.size(); ++d) most[d] = std::max(most[d], other.cta[d]);
    }
    return most;
  }

  // The least number of CTAs, one of them of `of`, that keep a CTA of `target` out of an SM and of
  // which none is superfluous. One may do; if not, none that would do alone is among them.
  [[nodiscard]] std::int64_t fewest_blockers(const Shape& target, const Shape& of,
                                             const Amounts& most) const {
    if (blocks_alone(target, of)) return 1;
    std::int64_t fewest = sm_[0];
    for (std::size_t d = 0; d < sm_.size(); ++d) {
      if (most[d] == 0) continue;
      // Beside one of `of`, others until they exceed what the target leaves.
      const std::int64_t left = sm_[d] - target.cta[d] - of.cta[d];
      fewest = std::min(fewest, left / most[d] + 2);
    }
    return fewest;
  }

  [[nodiscard]] bool blocks_alone(const Shape& target, const Shape& other) const {
    for (std::size_t d = 0; d < sm_.size(); ++d) {
      if (target.cta[d] + other.cta[d] > sm_[d]) return true;
    }
    return false;
  }

  // A CTA weighs one over its fewest blockers. An SM that the target cannot enter holds n CTAs that
  // keep it out with none superfluous; each of them weighs at least 1 / n, so the SM weighs at
  // least one. If all that can be resident weighs less than the number of SMs, some SM has room.
  [[nodiscard]] bool always_enters(const Shape& target, const std::vector<bool>& early) const {
    for (std::size_t d = 0; d < sm_.size(); ++d) {
      if (target.cta[d] > sm_[d]) return false;
    }
    const Amounts most = most_of_several(target);
    std::array<std::int64_t, 2> running{};  // the heaviest kernel of a rank, by role
    std::array<std::int64_t, 2> ahead{};    // and the heaviest that may start early
    std::int64_t own = 0;
    for (const Shape& shape : shapes_) {
      const std::int64_t fewest = fewest_blockers(target, shape, most);
      const std::int64_t cta = (kOne + fewest - 1) / fewest;
      const auto role = static_cast<std::size_t>(shape.role);
      running[role] = std::max(running[role], cta * shape.grid);
      if (early[shape.bucket]) ahead[role] = std::max(ahead[role], cta * shape.grid);
      // The target's rank starts nothing early before all of the target's CTAs have started.
      if (&shape == &target) own = cta * (shape.grid - 1);
    }
    // Which ranks share the GPU is not known here: at worst the heavier ones.
    std::array<int, 2> others{manifest_.attention_ranks, manifest_.ffn_ranks};
    --others[static_cast<std::size_t>(target.role)];
    const std::array<std::int64_t, 2> each{running[0] + ahead[0], running[1] + ahead[1]};
    const std::size_t heavier = each[0] > each[1] ? 0 : 1;
    const int heavy = std::min(ranks_ - 1, others[heavier]);
    const int light = std::min(ranks_ - 1 - heavy, others[1 - heavier]);
    return own + heavy * each[heavier] + light * each[1 - heavier] < kOne * sm_count_;
  }

  const bundle::Manifest& manifest_;
  Amounts sm_;
  int sm_count_;
  int ranks_;
  std::vector<Shape> shapes_;
};
static_assert(static_cast<int>(bundle::Role::kAttention) == 0 &&
              static_cast<int>(bundle::Role::kFfn) == 1);

// CTAs of all ranks that share the GPU, if each runs the largest of these kernels.
struct Ctas {
  int attention_ranks = 0;
  int ffn_ranks = 0;
  int attention = 0;  // a rank
  int ffn = 0;

  [[nodiscard]] int sum() const { return attention_ranks * attention + ffn_ranks * ffn; }
};

Ctas largest(const bundle::Manifest& manifest, std::span<const bundle::Bucket> buckets, int ranks) {
  Ctas ctas;
  for (const bundle::Bucket& bucket : buckets) {
    for (const bundle::Kernel& kernel : bucket.kernels) {
      int& most = kernel.role == bundle::Role::kAttention ? ctas.attention : ctas.ffn;
      most = std::max(most, kernel.grid);
    }
  }
  if (ctas.attention > ctas.ffn) {
    ctas.attention_ranks = std::min(ranks, manifest.attention_ranks);
    ctas.ffn_ranks = ranks - ctas.attention_ranks;
  } else {
    ctas.ffn_ranks = std::min(ranks, manifest.ffn_ranks);
    ctas.attention_ranks = ranks - ctas.ffn_ranks;
  }
  return ctas;
}

Failure no_room(const bundle::Manifest& manifest, std::string_view arch, const Ctas& needed,
                int sm_count, int per_sm) {
  int threads = 0;
  int registers = 0;
  for (const bundle::Bucket& bucket : manifest.buckets) {
    for (const bundle::Kernel& kernel : bucket.kernels) {
      threads = std::max(threads, kernel.threads);
      registers = std::max(registers, registers_of(kernel, arch));
    }
  }
  return Failure(
      ErrorCode::kLaunch,
      fmt::format("{} attention ranks x {} CTAs + {} FFN ranks x {} CTAs = {} CTAs must be "
                  "resident on one GPU, which holds {} SMs x {} CTAs = {} (of up to {} threads, "
                  "{} registers a thread and {} bytes of shared memory)",
                  needed.attention_ranks, needed.attention, needed.ffn_ranks, needed.ffn,
                  needed.sum(), sm_count, per_sm, sm_count * per_sm, threads, registers,
                  most_shared_bytes(manifest)),
      "lower kernel.num_sms in the spec, or run fewer ranks on this GPU");
}

Result<void> check_alone(const bundle::Kernel& kernel, std::string_view arch, const SmLimits& sm,
                         int sm_count) {
  if (!kernel.grid_sync) return {};
  const int registers = registers_of(kernel, arch);
  const int per_sm = ctas_per_sm(sm, kernel.threads, registers, kernel.shared_bytes);
  if (kernel.grid <= sm_count * per_sm) return {};
  return Failure(ErrorCode::kLaunch,
                 fmt::format("the {} CTAs of {} wait for each other, and the GPU holds {} SMs x {} "
                             "CTAs = {} (of {} threads, {} registers a thread and {} bytes of "
                             "shared memory)",
                             kernel.grid, kernel.symbol, sm_count, per_sm, sm_count * per_sm,
                             kernel.threads, registers, kernel.shared_bytes),
                 "lower kernel.num_sms in the spec");
}

// So many CTAs of two kernels a rank may share so many SMs before early residents slow down those
// that spin. Measured on an H200: 152 CTAs on 132 SMs still gain 4 %, 192 lose 20 %.
constexpr int kCrowdedCtas = 5;
constexpr int kCrowdedSms = 4;

// The buckets that may start early; nothing if not even plain launches fit.
std::optional<std::vector<bool>> early_buckets(const bundle::Manifest& manifest,
                                               const Packing& packing, int sm_count, int ranks) {
  std::vector<bool> early(manifest.buckets.size(), false);
  if (!packing.fits(early)) return std::nullopt;
  // Small buckets first: they gain the most. Ranks may be in different ones at the same time.
  for (std::size_t i = 0; i < early.size(); ++i) {
    const int ctas = largest(manifest, std::span(&manifest.buckets[i], 1), ranks).sum();
    if (kCrowdedSms * 2 * ctas > kCrowdedCtas * sm_count) continue;
    early[i] = true;
    if (!packing.fits(early)) early[i] = false;
  }
  return early;
}

SmLimits at_narrow_split(SmLimits sm) {
  sm.shared_bytes = sm.narrow_shared_bytes;
  return sm;
}

// Of a rank that is alone on its GPU: whether each kernel is resident as a whole at the narrow
// split, if every CTA takes `shared_bytes`.
bool fits_alone(const bundle::Manifest& manifest, std::string_view arch, const SmLimits& narrow,
                int sm_count, std::int64_t shared_bytes) {
  return std::ranges::all_of(manifest.buckets, [&](const bundle::Bucket& bucket) {
    return std::ranges::all_of(bucket.kernels, [&](const bundle::Kernel& kernel) {
      return kernel.grid <= sm_count * ctas_per_sm(narrow, kernel.threads,
                                                   registers_of(kernel, arch), shared_bytes);
    });
  });
}

}  // namespace

int ctas_per_sm(const SmLimits& sm, int threads, int registers, std::int64_t shared_bytes) {
  const Amounts has = held(sm);
  const Amounts cta = taken(sm, threads, registers, shared_bytes);
  std::int64_t least = has[0];
  for (std::size_t d = 0; d < has.size(); ++d) {
    if (cta[d] > 0) least = std::min(least, has[d] / cta[d]);
  }
  return static_cast<int>(least);
}

Result<Residency> check_residency(const bundle::Manifest& manifest, std::string_view arch,
                                  const SmLimits& sm, int sm_count, int ranks_on_device) {
  const SmLimits narrow = at_narrow_split(sm);
  const std::int64_t alike = most_shared_bytes(manifest);
  // A rank alone on its GPU waits for other GPUs only, and its own kernels are resident in turn;
  // but one whose CTAs wait for each other must fit as a whole.
  if (ranks_on_device == 1) {
    for (const bundle::Bucket& bucket : manifest.buckets) {
      for (const bundle::Kernel& kernel : bucket.kernels) {
        AFDEP_RETURN_IF_FAILED(check_alone(kernel, arch, sm, sm_count));
      }
    }
    Residency residency{.programmatic = std::vector<bool>(manifest.buckets.size(), true)};
    if (fits_alone(manifest, arch, narrow, sm_count, alike)) residency.cta_shared_bytes = alike;
    return residency;
  }

  const int ranks = ranks_on_device;
  const Packing packing(manifest, arch, sm, sm_count, ranks, 0);
  const auto early = early_buckets(manifest, packing, sm_count, ranks);
  if (!early) {
    return no_room(manifest, arch, largest(manifest, manifest.buckets, ranks), sm_count,
                   packing.any_per_sm());
  }
  Residency residency{.programmatic = *early};
  const Packing packed(manifest, arch, narrow, sm_count, ranks, alike);
  if (early_buckets(manifest, packed, sm_count, ranks) == early) residency.cta_shared_bytes = alike;
  return residency;
}

}  // namespace afdep
