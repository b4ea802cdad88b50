// Vector clocks of thousands of CUDA threads: sparse, shared, and coarse where threads meet.
//
// Time is counted per thread. Where threads of a warp or a block meet, all of them go on from the
// highest of their times, so that one number says "everything that the block did before this
// barrier". A clock is a set of such numbers for threads, warps and blocks of kernels that run, and
// for each stream the newest launch up to which all kernels have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace afdep::emulator {

// Whoever accesses memory: a block's slot and a part of it.
using Agent = std::uint32_t;
using Time = std::uint32_t;

constexpr int kPartBits = 12;
constexpr std::uint32_t kMaxSlots = 1u << (32 - kPartBits);
// Parts of a block: its threads; the async proxy on behalf of each thread's bulk stores, where
// times are groups; its bulk barriers, where times are phases; its warps; itself.
constexpr std::uint32_t kStoreReadPart = 1024;
constexpr std::uint32_t kStoreWritePart = 2048;
constexpr std::uint32_t kBarrierPart = 3072;
constexpr std::uint32_t kWarpPart = 4000;
constexpr std::uint32_t kBlockPart = 4095;

constexpr std::uint32_t slot_of(Agent agent) { return agent >> kPartBits; }
constexpr std::uint32_t part_of(Agent agent) { return agent & ((1u << kPartBits) - 1); }
constexpr Agent agent_of(std::uint32_t slot, std::uint32_t part) {
  return slot << kPartBits | part;
}
constexpr bool is_thread(Agent agent) { return part_of(agent) < kStoreReadPart; }

// Where a block's kernel stands in the order of kernels.
struct LaunchOrder {
  std::uint32_t stream = 0;  // index
  std::uint32_t launch = 0;
};

class VectorClock {
 public:
  struct Entry {
    Agent agent;
    Time time;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  // True if what `agent` did at `time` comes before. `order`: of its block.
  [[nodiscard]] bool covers(Agent agent, Time time, const LaunchOrder& order) const;
  [[nodiscard]] bool covers(const LaunchOrder& order) const {
    return order.stream < launches_.size() && launches_[order.stream] >= order.launch;
  }
  // True if it covers all that `other` does, as far as the entries themselves tell.
  [[nodiscard]] bool includes(const VectorClock& other) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  friend class ClockRef;
  friend class Clocks;

  std::uint32_t references_ = 0;
  std::vector<std::uint32_t> launches_;  // by stream
  std::vector<Entry> entries_;           // ascending
};

// A counted reference to a clock that nobody changes; null is the empty clock.
class ClockRef {
 public:
  ClockRef() = default;
  explicit ClockRef(VectorClock* clock) : clock_(clock) { take(); }
  ClockRef(const ClockRef& other) : clock_(other.clock_) { take(); }
  ClockRef(ClockRef&& other) noexcept : clock_(std::exchange(other.clock_, nullptr)) {}
  ClockRef& operator=(ClockRef other) noexcept {
    std::swap(clock_, other.clock_);
    return *this;
  }
  ~ClockRef() {
    if (clock_ != nullptr && --clock_->references_ == 0) delete clock_;
  }

  [[nodiscard]] const VectorClock* get() const { return clock_; }
  [[nodiscard]] bool covers(Agent agent, Time time, const LaunchOrder& order) const {
    return clock_ != nullptr && clock_->covers(agent, time, order);
  }
  friend bool operator==(const ClockRef& a, const ClockRef& b) { return a.clock_ == b.clock_; }

 private:
  void take() {
    if (clock_ != nullptr) ++clock_->references_;
  }
  VectorClock* clock_ = nullptr;
};

// Makes clocks. Joins that were made lately are remembered: lanes that know the same learn the
// same.
class Clocks {
 public:
  // Tells where a block's kernel stands, so that entries of ended kernels are dropped.
  explicit Clocks(std::function<LaunchOrder(std::uint32_t slot)> order_of);

  // Everything that either of them covers.
  ClockRef join(const ClockRef& a, const ClockRef& b);
  // `clock` and the entries given, ascending.
  ClockRef with(const ClockRef& clock, const VectorClock::Entry* entries, std::size_t count);
  // `clock` and all kernels of the stream up to this one.
  ClockRef with(const ClockRef& clock, const LaunchOrder& order);
  void forget_joins();

 private:
  struct Memo {
    ClockRef a, b, joined;
  };
  static constexpr std::size_t kMemos = 1024;

  // `b_ref` refers to b, or is null.
  ClockRef merge(const ClockRef& a_ref, const VectorClock& b, const ClockRef& b_ref);

  std::function<LaunchOrder(std::uint32_t slot)> order_of_;
  std::vector<Memo> memos_;
};

}  // namespace afdep::emulator
