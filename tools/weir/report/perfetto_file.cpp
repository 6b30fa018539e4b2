// Recordings in Perfetto's protobuf, as `weir run --trace FILE.pftrace` and WEIR_TRACE leave them.
#include <charconv>
#include <map>

#include <protozero/pbf_message.hpp>

#include "common/input_error.hpp"
#include "report/trace_parts.hpp"

namespace weir::cli::report {

namespace {

constexpr std::uint64_t kLongestNs = 9'000'000'000'000'000;  ///< a hundred days

// The fields in use of the messages in protos/perfetto/trace of Perfetto's sources.
namespace fields {

using Number = protozero::pbf_tag_type;

enum class Trace : Number { packet = 1 };
enum class TracePacket : Number {
  timestamp = 8,
  track_event = 11,
  interned_data = 12,
  track_descriptor = 60
};
enum class TrackDescriptor : Number { uuid = 1, name = 2, process = 3, parent_uuid = 5 };
enum class ProcessDescriptor : Number { process_name = 6 };
enum class TrackEvent : Number {
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  name = 23,
  flow_ids = 47,
  terminating_flow_ids = 48
};
enum class DebugAnnotation : Number { name_iid = 1, uint_value = 3, string_value = 6 };
enum class InternedData : Number {
  event_categories = 1,
  event_names = 2,
  debug_annotation_names = 3
};
enum class Interned : Number { iid = 1, name = 2 };

}  // namespace fields

constexpr int kSliceBegin = 1, kSliceEnd = 2;  // TrackEvent.Type

template <class Field>
using Message = protozero::pbf_message<Field>;

// A field together with the type that it must have to be read.
template <class Field>
constexpr std::uint32_t as_varint(Field field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
template <class Field>
constexpr std::uint32_t as_fixed64(Field field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed64);
}
template <class Field>
constexpr std::uint32_t as_bytes(Field field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

/// Passes over the fields of a message: visit(message, field with type) returns whether it has read
/// this one.
template <class Field, class Visit>
void read_fields(protozero::data_view data, const Visit& visit) {
  Message<Field> message(data);
  while (message.next()) {
    if (!visit(message, message.tag_and_type())) message.skip();
  }
}

std::string_view view_of(protozero::data_view view) { return {view.data(), view.size()}; }

/// Texts by the numbers that packets use for them.
class Dictionary {
 public:
  void define(protozero::data_view data) {
    std::uint64_t iid = 0;
    std::string_view name;
    read_fields<fields::Interned>(data, [&](auto& message, std::uint32_t field) {
      switch (field) {
        case as_varint(fields::Interned::iid): return iid = message.get_uint64(), true;
        case as_bytes(fields::Interned::name): return name = view_of(message.get_view()), true;
      }
      return false;
    });
    texts_[iid] = name;
  }
  std::string_view operator[](std::uint64_t iid) const {
    const auto found = texts_.find(iid);
    return found == texts_.end() ? std::string_view() : found->second;
  }

 private:
  std::unordered_map<std::uint64_t, std::string_view> texts_;
};

/// A TrackEvent.
struct TrackEvent {
  int type = 0;
  std::uint64_t track = 0, category = 0, name = 0;
  std::string_view text;  ///< a name of its own
  std::string_view stream, status;
  std::uint64_t moved = 0, enqueued = 0, ready = 0, cores = 1, place_cores = 1;
  std::vector<std::uint64_t> leaving, arriving;  ///< arrows
};

class PerfettoReader {
 public:
  PerfettoReader(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  Trace read() {
    try {
      read_fields<fields::Trace>({bytes_.data(), bytes_.size()},
                                 [&](auto& trace, std::uint32_t field) {
                                   if (field != as_bytes(fields::Trace::packet)) return false;
                                   ++packets_;
                                   read_packet(trace.get_view());
                                   return true;
                                 });
    } catch (const protozero::exception& error) {
      fail(error.what());
    }
    trace_.streams = streams_.take();
    trace_.names = names_.take();
    trace_.edges = arrows_.take();
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    apps::fail_input("{}: packet {}: is damaged: {}", path_, packets_, why);
  }

  void read_packet(protozero::data_view data) {
    std::uint64_t time = 0;
    protozero::data_view event;
    using Field = fields::TracePacket;
    read_fields<Field>(data, [&](auto& packet, std::uint32_t field) {
      switch (field) {
        case as_varint(Field::timestamp): return time = packet.get_uint64(), true;
        case as_bytes(Field::track_event): return event = packet.get_view(), true;
        case as_bytes(Field::interned_data): return read_dictionary(packet.get_view()), true;
        case as_bytes(Field::track_descriptor): return read_track(packet.get_view()), true;
      }
      return false;
    });
    if (event.size() > 0) add(read_event(event), nanoseconds(time));
  }

  void read_dictionary(protozero::data_view data) {
    using Field = fields::InternedData;
    read_fields<Field>(data, [&](auto& texts, std::uint32_t field) {
      switch (field) {
        case as_bytes(Field::event_categories):
          return category_texts_.define(texts.get_view()), true;
        case as_bytes(Field::event_names): return name_texts_.define(texts.get_view()), true;
        case as_bytes(Field::debug_annotation_names):
          return note_texts_.define(texts.get_view()), true;
      }
      return false;
    });
  }

  void read_track(protozero::data_view data) {
    std::uint64_t uuid = 0, parent = 0;
    std::string name;
    using Field = fields::TrackDescriptor;
    read_fields<Field>(data, [&](auto& track, std::uint32_t field) {
      switch (field) {
        case as_varint(Field::uuid): return uuid = track.get_uint64(), true;
        case as_bytes(Field::name): return name = track.get_string(), true;
        case as_bytes(Field::process): return read_process(track.get_view(), uuid), true;
        case as_varint(Field::parent_uuid): return parent = track.get_uint64(), true;
      }
      return false;
    });
    if (parent != 0) trace_.rows[row_of(uuid)] = row_named(processes_[parent], std::move(name));
  }

  void read_process(protozero::data_view data, std::uint64_t uuid) {
    using Field = fields::ProcessDescriptor;
    read_fields<Field>(data, [&](auto& process, std::uint32_t field) {
      if (field != as_bytes(Field::process_name)) return false;
      processes_[uuid] = process.get_string();
      return true;
    });
  }

  TrackEvent read_event(protozero::data_view data) {
    TrackEvent event;
    using Field = fields::TrackEvent;
    read_fields<Field>(data, [&](auto& message, std::uint32_t field) {
      switch (field) {
        case as_varint(Field::category_iids): return event.category = message.get_uint64(), true;
        case as_bytes(Field::debug_annotations): return read_note(message.get_view(), event), true;
        case as_varint(Field::type): return event.type = message.get_enum(), true;
        case as_varint(Field::name_iid): return event.name = message.get_uint64(), true;
        case as_varint(Field::track_uuid): return event.track = message.get_uint64(), true;
        case as_bytes(Field::name): return event.text = view_of(message.get_view()), true;
        case as_fixed64(Field::flow_ids):
          return event.leaving.push_back(message.get_fixed64()), true;
        case as_fixed64(Field::terminating_flow_ids):
          return event.arriving.push_back(message.get_fixed64()), true;
      }
      return false;
    });
    return event;
  }

  void read_note(protozero::data_view data, TrackEvent& event) const {
    std::string_view name, text;
    std::uint64_t value = 0;
    using Field = fields::DebugAnnotation;
    read_fields<Field>(data, [&](auto& note, std::uint32_t field) {
      switch (field) {
        case as_varint(Field::name_iid): return name = note_texts_[note.get_uint64()], true;
        case as_varint(Field::uint_value): return value = note.get_uint64(), true;
        case as_bytes(Field::string_value): return text = view_of(note.get_view()), true;
      }
      return false;
    });
    if (name == "stream") event.stream = text;
    if (name == "status") event.status = text;
    if (name == "bytes") event.moved = value;
    if (name == "enqueued_ns") event.enqueued = value;
    if (name == "ready_ns") event.ready = value;
    if (name == "cores") event.cores = value;
    if (name == "place_cores") event.place_cores = value;
  }

  std::int64_t nanoseconds(std::uint64_t time) const {
    if (time > kLongestNs) fail("a time of more than a hundred days");
    return static_cast<std::int64_t>(time);
  }

  std::uint32_t row_of(std::uint64_t uuid) {
    const auto [found, is_new] = rows_.try_emplace(uuid, trace_.rows.size());
    if (is_new) {
      trace_.rows.emplace_back();
      open_.push_back(Arrows::kNone);
    }
    return static_cast<std::uint32_t>(found->second);
  }

  void add(const TrackEvent& event, std::int64_t time) {
    if (event.type == kSliceBegin) {
      begin(event, time);
    } else if (event.type == kSliceEnd) {
      end(row_of(event.track), time);
    } else {
      std::from_chars(event.text.data(), event.text.data() + event.text.size(), trace_.dropped);
    }
  }

  void begin(const TrackEvent& event, std::int64_t time) {
    const std::uint32_t row = row_of(event.track);
    const auto slice = static_cast<std::uint32_t>(trace_.slices.size());
    const std::string_view name = name_texts_[event.name];
    open_[row] = slice;
    trace_.slices.push_back(
        {.started = time,
         .duration = 0,
         .enqueued = nanoseconds(event.enqueued),
         .ready = nanoseconds(event.ready),
         .bytes = event.moved,
         .row = row,
         .stream = streams_(event.stream),
         .name = names_(name),
         .cores = cores_of(event.cores),
         .place_cores = cores_of(event.place_cores),
         .kind = kind_of(category_texts_[event.category], name, trace_.rows[row]),
         .failed = event.status != "ok"});
    for (const std::uint64_t arrow : event.leaving) ends_of(arrow).first = slice;
    for (const std::uint64_t arrow : event.arriving) ends_of(arrow).second = slice;
  }

  void end(std::uint32_t row, std::int64_t time) {
    if (open_[row] == Arrows::kNone) fail("something ends that did not begin");
    Slice& slice = trace_.slices[std::exchange(open_[row], Arrows::kNone)];
    if (time < slice.started) fail("something ends before it began");
    slice.duration = time - slice.started;
  }

  /// None takes less than a byte.
  Arrows::Ends& ends_of(std::uint64_t arrow) {
    if (arrow >= bytes_.size()) fail("an arrow with a number that cannot be");
    return arrows_[arrow];
  }

  const std::string_view bytes_;
  const std::string& path_;
  std::size_t packets_ = 0;
  Trace trace_;
  Dictionary category_texts_, name_texts_, note_texts_;
  Numbering streams_{[](std::string_view raw) { return std::string(raw); }}, names_ = streams_;
  std::map<std::uint64_t, std::string> processes_;
  std::unordered_map<std::uint64_t, std::size_t> rows_;  ///< by uuid
  std::vector<std::uint32_t> open_;                      ///< slice of each row
  Arrows arrows_;
};

}  // namespace

bool is_perfetto(std::string_view bytes) noexcept {
  constexpr std::size_t kLongestLength = 5;
  constexpr std::string_view kSequence = "\x50\x01";  // trusted_packet_sequence_id = 1
  if (!bytes.starts_with('\n')) return false;
  std::size_t at = 1;
  while (at < kLongestLength && at < bytes.size() && (bytes[at] & 0x80) != 0) ++at;
  return at + 1 < bytes.size() && bytes.substr(at + 1).starts_with(kSequence);
}

Trace read_perfetto(std::string_view bytes, const std::string& name) {
  return PerfettoReader(bytes, name).read();
}

}  // namespace weir::cli::report
