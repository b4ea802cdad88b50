#include "runtime/emulator/network.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/emulator/choices.h"
#include "runtime/support/check.h"

namespace afdep::emulator {
namespace {

constexpr std::size_t kPieceBytes = 4;

}  // namespace

void Network::put(const Channel& channel, void* to, const void* from, std::size_t bytes) {
  AFDEP_CHECK(bytes % kPieceBytes == 0 && reinterpret_cast<std::uintptr_t>(to) % kPieceBytes == 0 &&
                  reinterpret_cast<std::uintptr_t>(from) % kPieceBytes == 0,
              "a put of " + std::to_string(bytes) + " bytes is not made of aligned words");
  const std::uint64_t number = ++puts_;
  for (std::size_t done = 0; done < bytes; done += kPieceBytes) {
    pieces_.push_back({channel, number, static_cast<std::byte*>(to) + done,
                       static_cast<const std::byte*>(from) + done});
  }
}

void Network::signal(const Channel& channel, std::uint64_t* at, std::uint64_t add) {
  signals_.push_back({channel, puts_ + 1, at, add});
}

bool Network::ready(const Signal& signal) const {
  return std::ranges::none_of(pieces_, [&](const Piece& piece) {
    return piece.channel == signal.channel && piece.number < signal.number;
  });
}

bool Network::deliver() {
  std::vector<std::size_t> ready_signals;
  for (std::size_t i = 0; i < signals_.size(); ++i) {
    if (ready(signals_[i])) ready_signals.push_back(i);
  }
  const std::size_t options = pieces_.size() + ready_signals.size();
  if (options == 0) return false;
  const std::size_t picked = choices_.pick(static_cast<std::uint32_t>(options));
  if (picked < pieces_.size()) {
    std::memcpy(pieces_[picked].to, pieces_[picked].from, kPieceBytes);
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(picked));
    return true;
  }
  const auto signal =
      signals_.begin() + static_cast<std::ptrdiff_t>(ready_signals[picked - pieces_.size()]);
  *signal->at += signal->add;
  signals_.erase(signal);
  return true;
}

bool Network::flushed(int sender, int context) const {
  return std::ranges::none_of(pieces_, [&](const Piece& piece) {
    return piece.channel.sender == sender && piece.channel.context == context;
  });
}

}  // namespace afdep::emulator
