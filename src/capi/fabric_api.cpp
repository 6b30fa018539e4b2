#include <weir/fabric.h>

#include "capi/guard.hpp"
#include "runtime/fabric.hpp"
#include "runtime/reduction.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

std::span<std::byte> bytes_at(void* data, std::size_t bytes) {
  if (data == nullptr && bytes > 0) fail_argument("the memory for {} bytes is NULL", bytes);
  return {static_cast<std::byte*>(data), bytes};
}

std::span<const std::byte> bytes_at(const void* data, std::size_t bytes) {
  return bytes_at(const_cast<void*>(data), bytes);
}

void reduce(weir_fabric* fabric, void* values, std::size_t count, weir_number type,
            weir_fabric_op op, std::int64_t timeout_ns) {
  weir_reduction reduction = WEIR_REDUCTION_INIT;
  reduction.type = type;
  reduction.op = op;
  weir_fabric::check(fabric).communicator().reduce(
      WEIR_ALL_RANKS, numbers_at(values, count, reduction), timeout_ns);
}

weir_fabric_options known_options(const weir_fabric_options* options) {
  return read_options(options, weir_fabric_options WEIR_FABRIC_OPTIONS_INIT, "options");
}

/// Returns the result of a query on a handle, `otherwise` for an invalid handle.
template <class Answer, class Question>
Answer ask(Answer otherwise, Question&& question) noexcept {
  Answer answer = otherwise;
  guard([&] { answer = question(); });
  return answer;
}

}  // namespace

extern "C" {

weir_status weir_fabric_open(const weir_fabric_options* options, weir_fabric** out_fabric) {
  return guard([&] {
    weir_fabric*& result = out(out_fabric, "out_fabric");
    result = open_fabric(known_options(options)).release();
  });
}

void weir_fabric_close(weir_fabric* fabric) {
  if (fabric == nullptr) return;
  guard([&] {
    weir_fabric& live = weir_fabric::check(fabric);
    if (live.port().inside_listener()) {
      fail(WEIR_STATUS_BUSY, "a handler of messages must not close its fabric");
    }
    close_fabric(live);
  });
}

weir_status weir_fabric_simulate(const weir_fabric_options* options, unsigned ranks,
                                 weir_fabric_program program, void* payload) {
  return guard([&] {
    if (program == nullptr) fail_argument("the program of a fabric is NULL");
    simulate_fabric(known_options(options), ranks, [&](weir_fabric& fabric) {
      const weir_status status = program(&fabric, payload);
      if (status != WEIR_STATUS_OK) fail(status, "{}", weir_last_error());
    });
  });
}

weir_status weir_fabric_launch(const weir_fabric_options* options, unsigned ranks,
                               const char* const* argv, int* out_status) {
  return guard([&] {
    int& status = out(out_status, "out_status");
    weir_launch_options launch = WEIR_LAUNCH_OPTIONS_INIT;
    launch.lost_after_ns = known_options(options).lost_after_ns;
    status = launch_fabric(launch, ranks, argv);
  });
}

weir_status weir_fabric_launch_with(const weir_launch_options* options, unsigned ranks,
                                    const char* const* argv, int* out_status) {
  return guard([&] {
    int& status = out(out_status, "out_status");
    const weir_launch_options launch =
        read_options(options, weir_launch_options WEIR_LAUNCH_OPTIONS_INIT, "options");
    status = launch_fabric(launch, ranks, argv);
  });
}

unsigned weir_fabric_rank(const weir_fabric* fabric) {
  return ask(0u, [&] { return weir_fabric::check(fabric).port().rank(); });
}

unsigned weir_fabric_ranks(const weir_fabric* fabric) {
  return ask(0u, [&] { return weir_fabric::check(fabric).port().ranks(); });
}

bool weir_fabric_is_alive(const weir_fabric* fabric, unsigned rank) {
  return ask(false, [&] { return weir_fabric::check(fabric).port().alive(rank); });
}

const char* weir_fabric_link(const weir_fabric* fabric, unsigned rank) {
  return ask(static_cast<const char*>(nullptr), [&]() -> const char* {
    const Port& port = weir_fabric::check(fabric).port();
    if (rank >= port.ranks()) return nullptr;
    return rank == port.rank() ? "self" : port.peer_info(rank).name;
  });
}

weir_status weir_fabric_barrier(weir_fabric* fabric, int64_t timeout_ns) {
  return guard([&] { weir_fabric::check(fabric).barrier(timeout_ns); });
}

weir_status weir_fabric_reduce_int64(weir_fabric* fabric, int64_t* values, size_t count,
                                     weir_fabric_op op, int64_t timeout_ns) {
  return guard([&] { reduce(fabric, values, count, WEIR_NUMBER_INT64, op, timeout_ns); });
}

weir_status weir_fabric_reduce_double(weir_fabric* fabric, double* values, size_t count,
                                      weir_fabric_op op, int64_t timeout_ns) {
  return guard([&] { reduce(fabric, values, count, WEIR_NUMBER_DOUBLE, op, timeout_ns); });
}

weir_status weir_fabric_broadcast(weir_fabric* fabric, unsigned root, void* data, size_t bytes,
                                  int64_t timeout_ns) {
  return guard([&] {
    weir_fabric::check(fabric).communicator().broadcast(root, bytes_at(data, bytes), timeout_ns);
  });
}

weir_status weir_fabric_listen(weir_fabric* fabric, weir_fabric_handler handler, void* payload) {
  return guard([&] { weir_fabric::check(fabric).listen(handler, payload); });
}

weir_status weir_fabric_send(weir_fabric* fabric, unsigned to, const void* message, size_t bytes) {
  return guard([&] { weir_fabric::check(fabric).send(to, bytes_at(message, bytes)); });
}

weir_status weir_fabric_progress(weir_fabric* fabric, int64_t timeout_ns) {
  return guard([&] {
    if (weir_fabric::check(fabric).progress(timeout_ns)) return;
    fail(WEIR_STATUS_TIMEOUT, "no message has come in time");
  });
}

weir_status weir_window_create(weir_fabric* fabric, void* memory, size_t bytes, int64_t timeout_ns,
                               weir_window** out_window) {
  return guard([&] {
    weir_window*& result = out(out_window, "out_window");
    result = weir_fabric::check(fabric).create_window(memory, bytes, timeout_ns);
  });
}

void weir_window_destroy(weir_window* window) {
  if (window == nullptr) return;
  guard([&] {
    weir_window& live = weir_window::check(window);
    live.fabric().destroy_window(&live);
  });
}

void* weir_window_memory(const weir_window* window) {
  return ask<void*>(nullptr, [&] { return weir_window::check(window).memory(); });
}

weir_status weir_window_put(weir_window* window, unsigned rank, size_t offset, const void* data,
                            size_t bytes) {
  return guard([&] { weir_window::check(window).put(rank, offset, bytes_at(data, bytes)); });
}

weir_status weir_window_get(weir_window* window, unsigned rank, size_t offset, void* data,
                            size_t bytes) {
  return guard([&] { weir_window::check(window).get(rank, offset, bytes_at(data, bytes)); });
}

weir_status weir_window_fetch_add(weir_window* window, unsigned rank, size_t offset,
                                  int64_t operand, int64_t* out_old) {
  return guard([&] {
    const std::int64_t old = weir_window::check(window).fetch_add(rank, offset, operand);
    if (out_old != nullptr) *out_old = old;
  });
}

weir_status weir_window_compare_swap(weir_window* window, unsigned rank, size_t offset,
                                     int64_t expected, int64_t desired, int64_t* out_old) {
  return guard([&] {
    const std::int64_t old =
        weir_window::check(window).compare_swap(rank, offset, expected, desired);
    if (out_old != nullptr) *out_old = old;
  });
}

weir_status weir_window_flush(weir_window* window, unsigned rank, int64_t timeout_ns) {
  return guard([&] { weir_window::check(window).flush(rank, timeout_ns); });
}
}
