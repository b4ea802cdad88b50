#pragma once

#include <cstdint>

namespace afdep {

// What worker_receive hands out and worker_reply takes back: which exchange of which buffer the
// rows belong to. Opaque; copies are the same receipt. Using one twice, late, or on another buffer
// is refused.
class Receipt {
 public:
  Receipt() = default;

 private:
  friend class Buffer;
  Receipt(std::uint64_t buffer, std::uint64_t exchange) : buffer_(buffer), exchange_(exchange) {}

  std::uint64_t buffer_ = 0;  // 0: of no buffer
  std::uint64_t exchange_ = 0;
};

}  // namespace afdep
