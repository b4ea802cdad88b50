#include "runtime/emulator/memory_model.h"

#include <cstring>

namespace afdep::emulator {
namespace {

class SequentialMemory final : public MemoryModel {
 public:
  void load(const Access& access, void* value) override { read(access, value); }
  void store(const Access& access, const void* value) override { write(access, value); }
  void load_input(const Access& access, void* value) override { read(access, value); }
  void load_packet(const Access& access, void* value) override { read(access, value); }
  void store_packet(const Access& access, const void* value) override { write(access, value); }
  void acquire(const Access& access, void* value) override { read(access, value); }
  void release(const Access& access, const void* value) override { write(access, value); }
  void load_relaxed(const Access& access, void* value) override { read(access, value); }
  void store_flag(const Access& access, const void* value) override { write(access, value); }
  void store_relaxed(const Access& access, const void* value) override { write(access, value); }

  bool claim(const Access& access) override {
    std::uint32_t before = 0;
    read(access, &before);
    const std::uint32_t one = 1;
    if (before == 0) write(access, &one);
    return before == 0;
  }
  std::uint32_t take(const Access& access) override {
    std::uint32_t before = 0;
    read(access, &before);
    const std::uint32_t after = before + 1;
    write(access, &after);
    return before;
  }

  // Nothing to order.
  void warp_joined(const ThreadId& /*first*/, bool /*orders_memory*/) override {}
  void block_joined(const ThreadId& /*first*/) override {}
  void previous_kernel_awaited(const ThreadId& /*thread*/) override {}
  void kernel_started(const KernelStart& /*start*/) override {}
  void kernel_ended(int /*rank*/, std::uint64_t /*launch*/) override {}

 private:
  static void read(const Access& access, void* value) {
    std::memcpy(value, access.address, access.bytes);
  }
  static void write(const Access& access, const void* value) {
    std::memcpy(access.address, value, access.bytes);
  }
};

}  // namespace

std::unique_ptr<MemoryModel> make_sequential_memory() {
  return std::make_unique<SequentialMemory>();
}

}  // namespace afdep::emulator
