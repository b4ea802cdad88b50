#include "runtime/emulator/stream_queue.h"

#include "runtime/emulator/execution.h"

namespace afdep::emulator {

// Here because KernelRun is complete here.
StreamQueue::StreamQueue() = default;
StreamQueue::~StreamQueue() = default;

}  // namespace afdep::emulator
