// The network between domains as NCCL GIN promises it, and not more: puts arrive in any order and
// in pieces of four bytes; a signal arrives after the earlier puts of the same sender, context and
// peer.
// Source: NCCL documentation, "Device API: GIN".
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace afdep::emulator {

class Choices;

class Network {
 public:
  // Which of the pieces under way arrives next is drawn from `choices`.
  explicit Network(Choices& choices) : choices_(choices) {}

  // A sender's context towards one peer: the unit of order.
  struct Channel {
    int sender = 0;
    int context = 0;
    int peer = 0;
    friend bool operator==(const Channel&, const Channel&) = default;
  };

  // Starts a copy of `bytes`, a multiple of 4, between 4-aligned addresses. The source is read at
  // any time until flushed() says otherwise.
  void put(const Channel& channel, void* to, const void* from, std::size_t bytes);
  // Adds to the signal word after all puts of the channel so far have arrived.
  void signal(const Channel& channel, std::uint64_t* at, std::uint64_t add);

  // One piece or signal arrives; false if nothing is under way.
  bool deliver();
  [[nodiscard]] bool idle() const { return pieces_.empty() && signals_.empty(); }
  // True once the sources of all puts of this sender and context may be changed.
  [[nodiscard]] bool flushed(int sender, int context) const;

 private:
  struct Piece {
    Channel channel;
    std::uint64_t number;  // of the put, over all channels
    std::byte* to;
    const std::byte* from;
  };
  struct Signal {
    Channel channel;
    std::uint64_t number;  // puts with a lower one come first
    std::uint64_t* at;
    std::uint64_t add;
  };

  [[nodiscard]] bool ready(const Signal& signal) const;

  Choices& choices_;
  std::vector<Piece> pieces_;
  std::vector<Signal> signals_;
  std::uint64_t puts_ = 0;
};

}  // namespace afdep::emulator
