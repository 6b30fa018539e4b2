// One walk of the whole C interface, with an oracle for every status and every byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/status.h>

namespace faults {

/// What a walk has to say, in memory that survives the process it runs in.
struct Report {
  unsigned errors = 0;         ///< calls or actions that failed and need not have
  unsigned device_errors = 0;  ///< actions that failed because of a device
  unsigned wrong = 0;          ///< contradictions; the first few are in `text`
  std::size_t written = 0;
  char text[4000] = "";
  char first_error[200] = "";

  void blame(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void add(const Report& other);
};

/// Where to walk. Two domains; with virtual time both are devices and nothing runs on other
/// threads.
struct Route {
  const char* name;
  const char* domains;
  bool virtual_time;
  bool breaks = false;           ///< a device may fail
  std::size_t sound_domain = 1;  ///< one that works in the end
  bool leaves = false;           ///< a rank may leave
};
extern const Route kRoutes[2];

/// What nothing here takes, in nanoseconds.
constexpr std::int64_t kLong = INT64_C(15'000'000'000);

constexpr unsigned only(weir_status status) { return 1u << status; }

/// Takes the outcome of a call, which may be one of `expected`, or one that a fault causes. Only OK
/// is true.
bool took(const Route& route, Report& report, weir_status status, const char* call,
          unsigned expected = only(WEIR_STATUS_OK));

/// Creates a runtime, does everything a program can do with it, and remembers the statuses it got.
/// Allocates nothing itself.
void walk(const Route& route, const char* folder, Report& report);

/// Afterwards, when nothing fails any more: compares all results with what the statuses promised,
/// does a small job with the same runtime and with a new one, and destroys both.
void finish(const Route& route, Report& report);

/// Does a small job with a new runtime, when nothing fails any more.
void finish_anew(const Route& route, Report& report);

}  // namespace faults
