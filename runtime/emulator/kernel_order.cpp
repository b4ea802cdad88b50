// Scheduler: the order of kernels, copies and events on streams.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/emulator/scheduler.h"

namespace afdep::emulator {

StreamQueue* Scheduler::add_stream() {
  streams_.push_back(std::make_unique<StreamQueue>());
  streams_.back()->number = ++streams_made_;
  return streams_.back().get();
}

void Scheduler::remove_stream(StreamQueue* stream) {
  std::erase_if(streams_, [stream](const auto& one) { return one.get() == stream; });
}

void Scheduler::advance_streams() {
  while (streams_dirty_) {
    streams_dirty_ = false;
    for (const auto& stream : streams_) {
      while (advance(*stream)) {
        // An event that happened here may be awaited by a stream already passed.
        streams_dirty_ = true;
      }
    }
  }
}

// Starts or carries out what the order allows; true if an operation other than a kernel was carried
// out.
bool Scheduler::advance(StreamQueue& stream) {
  std::deque<QueuedOperation>& queue = stream.queue;
  while (!queue.empty() && queue.front().done) queue.pop_front();
  for (std::size_t i = 0; i < queue.size(); ++i) {
    QueuedOperation& queued = queue[i];
    if (queued.run != nullptr) continue;
    Operation& operation = queued.operation;
    KernelRun* previous = nullptr;
    if (i > 0) {
      // Programmatic dependent launch: resident early, behind a kernel all of whose blocks agree.
      const QueuedOperation& before = queue[i - 1];
      if (operation.kind != Operation::Kind::kKernel || !operation.launch.programmatic)
        return false;
      if (before.run == nullptr || !before.run->next_may_start()) return false;
      if (!before.done) previous = before.run.get();
    }
    switch (operation.kind) {
      case Operation::Kind::kKernel:
        start_kernel(queued, stream, previous);
        continue;
      case Operation::Kind::kCopy:
        model_->copied(stream.number, operation.to, operation.from, operation.bytes);
        std::memcpy(operation.to, operation.from, operation.bytes);
        memory_changed();
        break;
      case Operation::Kind::kRecord:
        operation.event->completed = std::max(operation.event->completed, operation.recording);
        operation.event->time_ns = now_ns_;
        model_->event_recorded(operation.event.get(), stream.number);
        break;
      case Operation::Kind::kWait:
        if (operation.event->completed < operation.recording) return false;
        model_->event_awaited(operation.event.get(), stream.number);
        break;
      case Operation::Kind::kFence:
        break;
    }
    queued.done = true;
    return true;
  }
  return false;
}

void Scheduler::start_kernel(QueuedOperation& queued, StreamQueue& stream, KernelRun* previous) {
  queued.run = std::make_unique<KernelRun>();
  KernelRun& run = *queued.run;
  run.launch = &queued.operation.launch;
  run.queued = &queued;
  run.stream = &stream;
  run.number = ++launches_;
  run.on_stream = ++stream.launches;
  if (exploration_ != nullptr) {
    run.start_clock = stream.clock;
    if (previous != nullptr) run.start_clock.join(previous->release_clock);
  }
  run.timeout_ns = run.launch->code->timeout_ns(run.launch->args.data());
  run.previous = previous;
  if (previous != nullptr) previous->next = &run;
  run.order.resize(static_cast<std::size_t>(run.launch->grid));
  std::iota(run.order.begin(), run.order.end(), 0);
  for (std::size_t i = exploration_ != nullptr ? 0 : run.order.size(); i > 1; --i) {
    std::swap(run.order[i - 1], run.order[choices_.pick(static_cast<std::uint32_t>(i))]);
  }
  model_->kernel_started({run.launch->rank, run.number, stream.number, queued.operation.host_order,
                          run.launch->symbol});
  if (previous == nullptr) know_generation(run);
  starting_.push_back(&run);
}

// For reports: the generation words hold it once the kernel before has ended.
void Scheduler::know_generation(KernelRun& run) {
  if (run.generation_known) return;
  run.generation_known = true;
  model_->generation_known(run.number, run.launch->code->generation(run.launch->args.data()));
}

void Scheduler::end_kernel(KernelRun& run) {
  model_->kernel_ended(run.launch->rank, run.number);
  run.stream->clock.join(run.end_clock);
  run.stream->hops = std::max(run.stream->hops, run.hops);
  if (run.previous != nullptr) run.previous->next = nullptr;
  if (run.next != nullptr) {
    run.next->previous = nullptr;
    for (const auto& block : run.next->live) {
      for (Thread& thread : block->threads) {
        if (thread.state == ThreadState::kPreviousKernel) make_runnable(thread);
      }
    }
  }
  run.queued->done = true;
  streams_dirty_ = true;
}

void Scheduler::release(Block& block) {
  if (block.released) return;
  block.released = true;
  KernelRun& run = *block.run;
  ++run.released;
  if (run.next_may_start()) streams_dirty_ = true;
}

void Scheduler::release_next_kernel(Thread& self) {
  preempt(self);
  if (exploration_ != nullptr) {
    self.warp->block->run->release_clock.join(exploration_->clock(self.warp->unit));
  }
  release(*self.warp->block);
}

void Scheduler::await_previous_kernel(Thread& self) {
  preempt(self);
  if (self.warp->block->run->previous != nullptr) {
    make_unrunnable(self, ThreadState::kPreviousKernel);
    switch_out(self);
  }
  self.hops = std::max(self.hops, self.warp->block->run->stream->hops);
  if (exploration_ != nullptr) {
    exploration_->clock(self.warp->unit).join(self.warp->block->run->stream->clock);
  }
  model_->previous_kernel_awaited(self.id);
  know_generation(*self.warp->block->run);
}

}  // namespace afdep::emulator
