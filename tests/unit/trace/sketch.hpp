// Recordings made by hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/recording.hpp"

namespace weir::rt::trace {

/// Adds tracks, streams and entries one by one. Ids count from 1, times are nanoseconds.
class Sketch {
 public:
  std::uint32_t place(std::string name, std::string domain, std::uint32_t width = 1) {
    return track({std::move(name), std::move(domain), Kind::compute, width});
  }
  std::uint32_t link(std::string name, std::string domain) {
    return track({std::move(name), std::move(domain), Kind::transfer, 1});
  }
  std::uint32_t stream(std::string name) {
    recording_.streams.push_back({std::move(name)});
    return static_cast<std::uint32_t>(recording_.streams.size() - 1);
  }

  /// Returns the entry, which is valid until the next one is added, for what differs.
  Entry& compute(std::uint32_t track, std::int64_t started, std::int64_t ended,
                 const std::vector<std::uint64_t>& after = {}) {
    return entry(Kind::compute, track, started, ended, after);
  }
  Entry& transfer(std::uint32_t track, std::int64_t started, std::int64_t ended,
                  const std::vector<std::uint64_t>& after = {}) {
    return entry(Kind::transfer, track, started, ended, after);
  }
  Entry& sync(std::uint32_t track, std::int64_t time,
              const std::vector<std::uint64_t>& after = {}) {
    return entry(Kind::sync, track, time, time, after);
  }
  void drop(std::uint64_t count) { recording_.dropped += count; }

  /// The recording as a Recorder returns it.
  Recording recording() const {
    Recording sorted = recording_;
    if (sorted.streams.empty()) sorted.streams.push_back({"stream"});
    std::sort(sorted.entries.begin(), sorted.entries.end(), [](const Entry& a, const Entry& b) {
      return a.ended != b.ended ? a.ended < b.ended : a.id < b.id;
    });
    return sorted;
  }

 private:
  std::uint32_t track(Track track) {
    recording_.tracks.push_back(std::move(track));
    return static_cast<std::uint32_t>(recording_.tracks.size() - 1);
  }
  Entry& entry(Kind kind, std::uint32_t track, std::int64_t started, std::int64_t ended,
               const std::vector<std::uint64_t>& after) {
    Entry entry{.id = recording_.entries.size() + 1,
                .enqueued = started,
                .ready = started,
                .started = started,
                .ended = ended,
                .track = track,
                .kind = kind,
                .first_dependence = static_cast<std::uint32_t>(recording_.dependences.size()),
                .dependence_count = static_cast<std::uint32_t>(after.size())};
    recording_.dependences.insert(recording_.dependences.end(), after.begin(), after.end());
    return recording_.entries.emplace_back(entry);
  }

  Recording recording_;
};

inline void set_name(Entry& entry, std::string_view name) {
  entry.name.fill('\0');
  std::copy_n(name.begin(), std::min(name.size(), entry.name.size()), entry.name.begin());
}

}  // namespace weir::rt::trace
