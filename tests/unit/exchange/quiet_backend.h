// A backend whose enqueueing does nothing: what is left is the buffer's own work.
#pragma once

#include "tests/unit/exchange/buffer_fixture.h"

namespace afdep {

class QuietBackend : public FakeBackend {
 public:
  int launched = 0;
  Result<void> launch(const Launch& /*launch*/, Stream /*stream*/) override {
    ++launched;
    return {};
  }
  Result<void> record(Event /*event*/, Stream /*stream*/) override { return {}; }
  Result<void> wait(Event /*event*/, Stream /*stream*/) override { return {}; }
};

}  // namespace afdep
