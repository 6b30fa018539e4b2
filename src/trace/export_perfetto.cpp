// Perfetto's protobuf: a Trace of TracePackets in the order of their times.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <protozero/pbf_builder.hpp>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "trace/entry.hpp"
#include "trace/export_format.hpp"

namespace weir::rt::trace {

namespace {

// The fields in use of the messages in protos/perfetto/trace of Perfetto's sources.
namespace fields {

using Number = protozero::pbf_tag_type;

enum class Trace : Number { packet = 1 };
enum class TracePacket : Number {
  timestamp = 8,
  trusted_packet_sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  previous_packet_dropped = 42,
  track_descriptor = 60,
  first_packet_on_sequence = 87
};
enum class TrackDescriptor : Number {
  uuid = 1,
  name = 2,
  process = 3,
  parent_uuid = 5,
  child_ordering = 11,
  sibling_order_rank = 12
};
enum class ProcessDescriptor : Number { pid = 1, process_name = 6 };
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
/// EventCategory, EventName and DebugAnnotationName alike.
enum class Interned : Number { iid = 1, name = 2 };

}  // namespace fields

constexpr std::int32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3;  // TrackEvent.Type
constexpr std::int32_t kExplicitOrder = 3;                   // TrackDescriptor.ChildTracksOrdering
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;  // TracePacket.SequenceFlags

using Packet = protozero::pbf_builder<fields::TracePacket>;
using Event = protozero::pbf_builder<fields::TrackEvent>;
using Descriptor = protozero::pbf_builder<fields::TrackDescriptor>;
using Note = protozero::pbf_builder<fields::DebugAnnotation>;
using Dictionary = protozero::pbf_builder<fields::InternedData>;

/// Interned once; the number of a name is its index plus one, that of a category its kind plus one.
enum class Annotation : std::uint64_t {
  id = 1,
  stream,
  bytes,
  status,
  enqueued,
  ready,
  cores,
  place_cores
};
constexpr const char* kAnnotations[] = {"id",          "stream",   "bytes", "status",
                                        "enqueued_ns", "ready_ns", "cores", "place_cores"};
constexpr Kind kKinds[] = {Kind::compute, Kind::transfer, Kind::sync};

std::uint64_t category_of(Kind kind) noexcept { return static_cast<std::uint64_t>(kind) + 1; }

void define(Dictionary& dictionary, fields::InternedData what, std::uint64_t iid,
            std::string_view name) {
  protozero::pbf_builder<fields::Interned> interned(dictionary, what);
  interned.add_uint64(fields::Interned::iid, iid);
  interned.add_string(fields::Interned::name, valid_utf8(name));
}

void annotate(Event& event, Annotation name, std::uint64_t value) {
  Note note(event, fields::TrackEvent::debug_annotations);
  note.add_uint64(fields::DebugAnnotation::name_iid, static_cast<std::uint64_t>(name));
  note.add_uint64(fields::DebugAnnotation::uint_value, value);
}

void annotate(Event& event, Annotation name, const std::string& value) {
  Note note(event, fields::TrackEvent::debug_annotations);
  note.add_uint64(fields::DebugAnnotation::name_iid, static_cast<std::uint64_t>(name));
  note.add_string(fields::DebugAnnotation::string_value, value);
}

/// Writes packet by packet, all of one sequence.
class PerfettoWriter {
 public:
  PerfettoWriter(const Drawing& drawing, sys::FileWriter& file)
      : recording_(drawing.recording),
        graph_(drawing.graph),
        timeline_(drawing.timeline),
        file_(file) {
    for (const StreamName& stream : recording_.streams) {
      streams_.push_back(valid_utf8(stream.name));
    }
  }

  void write_all();

 private:
  /// Has a packet filled by a function of a Packet&, and writes it.
  template <class Fill>
  void write_packet(std::uint32_t flags, Fill fill);
  template <class Fill>
  void write_descriptor(std::uint64_t uuid, Fill fill);
  void write_dictionary();
  void describe_processes();
  void describe_rows();
  void write_dropped();
  void write_moment(const Moment& moment);
  void write_begin(const Moment& moment);
  void write_end(const Moment& moment);
  void annotate_all(Event& event, const Entry& entry);
  void add_arrows(Event& event, std::uint32_t position);
  std::uint64_t intern(Packet& packet, std::string_view name);

  std::uint64_t uuid_of_process(std::size_t process) const noexcept { return process + 1; }
  std::uint64_t uuid_of_row(std::size_t row) const noexcept {
    return timeline_.processes().size() + row + 1;
  }
  std::uint64_t uuid_of_notes() const noexcept { return uuid_of_row(timeline_.rows().size()); }

  const Recording& recording_;
  const Graph& graph_;
  const Timeline& timeline_;
  sys::FileWriter& file_;
  std::vector<std::string> streams_;                           ///< names in UTF-8
  std::unordered_map<std::string_view, std::uint64_t> names_;  ///< of actions, in the entries
  std::string bytes_;
};

void PerfettoWriter::write_all() {
  write_dictionary();
  describe_processes();
  describe_rows();
  for (const Moment& moment : timeline_.moments()) write_moment(moment);
  if (recording_.dropped > 0) write_dropped();
}

template <class Fill>
void PerfettoWriter::write_packet(std::uint32_t flags, Fill fill) {
  bytes_.clear();
  {
    protozero::pbf_builder<fields::Trace> trace(bytes_);
    Packet packet(trace, fields::Trace::packet);
    packet.add_uint32(fields::TracePacket::trusted_packet_sequence_id, 1);
    packet.add_uint32(fields::TracePacket::sequence_flags, flags);
    fill(packet);
  }
  file_.write(bytes_);
}

void PerfettoWriter::write_dictionary() {
  write_packet(kStateCleared | kNeedsState, [](Packet& packet) {
    packet.add_uint32(fields::TracePacket::previous_packet_dropped, 1);
    packet.add_bool(fields::TracePacket::first_packet_on_sequence, true);
    Dictionary dictionary(packet, fields::TracePacket::interned_data);
    for (const Kind kind : kKinds) {
      define(dictionary, fields::InternedData::event_categories, category_of(kind),
             kind_name(kind));
    }
    std::uint64_t iid = 0;
    for (const char* name : kAnnotations) {
      define(dictionary, fields::InternedData::debug_annotation_names, ++iid, name);
    }
  });
}

template <class Fill>
void PerfettoWriter::write_descriptor(std::uint64_t uuid, Fill fill) {
  write_packet(kNeedsState, [&](Packet& packet) {
    Descriptor descriptor(packet, fields::TracePacket::track_descriptor);
    descriptor.add_uint64(fields::TrackDescriptor::uuid, uuid);
    fill(descriptor);
  });
}

void PerfettoWriter::describe_processes() {
  for (std::size_t index = 0; index < timeline_.processes().size(); ++index) {
    write_descriptor(uuid_of_process(index), [&](Descriptor& descriptor) {
      descriptor.add_enum(fields::TrackDescriptor::child_ordering, kExplicitOrder);
      protozero::pbf_builder<fields::ProcessDescriptor> process(descriptor,
                                                                fields::TrackDescriptor::process);
      process.add_int32(fields::ProcessDescriptor::pid, static_cast<std::int32_t>(index + 1));
      process.add_string(fields::ProcessDescriptor::process_name,
                         valid_utf8(timeline_.processes()[index]));
    });
  }
}

void PerfettoWriter::describe_rows() {
  for (std::size_t index = 0; index < timeline_.rows().size(); ++index) {
    const Row& row = timeline_.rows()[index];
    write_descriptor(uuid_of_row(index), [&](Descriptor& descriptor) {
      descriptor.add_uint64(fields::TrackDescriptor::parent_uuid, uuid_of_process(row.process));
      descriptor.add_string(fields::TrackDescriptor::name, valid_utf8(row.name));
      descriptor.add_int32(fields::TrackDescriptor::sibling_order_rank,
                           static_cast<std::int32_t>(index));
    });
  }
}

void PerfettoWriter::write_dropped() {
  write_descriptor(uuid_of_notes(), [](Descriptor& descriptor) {
    descriptor.add_string(fields::TrackDescriptor::name, "recording");
  });
  write_packet(kNeedsState, [this](Packet& packet) {
    const auto& moments = timeline_.moments();
    const std::int64_t last = moments.empty() ? 0 : moments.back().time;
    packet.add_uint64(fields::TracePacket::timestamp, static_cast<std::uint64_t>(last));
    Event event(packet, fields::TracePacket::track_event);
    event.add_enum(fields::TrackEvent::type, kInstant);
    event.add_uint64(fields::TrackEvent::track_uuid, uuid_of_notes());
    event.add_string(fields::TrackEvent::name,
                     fmt::format("{} actions dropped: the recording was full", recording_.dropped));
  });
}

void PerfettoWriter::write_moment(const Moment& moment) {
  if (moment.edge != Edge::end) write_begin(moment);
  if (moment.edge != Edge::begin) write_end(moment);
}

void PerfettoWriter::write_begin(const Moment& moment) {
  write_packet(kNeedsState, [&](Packet& packet) {
    const Entry& entry = recording_.entries[moment.position];
    const std::uint64_t name = intern(packet, label(entry));
    packet.add_uint64(fields::TracePacket::timestamp, static_cast<std::uint64_t>(moment.time));
    Event event(packet, fields::TracePacket::track_event);
    event.add_enum(fields::TrackEvent::type, kSliceBegin);
    event.add_uint64(fields::TrackEvent::track_uuid,
                     uuid_of_row(timeline_.row_of(moment.position)));
    event.add_uint64(fields::TrackEvent::category_iids, category_of(entry.kind));
    event.add_uint64(fields::TrackEvent::name_iid, name);
    annotate_all(event, entry);
    add_arrows(event, moment.position);
  });
}

void PerfettoWriter::annotate_all(Event& event, const Entry& entry) {
  const auto since_begin = [this](std::int64_t time) {
    return static_cast<std::uint64_t>(timeline_.since_begin(time));
  };
  annotate(event, Annotation::id, entry.id);
  annotate(event, Annotation::stream, streams_[entry.stream]);
  annotate(event, Annotation::bytes, entry.bytes);
  annotate(event, Annotation::status, status_name(entry.status));
  annotate(event, Annotation::enqueued, since_begin(entry.enqueued));
  annotate(event, Annotation::ready, since_begin(entry.ready));
  if (const std::uint32_t width = width_of(recording_, entry); width > 1) {
    annotate(event, Annotation::cores, std::uint64_t{entry.cores});
    annotate(event, Annotation::place_cores, std::uint64_t{width});
  }
}

/// An arrow is a flow that starts at one slice and terminates at another. Viewers draw it from the
/// end of the one to the start of the other, although both name it at their begins.
void PerfettoWriter::add_arrows(Event& event, std::uint32_t position) {
  for (const std::uint32_t number : graph_.arriving(position)) {
    event.add_fixed64(fields::TrackEvent::terminating_flow_ids, number + 1);
  }
  for (const std::uint32_t number : graph_.leaving(position)) {
    event.add_fixed64(fields::TrackEvent::flow_ids, number + 1);
  }
}

void PerfettoWriter::write_end(const Moment& moment) {
  write_packet(kNeedsState, [&](Packet& packet) {
    packet.add_uint64(fields::TracePacket::timestamp, static_cast<std::uint64_t>(moment.time));
    Event event(packet, fields::TracePacket::track_event);
    event.add_enum(fields::TrackEvent::type, kSliceEnd);
    event.add_uint64(fields::TrackEvent::track_uuid,
                     uuid_of_row(timeline_.row_of(moment.position)));
  });
}

/// Returns the number of a name; a new one is defined in the packet that first uses it.
std::uint64_t PerfettoWriter::intern(Packet& packet, std::string_view name) {
  const auto [at, is_new] = names_.try_emplace(name, names_.size() + 1);
  if (is_new) {
    Dictionary dictionary(packet, fields::TracePacket::interned_data);
    define(dictionary, fields::InternedData::event_names, at->second, name);
  }
  return at->second;
}

}  // namespace

void write_perfetto(const Drawing& drawing, sys::FileWriter& file) {
  PerfettoWriter(drawing, file).write_all();
}

}  // namespace weir::rt::trace
