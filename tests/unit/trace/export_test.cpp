#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "base/error.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"
#include "trace/export.hpp"
#include "trace/sketch.hpp"

namespace weir::rt::trace {
namespace {

using Json = nlohmann::json;

class ExportTest : public testing::Test, public TemporaryFolder {
 protected:
  std::string written(const Recording& recording, const char* name) const {
    write_file(recording, path(name));
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

/// Two domains: a transfer into the one feeds a computation on its second core; a marker there is
/// waited for in the other, whose action fails and poisons the next.
Recording example() {
  Sketch sketch;
  const auto place = sketch.place("sim:0/p0", "sim:0", 2);
  const auto link = sketch.link("sim:0 in", "sim:0");
  const auto host = sketch.place("host/p0", "host");
  sketch.stream("a");
  sketch.stream("b");
  Entry& copy = sketch.transfer(link, 1'000'500, 1'001'750);
  copy.enqueued = 1'000'000;
  copy.ready = 1'000'250;
  copy.bytes = 4096;
  set_name(copy, "copy in");
  set_name(sketch.compute(place, 1'001'750, 1'003'000, {1}), "dgemm");
  set_name(sketch.sync(place, 1'003'000, {2}), "marker");
  Entry& failed = sketch.compute(host, 1'003'000, 1'004'001, {3});
  failed.status = WEIR_STATUS_KERNEL_ERROR;
  failed.stream = 1;
  set_name(failed, "dgemm");
  Entry& poisoned = sketch.compute(host, 1'004'001, 1'004'001, {4, 99});
  poisoned.status = WEIR_STATUS_POISONED;
  poisoned.stream = 1;
  set_name(poisoned, "dtrsm");
  sketch.drop(3);
  Recording recording = sketch.recording();
  recording.entries[1].core = 1;
  return recording;
}

// ---- Chrome -------------------------------------------------------------------------------------

/// The text of a metadata event, by (process, thread).
std::map<std::pair<int, int>, std::string> names(const Json& trace, const std::string& what) {
  std::map<std::pair<int, int>, std::string> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == what) {
      found[{event["pid"], event.value("tid", 0)}] = event["args"]["name"];
    }
  }
  return found;
}

std::vector<Json> events(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

std::string row_of(const Json& trace, const Json& event) {
  return names(trace, "process_name").at({event["pid"], 0}) + ": " +
         names(trace, "thread_name").at({event["pid"], event["tid"]});
}

TEST_F(ExportTest, ChromeShowsSlicesOnTheRowsOfTheirDomains) {
  const Json trace = Json::parse(written(example(), "t.json"));
  const std::vector<Json> slices = events(trace, "X");
  ASSERT_EQ(slices.size(), 5u);
  std::vector<std::string> rows;
  for (const Json& slice : slices) rows.push_back(row_of(trace, slice));
  EXPECT_EQ(rows, (std::vector<std::string>{"sim:0: sim:0 in", "sim:0: sim:0/p0 core 1",
                                            "sim:0: sync", "host: host/p0", "host: sync"}));
  EXPECT_EQ(slices[0]["name"], "copy in");
  EXPECT_EQ(slices[0]["cat"], "transfer");
  EXPECT_EQ(slices[0]["ts"], 0.5);
  EXPECT_EQ(slices[0]["dur"], 1.25);
  EXPECT_EQ(slices[0]["args"], (Json{{"id", 1},
                                     {"stream", "a"},
                                     {"bytes", 4096},
                                     {"status", "ok"},
                                     {"enqueued_us", 0.0},
                                     {"ready_us", 0.25}}));
  EXPECT_EQ(slices[1]["args"]["cores"], 1);
  EXPECT_EQ(slices[1]["args"]["place_cores"], 2);
  EXPECT_EQ(slices[2]["cat"], "sync");
  EXPECT_EQ(slices[2]["dur"], 0.0);
  EXPECT_EQ(slices[3]["cat"], "compute");
  EXPECT_EQ(slices[3]["dur"], 1.001);
  EXPECT_EQ(slices[3]["args"]["stream"], "b");
  EXPECT_EQ(slices[3]["args"]["status"], "kernel_error");
  EXPECT_EQ(slices[4]["args"]["status"], "poisoned");
}

TEST_F(ExportTest, ChromeSortsCoresBeforeLinksBeforeSyncs) {
  const Json trace = Json::parse(written(example(), "t.json"));
  std::map<int, std::string> rows;
  for (const Json& event : events(trace, "M")) {
    if (event["name"] == "thread_sort_index") {
      rows[event["args"]["sort_index"]] = row_of(trace, event);
    }
  }
  std::vector<std::string> sorted;
  for (const auto& [index, row] : rows) sorted.push_back(row);
  EXPECT_EQ(sorted, (std::vector<std::string>{"sim:0: sim:0/p0 core 1", "sim:0: sim:0 in",
                                              "sim:0: sync", "host: host/p0", "host: sync"}));
}

TEST_F(ExportTest, ChromeProcessAndThreadIds_AreUniqueAndNotZero) {
  const Json trace = Json::parse(written(example(), "t.json"));
  std::set<int> numbers;
  for (const Json& event : events(trace, "M")) {
    const std::string what = event["name"];
    if (what.ends_with("_name")) {
      const int number = what == "process_name" ? event["pid"] : event["tid"];
      EXPECT_TRUE(numbers.insert(number).second) << event;
    }
  }
  EXPECT_EQ(numbers.size(), 2u + 5u);
  EXPECT_FALSE(numbers.contains(0));
}

TEST_F(ExportTest, ChromeDrawsAnArrowForEachDependenceThatIsRecorded) {
  const Json trace = Json::parse(written(example(), "t.json"));
  const std::vector<Json> slices = events(trace, "X");
  const std::vector<Json> starts = events(trace, "s"), ends = events(trace, "f");
  ASSERT_EQ(starts.size(), 4u);
  ASSERT_EQ(ends.size(), 4u);
  for (std::size_t arrow = 0; arrow < 4; ++arrow) {
    const Json &start = starts[arrow], &end = ends[arrow];
    const Json &earlier = slices[arrow], &later = slices[arrow + 1];
    EXPECT_EQ(start["id"], end["id"]);
    EXPECT_EQ(start["name"], end["name"]);
    EXPECT_EQ(start["cat"], end["cat"]);
    EXPECT_EQ(end["bp"], "e");
    EXPECT_EQ(row_of(trace, start), row_of(trace, earlier));
    EXPECT_EQ(row_of(trace, end), row_of(trace, later));
    EXPECT_NEAR(start["ts"], earlier["ts"].get<double>() + earlier["dur"].get<double>(), 1e-6);
    EXPECT_EQ(end["ts"], later["ts"]);
  }
}

/// What viewers rely on to find the slice that an arrow belongs to.
TEST_F(ExportTest, ChromeEvents_AreSortedSoThatArrowsFollowTheirSlices) {
  const Json trace = Json::parse(written(example(), "t.json"));
  std::map<std::string, std::string> latest;
  std::map<int, std::string> start_of;
  std::set<std::string> arrows;
  double before = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    EXPECT_GE(event["ts"], before);
    before = event["ts"];
    std::string& slice = latest[row_of(trace, event)];
    if (event["ph"] == "X") slice = event["name"];
    if (event["ph"] == "s") start_of[event["id"]] = slice;
    if (event["ph"] == "f") arrows.insert(start_of.at(event["id"]) + " > " + slice);
  }
  EXPECT_EQ(arrows, (std::set<std::string>{"copy in > dgemm", "dgemm > marker", "marker > dgemm",
                                           "dgemm > dtrsm"}));
}

TEST_F(ExportTest, DroppedActions_AreCountedInTheChromeTrace) {
  const Json trace = Json::parse(written(example(), "t.json"));
  EXPECT_EQ(trace["otherData"]["actions"], 5);
  EXPECT_EQ(trace["otherData"]["dropped_actions"], 3);
}

TEST_F(ExportTest, EmptyRecording_GivesAValidChromeTrace) {
  const Json trace = Json::parse(written({}, "t.json"));
  EXPECT_TRUE(events(trace, "X").empty());
  EXPECT_EQ(trace["otherData"]["actions"], 0);
}

TEST_F(ExportTest, NamesOfAnyBytes_AreEscapedOrReplacedInTheChromeTrace) {
  Sketch sketch;
  sketch.stream("stream \"\\\n\x01\x7f");
  const auto place = sketch.place("pl\"ace\t", "do\\main");
  const std::pair<std::string, std::string> labels[] = {
      {"quote \" backslash \\", "quote \" backslash \\"},
      {"line\nfeed\ttab\x1f", "line\nfeed\ttab\x1f"},
      {"gr\xC3\xBC\xC3\x9F \xF0\x9F\x8C\x8A", "gr\xC3\xBC\xC3\x9F \xF0\x9F\x8C\x8A"},
      {"cut \xE2\x82", "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xFFz\x80", "\xEF\xBF\xBDz\xEF\xBF\xBD"},
      {"overlong \xC0\xAF", "overlong \xEF\xBF\xBD\xEF\xBF\xBD"},
      {"</script><img onerror>", "</script><img onerror>"},
      {"", ""},
      {std::string(32, 'x'), std::string(32, 'x')}};
  std::int64_t time = 0;
  for (const auto& [given, expected] : labels) {
    set_name(sketch.compute(place, time, time + 1), given);
    ++time;
  }
  const std::string text = written(sketch.recording(), "t.json");
  EXPECT_EQ(text.find('<'), std::string::npos) << "it may end the script of a page";
  const Json trace = Json::parse(text);
  const std::vector<Json> slices = events(trace, "X");
  ASSERT_EQ(slices.size(), std::size(labels));
  for (std::size_t index = 0; index < slices.size(); ++index) {
    EXPECT_EQ(slices[index]["name"], labels[index].second);
  }
  EXPECT_EQ(slices[0]["args"]["stream"], "stream \"\\\n\x01\x7f");
  EXPECT_EQ(row_of(trace, slices[0]), "do\\main: pl\"ace\t");
}

TEST_F(ExportTest, ChromeMovesOverlappingSlicesToRowsOfTheirOwn) {
  Sketch sketch;
  const auto link = sketch.link("cuda:0 in", "cuda:0");
  sketch.transfer(link, 0, 10);
  sketch.transfer(link, 5, 20);
  sketch.transfer(link, 8, 9);
  sketch.transfer(link, 10, 30);
  sketch.transfer(link, 20, 25);
  const Json trace = Json::parse(written(sketch.recording(), "t.json"));
  std::vector<std::string> rows;
  for (const Json& slice : events(trace, "X")) rows.push_back(row_of(trace, slice));
  EXPECT_EQ(rows, (std::vector<std::string>{"cuda:0: cuda:0 in", "cuda:0: cuda:0 in (2)",
                                            "cuda:0: cuda:0 in (3)", "cuda:0: cuda:0 in",
                                            "cuda:0: cuda:0 in (2)"}));
}

TEST_F(ExportTest, SyncWithoutTrack_IsShownInTheFirstDomain) {
  Sketch sketch;
  sketch.place("host/p0", "host");
  sketch.sync(12345, 10);
  const Json trace = Json::parse(written(sketch.recording(), "t.json"));
  EXPECT_EQ(row_of(trace, events(trace, "X").at(0)), "host: sync");
}

TEST_F(ExportTest, DependenceBackwardsInTime_StillGetsAnArrow) {
  Sketch sketch;
  const auto one = sketch.place("a/p0", "a"), two = sketch.place("b/p0", "b");
  sketch.compute(one, 10, 20);
  sketch.compute(two, 15, 30, {1});
  const Json trace = Json::parse(written(sketch.recording(), "t.json"));
  EXPECT_EQ(events(trace, "s").size(), 1u);
  EXPECT_EQ(events(trace, "f").size(), 1u);
}

// ---- Perfetto -----------------------------------------------------------------------------------

using Reader = protozero::pbf_reader;

struct Note {
  std::string name, text;
  std::uint64_t number = 0;
};

struct PerfettoEvent {
  std::uint64_t time = 0, track = 0;
  int type = 0;
  std::string name, category;
  std::vector<std::uint64_t> flows, terminating_flows;
  std::map<std::string, Note> notes;
};

struct PerfettoTrack {
  std::uint64_t parent = 0;
  std::string name;
  int pid = 0, rank = -1, ordering = 0;
};

/// A file read back with the numbers of Perfetto's own protos, resolving interned names as its
/// reader does. Fails on anything that weir does not write.
class PerfettoFile {
 public:
  explicit PerfettoFile(const std::string& bytes) {
    Reader trace(bytes);
    while (trace.next()) {
      EXPECT_EQ(trace.tag(), 1u);
      read_packet(trace.get_message());
    }
  }

  /// "domain: row" of a track.
  std::string row_of(std::uint64_t track) const {
    const PerfettoTrack& found = tracks.at(track);
    return found.parent == 0 ? found.name : tracks.at(found.parent).name + ": " + found.name;
  }

  std::map<std::uint64_t, PerfettoTrack> tracks;
  std::vector<PerfettoEvent> events;

 private:
  using Names = std::map<std::uint64_t, std::string>;

  void read_packet(Reader packet) {
    std::uint64_t time = 0, sequence = 0, flags = 0;
    bool is_event = false;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8: time = packet.get_uint64(); break;
        case 10: sequence = packet.get_uint32(); break;
        case 11:
          is_event = true;
          read_event(packet.get_message());
          break;
        case 12: read_interned(packet.get_message()); break;
        case 13: flags = packet.get_uint32(); break;
        case 42: EXPECT_EQ(packet.get_uint32(), 1u); break;
        case 60: read_descriptor(packet.get_message()); break;
        case 87: EXPECT_TRUE(packet.get_bool()); break;
        default: FAIL() << "packet field " << packet.tag();
      }
    }
    EXPECT_EQ(sequence, 1u);
    EXPECT_EQ(flags, first_ ? 3u : 2u);
    first_ = false;
    if (is_event) events.back().time = time;
  }

  void read_interned(Reader data) {
    while (data.next()) {
      Names* const names = data.tag() == 1   ? &categories_
                           : data.tag() == 2 ? &event_names_
                           : data.tag() == 3 ? &note_names_
                                             : nullptr;
      ASSERT_NE(names, nullptr) << "interned field " << data.tag();
      Reader entry = data.get_message();
      std::uint64_t iid = 0;
      std::string name;
      while (entry.next()) {
        if (entry.tag() == 1)
          iid = entry.get_uint64();
        else if (entry.tag() == 2)
          name = entry.get_string();
        else
          FAIL() << "interned name field " << entry.tag();
      }
      EXPECT_GT(iid, 0u);
      EXPECT_TRUE(names->emplace(iid, name).second) << "defined twice";
    }
  }

  void read_descriptor(Reader descriptor) {
    PerfettoTrack track;
    std::uint64_t uuid = 0;
    while (descriptor.next()) {
      switch (descriptor.tag()) {
        case 1: uuid = descriptor.get_uint64(); break;
        case 2: track.name = descriptor.get_string(); break;
        case 3: read_process(descriptor.get_message(), track); break;
        case 5: track.parent = descriptor.get_uint64(); break;
        case 11: track.ordering = descriptor.get_enum(); break;
        case 12: track.rank = descriptor.get_int32(); break;
        default: FAIL() << "track descriptor field " << descriptor.tag();
      }
    }
    EXPECT_GT(uuid, 0u);
    EXPECT_TRUE(tracks.emplace(uuid, track).second) << "described twice";
  }

  static void read_process(Reader process, PerfettoTrack& track) {
    while (process.next()) {
      if (process.tag() == 1)
        track.pid = process.get_int32();
      else if (process.tag() == 6)
        track.name = process.get_string();
      else
        FAIL() << "process descriptor field " << process.tag();
    }
  }

  void read_event(Reader event) {
    PerfettoEvent found;
    while (event.next()) {
      switch (event.tag()) {
        case 3: found.category = categories_.at(event.get_uint64()); break;
        case 4: read_note(event.get_message(), found); break;
        case 9: found.type = event.get_enum(); break;
        case 10: found.name = event_names_.at(event.get_uint64()); break;
        case 11: found.track = event.get_uint64(); break;
        case 23: found.name = event.get_string(); break;
        case 47: found.flows.push_back(event.get_fixed64()); break;
        case 48: found.terminating_flows.push_back(event.get_fixed64()); break;
        default: FAIL() << "track event field " << event.tag();
      }
    }
    EXPECT_TRUE(tracks.contains(found.track));
    events.push_back(found);
  }

  void read_note(Reader note, PerfettoEvent& event) {
    Note found;
    while (note.next()) {
      switch (note.tag()) {
        case 1: found.name = note_names_.at(note.get_uint64()); break;
        case 3: found.number = note.get_uint64(); break;
        case 6: found.text = note.get_string(); break;
        default: FAIL() << "debug annotation field " << note.tag();
      }
    }
    event.notes[found.name] = found;
  }

  bool first_ = true;
  Names categories_, event_names_, note_names_;
};

constexpr int kBegin = 1, kEnd = 2, kInstant = 3;

std::vector<PerfettoEvent> of_type(const PerfettoFile& file, int type) {
  std::vector<PerfettoEvent> found;
  for (const PerfettoEvent& event : file.events) {
    if (event.type == type) found.push_back(event);
  }
  return found;
}

TEST_F(ExportTest, PerfettoShowsSlicesOnTheRowsOfTheirDomains) {
  const PerfettoFile file(written(example(), "t.pftrace"));
  const std::vector<PerfettoEvent> begins = of_type(file, kBegin);
  ASSERT_EQ(begins.size(), 5u);
  std::vector<std::string> rows;
  for (const PerfettoEvent& event : begins) rows.push_back(file.row_of(event.track));
  EXPECT_EQ(rows, (std::vector<std::string>{"sim:0: sim:0 in", "sim:0: sim:0/p0 core 1",
                                            "sim:0: sync", "host: host/p0", "host: sync"}));
  const PerfettoEvent& copy = begins[0];
  EXPECT_EQ(copy.time, 500u);
  EXPECT_EQ(copy.name, "copy in");
  EXPECT_EQ(copy.category, "transfer");
  ASSERT_EQ(copy.notes.size(), 6u);
  EXPECT_EQ(copy.notes.at("id").number, 1u);
  EXPECT_EQ(copy.notes.at("stream").text, "a");
  EXPECT_EQ(copy.notes.at("bytes").number, 4096u);
  EXPECT_EQ(copy.notes.at("status").text, "ok");
  EXPECT_EQ(copy.notes.at("enqueued_ns").number, 0u);
  EXPECT_EQ(copy.notes.at("ready_ns").number, 250u);
  EXPECT_EQ(begins[1].name, "dgemm");
  EXPECT_EQ(begins[1].notes.at("cores").number, 1u);
  EXPECT_EQ(begins[1].notes.at("place_cores").number, 2u);
  EXPECT_EQ(begins[2].category, "sync");
  EXPECT_EQ(begins[3].name, "dgemm");
  EXPECT_EQ(begins[3].category, "compute");
  EXPECT_EQ(begins[3].notes.at("stream").text, "b");
  EXPECT_EQ(begins[3].notes.at("status").text, "kernel_error");
  EXPECT_EQ(begins[4].notes.at("status").text, "poisoned");
}

TEST_F(ExportTest, PerfettoTracks_HaveUniquePidsAndOrderedRows) {
  const PerfettoFile file(written(example(), "t.pftrace"));
  std::map<int, std::string> rows;
  std::set<int> pids;
  for (const auto& [uuid, track] : file.tracks) {
    if (track.parent != 0) rows[track.rank] = file.row_of(uuid);
    if (track.pid == 0) continue;
    EXPECT_TRUE(pids.insert(track.pid).second);
    EXPECT_EQ(track.ordering, 3);
  }
  EXPECT_EQ(pids.size(), 2u);
  std::vector<std::string> sorted;
  for (const auto& [rank, row] : rows) sorted.push_back(row);
  EXPECT_EQ(sorted, (std::vector<std::string>{"sim:0: sim:0/p0 core 1", "sim:0: sim:0 in",
                                              "sim:0: sync", "host: host/p0", "host: sync"}));
}

/// Checks the whole of a file: times ascend, slices of a track neither overlap nor stay open, and
/// each flow starts at one slice and later terminates at another. Returns the flows.
std::set<std::string> checked_flows(const PerfettoFile& file) {
  std::map<std::uint64_t, const PerfettoEvent*> open;
  std::map<std::uint64_t, std::string> flows;
  std::set<std::string> found;
  std::uint64_t before = 0;
  for (const PerfettoEvent& event : file.events) {
    EXPECT_GE(event.time, before);
    before = event.time;
    if (event.type == kBegin) {
      EXPECT_TRUE(open.emplace(event.track, &event).second) << "slices nest";
    } else if (event.type == kEnd) {
      EXPECT_EQ(open.erase(event.track), 1u) << "nothing to end";
    }
    for (const std::uint64_t flow : event.terminating_flows) {
      EXPECT_TRUE(flows.contains(flow)) << "terminates before it starts";
      found.insert(flows[flow] + " > " + event.name);
      flows.erase(flow);
    }
    for (const std::uint64_t flow : event.flows) {
      EXPECT_TRUE(flows.emplace(flow, event.name).second) << "starts twice";
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_TRUE(flows.empty());
  return found;
}

TEST_F(ExportTest, PerfettoBalancesSlicesAndMatchesFlows) {
  const PerfettoFile file(written(example(), "t.pftrace"));
  EXPECT_EQ(checked_flows(file), (std::set<std::string>{"copy in > dgemm", "dgemm > marker",
                                                        "marker > dgemm", "dgemm > dtrsm"}));
}

TEST_F(ExportTest, SyncsAtTheSameTime_PerfettoWritesThemInDependenceOrder) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  set_name(sketch.compute(place, 0, 10), "first");
  set_name(sketch.sync(place, 10, {3}), "wait");
  set_name(sketch.sync(place, 10, {1}), "marker");
  set_name(sketch.compute(place, 10, 30, {2}), "second");
  EXPECT_EQ(checked_flows(PerfettoFile(written(sketch.recording(), "t.pftrace"))),
            (std::set<std::string>{"first > marker", "marker > wait", "wait > second"}));
}

TEST_F(ExportTest, PerfettoEndsASliceBeforeTheNextBegins) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  const auto link = sketch.link("host in", "host");
  sketch.transfer(link, 0, 1);
  sketch.compute(place, 1, 10, {1});
  sketch.compute(place, 10, 20);
  const PerfettoFile file(written(sketch.recording(), "t.pftrace"));
  checked_flows(file);
  const std::vector<PerfettoEvent> begins = of_type(file, kBegin);
  ASSERT_EQ(begins.size(), 3u);
  EXPECT_EQ(begins[1].track, begins[2].track);
}

TEST_F(ExportTest, OverlappingActions_PerfettoNeverNestsTheirSlices) {
  Sketch sketch;
  const auto place = sketch.place("cuda:0/p0", "cuda:0", 0);
  const auto link = sketch.link("cuda:0 in", "cuda:0");
  for (std::int64_t index = 0; index < 200; ++index) {
    const std::int64_t start = (index * 37) % 101;
    sketch.compute(place, start, start + (index * 13) % 17);
    sketch.transfer(link, start, start + (index * 7) % 5);
    sketch.sync(place, start);
  }
  const PerfettoFile file(written(sketch.recording(), "t.pftrace"));
  checked_flows(file);
  EXPECT_EQ(of_type(file, kBegin).size(), 600u);
  EXPECT_EQ(of_type(file, kEnd).size(), 600u);
}

TEST_F(ExportTest, DroppedActions_AreReportedInThePerfettoTrace) {
  const PerfettoFile file(written(example(), "t.pftrace"));
  const std::vector<PerfettoEvent> notes = of_type(file, kInstant);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].name, "3 actions dropped: the recording was full");
  EXPECT_EQ(file.row_of(notes[0].track), "recording");
}

TEST_F(ExportTest, EmptyRecordingOrInvalidUtf8Names_PerfettoTraceIsValid) {
  EXPECT_TRUE(PerfettoFile(written({}, "t.pftrace")).events.empty());
  Sketch sketch;
  sketch.stream("s\xFF");
  const auto place = sketch.place("p\xC3", "d\x80");
  set_name(sketch.compute(place, 0, 1), "cut \xE2\x82");
  const PerfettoFile file(written(sketch.recording(), "t.pftrace"));
  const PerfettoEvent& event = file.events.at(0);
  EXPECT_EQ(event.name, "cut \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(event.notes.at("stream").text, "s\xEF\xBF\xBD");
  EXPECT_EQ(file.row_of(event.track), "d\xEF\xBF\xBD: p\xEF\xBF\xBD");
}

// ---- Both ---------------------------------------------------------------------------------------

std::string error_of(const Recording& recording, const std::string& path) {
  return thrown_by<Error>([&] { write_file(recording, path); });
}

TEST_F(ExportTest, AMissingFolderIsAnErrorWithPathAndReason) {
  for (const char* name : {"missing/t.json", "missing/t.pftrace"}) {
    const std::string error = error_of(example(), path(name));
    EXPECT_NE(error.find(path(name)), std::string::npos) << error;
    EXPECT_NE(error.find("No such file"), std::string::npos) << error;
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(ExportTest, WriteToDevFull_IsAnErrorWithPathAndReason) {
  const std::string error = error_of(example(), "/dev/full");
  EXPECT_NE(error.find("/dev/full"), std::string::npos) << error;
  EXPECT_NE(error.find("No space left"), std::string::npos) << error;
}

/// Lets files grow to a size only, as a full disk does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(ExportTest, AFullDiskLeavesTheOldFileAndNothingElse) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  for (std::int64_t time = 0; time < 30'000; ++time) sketch.compute(place, time, time + 1);
  const Recording large = sketch.recording();
  for (const char* name : {"t.json", "t.pftrace"}) {
    const std::string before = written(example(), name);
    std::string error;
    {
      const FileSizeLimit limit(1 << 20);
      error = error_of(large, path(name));
    }
    EXPECT_NE(error.find("cannot write"), std::string::npos) << error;
    EXPECT_NE(error.find(path(name)), std::string::npos) << error;
    std::ifstream file(path(name), std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), before);
  }
  EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace weir::rt::trace
